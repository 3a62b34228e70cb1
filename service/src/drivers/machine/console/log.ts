/**
 * Reads and trims the logs of servers, and opens their consoles. QEMU appends the serial output and its own messages to files, so the file
 * of a very long log is cut to its beginning and end; otherwise a guest could fill the host's disks. The boot progress of a guest is also read from the log,
 * since every image prints a mark at the end of its boot.
 */
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readSync,
  writeSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import type { BootStage, Consoles, ReadLogOptions, Stream } from "../interface.ts";
import type { Folder } from "../qemu/folder.ts";
import { openSocket } from "../qemu/socket.ts";

/** Bytes of a log before it is trimmed, and what remains of its two ends. */
const maxLogBytes = 8 * 2 ** 20;
const trimmedBytes = { first: 256 * 1024, last: 2 ** 20 };

function readAt(file: number, from: number, length: number): Buffer {
  const buffer = Buffer.alloc(length);
  return buffer.subarray(0, readSync(file, buffer, 0, length, from));
}

/** Trims a log that is too long. QEMU writes in append mode, so it continues at the new end; output during the trim may be lost. */
export function trimLog(path: string): void {
  if ((lstatSync(path, { throwIfNoEntry: false })?.size ?? 0) <= maxLogBytes) return;
  const file = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    const { size } = fstatSync(file);
    const first = readAt(file, 0, trimmedBytes.first);
    const last = readAt(file, size - trimmedBytes.last, trimmedBytes.last);
    const gap = Buffer.from(`\n[${size - trimmedBytes.first - trimmedBytes.last} bytes are left out here]\n`);
    ftruncateSync(file, 0);
    writeSync(file, Buffer.concat([first, gap, last]), 0, null, 0);
  } finally {
    closeSync(file);
  }
}

/** Returns the last characters of a log, at most `length`, without white space around them; "" if it does not exist. */
export function endOfLog(path: string, length: number): string {
  if (!existsSync(path)) return "";
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    // A character has at most 4 bytes.
    const bytes = 4 * length;
    return readAt(file, Math.max(0, fstatSync(file).size - bytes), bytes)
      .toString()
      .trim()
      .slice(-length);
  } finally {
    closeSync(file);
  }
}

/** Reads a log; null if it does not exist. Invalid UTF-8 becomes U+FFFD. */
export async function readLogFile(folder: Folder, { previous = false, tail }: ReadLogOptions): Promise<string | null> {
  const path = previous ? folder.previousConsole : folder.console;
  if (!existsSync(path)) return null;
  const text = await readFile(path, { encoding: "utf8", flag: constants.O_RDONLY | constants.O_NOFOLLOW });
  return tail === undefined ? text : lastLines(text, tail);
}

/** Returns the last `count` lines. */
export function lastLines(text: string, count: number): string {
  if (count <= 0) return "";
  let from = text.endsWith("\n") ? text.length - 1 : text.length;
  for (let left = count; left > 0 && from >= 0; left--) from = text.lastIndexOf("\n", from - 1);
  return text.slice(from + 1);
}

/**
 * Images print `BRUME-READY` when their first boot is complete (`readyMark`), sometimes after a prompt on the same line. Tiny Linux prints
 * `READY` when it is reachable.
 */
const marks: readonly { readonly stage: BootStage; readonly mark: RegExp }[] = [
  { stage: "ready", mark: /BRUME-READY instance=/ },
  { stage: "login", mark: /login: ?$|^READY /m },
];
const rank: Readonly<Record<BootStage, number>> = { starting: 0, login: 1, ready: 2 };

/** Reads the boot progress from a growing log. */
export interface Follower {
  /** Reads the new part of the log and returns the boot progress. */
  stage(): BootStage;
}

/** Starts to follow a log, which may not exist yet. */
export function followLog(path: string): Follower {
  let at = 0;
  let stage: BootStage = "starting";
  let rest = "";
  const readNew = () => {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      // The log was trimmed; its earlier content was already read.
      at = Math.min(at, fstatSync(file).size);
      const chunk = readAt(file, at, 256 * 1024);
      at += chunk.length;
      const text = rest + chunk.toString("latin1").replaceAll("\r", "");
      for (const { stage: found, mark } of marks) if (rank[found] > rank[stage] && mark.test(text)) stage = found;
      rest = text.slice(text.lastIndexOf("\n") + 1).slice(-200);
    } finally {
      closeSync(file);
    }
  };
  return {
    stage() {
      try {
        if (stage !== "ready") readNew();
      } catch {
        // The file does not exist yet.
      }
      return stage;
    },
  };
}

/** Creates the consoles of a driver: `folder` returns a server's folder, `isOn` whether its VM runs. */
export function createConsoles(folder: (id: number) => Folder, isOn: (id: number) => boolean): Consoles {
  const serials = new Map<number, Stream>();
  async function open(id: number, name: string): Promise<Stream> {
    if (!isOn(id)) throw new Error(`server ${id} is off`);
    return openSocket(folder(id).run, name);
  }
  return {
    readLog: (id, spec = {}) => readLogFile(folder(id), spec),
    async openSerial(id) {
      serials.get(id)?.destroy();
      const stream = await open(id, "serial");
      // QEMU serves one client at a time: another one that was opened meanwhile would keep this one waiting.
      serials.get(id)?.destroy();
      serials.set(id, stream);
      stream.once("close", () => serials.get(id) === stream && serials.delete(id));
      return stream;
    },
    openVnc: (id) => open(id, "vnc"),
  };
}
