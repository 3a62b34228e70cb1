/**
 * Calls the QEMU guest agent, if the image has one: JSON lines on a serial port. The agent sends no banner, and an earlier client may have
 * left an incomplete line, so each call starts with a synchronization. Input is untrusted; an invalid response is ignored.
 */
import type { Socket } from "node:net";
import { pick, splitLines, textAt } from "./qmp.ts";
import { openSocket } from "./socket.ts";

/** Discards an incomplete line at the guest (QEMU's guest agent protocol, `guest-sync-delimited`). */
const delimiter = 0xff;

/**
 * Runs a command of the guest agent. Resolves to its result, or to null without a response within `limit` ms. Rejects if the agent returns
 * an error. `sync` is any number that differs from that of the previous call.
 */
export async function callAgent(
  folder: string,
  sync: number,
  command: string,
  args: object = {},
  limit = 1000,
): Promise<unknown> {
  let socket: Socket;
  try {
    socket = await openSocket(folder, "agent", limit);
  } catch {
    return null;
  }
  return new Promise((resolve, reject) => {
    let isSynced = false;
    const timer = setTimeout(() => resolve(null), limit);
    const split = splitLines((line) => {
      const message = parse(line.slice(line.lastIndexOf(String.fromCharCode(delimiter)) + 1));
      if (!isSynced) {
        if (pick(message, "return") !== sync) return;
        isSynced = true;
        socket.write(`${JSON.stringify({ execute: command, arguments: args })}\n`);
      } else if (pick(message, "return") !== undefined) resolve(pick(message, "return"));
      else if (pick(message, "error") !== undefined)
        reject(new Error(`the guest agent refuses ${command}: ${textAt(message, "error", "desc")}`));
    });
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      if (!split(chunk)) socket.destroy();
    });
    socket.on("close", () => {
      clearTimeout(timer);
      resolve(null);
    });
    const request = JSON.stringify({ execute: "guest-sync-delimited", arguments: { id: sync } });
    socket.write(Buffer.concat([Buffer.of(delimiter), Buffer.from(`${request}\n`)]));
  }).finally(() => socket.destroy());
}

function parse(line: string): unknown {
  try {
    return JSON.parse(Buffer.from(line, "latin1").toString());
  } catch {
    return null;
  }
}
