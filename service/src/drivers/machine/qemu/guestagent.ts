/**
 * The program inside a guest that does what cannot be done from outside, where the image has it: JSON lines on a serial port of its
 * own. It does not greet, and an earlier caller may have left half a line on the way, so each call begins by agreeing on a number.
 * The guest may answer anything; what is not an answer is silence.
 */
import type { Socket } from "node:net";
import { pick, splitLines, textAt } from "./qmp.ts";
import { openSocket } from "./socket.ts";

/** Ends whatever the guest had half read (QEMU's guest agent protocol, `guest-sync-delimited`). */
const delimiter = 0xff;

/**
 * Resolves to what the command returns, or to null when nobody answers in `limit` milliseconds; rejects when the agent refuses.
 * `sync` is any number that the last caller has not taken.
 */
export async function askAgent(
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
    let agreed = false;
    const timer = setTimeout(() => resolve(null), limit);
    const split = splitLines((line) => {
      const message = parse(line.slice(line.lastIndexOf(String.fromCharCode(delimiter)) + 1));
      if (!agreed) {
        if (pick(message, "return") !== sync) return;
        agreed = true;
        socket.write(`${JSON.stringify({ execute: command, arguments: args })}\n`);
      } else if (pick(message, "return") !== undefined) resolve(pick(message, "return"));
      else if (pick(message, "error") !== undefined)
        reject(new Error(`the guest's agent refuses ${command}: ${textAt(message, "error", "desc")}`));
    });
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      if (!split(chunk)) socket.destroy();
    });
    socket.on("close", () => {
      clearTimeout(timer);
      resolve(null);
    });
    const hello = JSON.stringify({ execute: "guest-sync-delimited", arguments: { id: sync } });
    socket.write(Buffer.concat([Buffer.of(delimiter), Buffer.from(`${hello}\n`)]));
  }).finally(() => socket.destroy());
}

function parse(line: string): unknown {
  try {
    return JSON.parse(Buffer.from(line, "latin1").toString());
  } catch {
    return null;
  }
}
