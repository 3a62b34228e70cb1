/** `brume console`: the serial console of a server in this terminal, over the WebSocket of the API. */
import { UsageError } from "../model/values.ts";
import { trustOf } from "../request.ts";
import { idArgument, isOn, type Run } from "../session.ts";

/** Ctrl-], as in telnet and virsh. */
const escapeKey = 0x1d;

export const run: Run = async (session) => {
  const { host, print } = session;
  const client = await session.client();
  const isVnc = isOn(session, "vnc");
  const path = { id: await idArgument(session, 0) };
  const { Url } = await client.openConsole({ path, body: { Type: isVnc ? "Vnc" : "Serial" } }, { signal: host.signal });
  const target = await session.target();
  // Behind a proxy the service may know another name, scheme and path of itself than this computer.
  const { pathname, search } = new URL(Url, target.url);
  const url = `${target.url.replace(/^http/, "ws").replace(/\/+$/, "")}${pathname}${search}`;
  if (isVnc) {
    host.out.write(`${url}\n`);
    print.note("The URL is valid once, for 60 s. Connect a VNC client that speaks WebSocket, such as noVNC.");
    return;
  }
  if (!host.input.isTerminal && host.out.isTerminal)
    throw new UsageError("The console needs a terminal for input.", "brume logs SERVER prints its output.");
  const { WebSocket } = await import("ws");
  const socket = new WebSocket(url, { handshakeTimeout: 15_000, ...trustOf(target.certificate) });
  await new Promise<void>((resolve, reject) => {
    let release = () => {};
    const decoder = new TextDecoder();
    const end = () => {
      release();
      socket.close();
      resolve();
    };
    socket.on("open", () => {
      print.note("Connected. Press Enter for a prompt; Ctrl-] ends.");
      release = host.input.raw((data) => {
        if (data.includes(escapeKey)) end();
        else socket.send(data);
      });
    });
    socket.on("message", (data: Buffer) => host.out.write(decoder.decode(data, { stream: true })));
    socket.on("close", end);
    socket.on("error", (error) => {
      release();
      reject(error);
    });
    host.signal.addEventListener("abort", end);
  });
};
