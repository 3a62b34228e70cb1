/**
 * Calls the QEMU guest agent, if the image has one: JSON lines on a serial port. The agent sends no banner, and an earlier client may have
 * left an incomplete line, so each call starts with a synchronization. Input is untrusted; an invalid response is ignored.
 *
 * A guest whose file systems stay frozen cannot write until its next reset. The agent runs one command after the other, so a freeze that
 * takes longer than its limit still happens. So a file records each freeze, and the thaw is repeated until the agent answers it.
 */
import { existsSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Folder } from "./folder.ts";
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

/** A running VM whose guest may have an agent. */
export interface Guest {
  readonly folder: Pick<Folder, "run" | "frozen">;
  /** Resolves when the run has ended, or is no longer tracked. */
  readonly over: Promise<void>;
}

/**
 * Limits in milliseconds: for the test of the agent; for the freeze, which first writes all changed files of the guest; for one try of the
 * thaw; between two tries; and until the caller continues without a thaw.
 */
const defaultLimits = { ping: 500, freeze: 10_000, thaw: 2000, pause: 1000, wait: 1000 };

/**
 * Runs `work` while the guest's file systems are frozen, if the guest has an agent and its last thaw was answered. The caller holds the
 * lock of the server. `sync` returns another number at each call.
 */
export async function whileFrozen<Result>(
  guest: Guest,
  sync: () => number,
  work: () => Promise<Result>,
  limits = defaultLimits,
): Promise<Result> {
  const { run, frozen } = guest.folder;
  const call = (command: string, limit: number) => callAgent(run, sync(), command, {}, limit).catch(() => null);
  // A thaw that is still repeated would end this freeze too early.
  if (existsSync(frozen) || (await call("guest-ping", limits.ping)) === null) return work();
  writeFileSync(frozen, "");
  await call("guest-fsfreeze-freeze", limits.freeze);
  try {
    return await work();
  } finally {
    await Promise.race([thaw(guest, sync, limits), sleep(limits.wait, undefined, { ref: false })]);
  }
}

/**
 * Thaws the guest's file systems if a freeze is recorded. Repeats it until the agent answers, also with an error, or until the run is over.
 * Never rejects.
 */
export async function thaw({ folder, over }: Guest, sync: () => number, limits = defaultLimits): Promise<void> {
  const isOver = over.then(
    () => true,
    () => true,
  );
  while (existsSync(folder.frozen)) {
    const isAnswered = await callAgent(folder.run, sync(), "guest-fsfreeze-thaw", {}, limits.thaw).then(
      (result) => result !== null,
      () => true,
    );
    // A record that cannot be removed only causes another thaw.
    if (isAnswered) return rm(folder.frozen, { force: true }).catch(() => {});
    if (await Promise.race([isOver, sleep(limits.pause, false, { ref: false })])) return;
  }
}
