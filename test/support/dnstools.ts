/** Runs dig and kdig, and opens TCP connections to a name server. */
import { execFile } from "node:child_process";
import { connect, type Socket } from "node:net";
import { type BuiltinOptions, createBuiltin } from "../../service/src/drivers/nameserver/builtin/builtin.ts";
import type { Nameserver } from "../../service/src/drivers/nameserver/interface.ts";
import { target } from "./dnsclient.ts";

/** Runs dig or kdig against a server. Resolves to the output, also if the program fails. */
export function run(tool: "dig" | "kdig", address: string, ...args: string[]): Promise<string> {
  const { host, port } = target(address);
  return new Promise((resolve, reject) => {
    execFile(
      tool,
      // After the default of 5 s without a response a busy host would fail.
      [`@${host}`, "-p", port, "+timeout=60", ...args],
      { timeout: 120_000, maxBuffer: 64 << 20 },
      (error, stdout, stderr) => {
        if (error !== null && error.code === "ENOENT") reject(new Error(`${tool} is not installed`));
        else resolve(stdout + stderr);
      },
    );
  });
}

export function openServer(options: Partial<BuiltinOptions> = {}): Promise<Nameserver> {
  return createBuiltin({
    host: "127.0.0.1",
    port: 0,
    rateLimit: 0,
    transfer: { addresses: [], keys: [], notify: [] },
    log: () => {},
    ...options,
  });
}

export interface Stream {
  readonly socket: Socket;
  write(...messages: Uint8Array[]): void;
  /** Resolves to the next message, or to null after the server has closed the connection. */
  next(): Promise<Buffer | null>;
}

/** Opens a TCP connection for messages with their length in front (RFC 1035 section 4.2.2). */
export async function openStream(address: string): Promise<Stream> {
  const { host, port } = target(address);
  const socket = connect(Number(port), host);
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  let data = Buffer.alloc(0);
  let closed = false;
  let wake = (): void => {};
  socket.on("data", (chunk: Buffer) => {
    data = Buffer.concat([data, chunk]);
    wake();
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    closed = true;
    wake();
  });
  return {
    socket,
    write(...messages) {
      socket.write(
        Buffer.concat(messages.flatMap((bytes) => [Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes])),
      );
    },
    async next() {
      for (;;) {
        if (data.length >= 2 && data.length >= 2 + data.readUInt16BE(0)) {
          const message = data.subarray(2, 2 + data.readUInt16BE(0));
          data = data.subarray(2 + message.length);
          return message;
        }
        if (closed) return null;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
