/**
 * What a server says on its serial line. QEMU writes every byte of it into a file that only grows, so it is we who see to it that a
 * guest cannot fill the disks of the machine with talk: of a very long log the beginning and the end are kept. The log also tells
 * how far a guest has come, since every image ends its boot with a word there.
 */
import { closeSync, constants, existsSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { BootStage, Consoles, ReadLogOptions, Stream } from "../interface.ts";
import type { Folder } from "../qemu/folder.ts";
import { openSocket } from "../qemu/socket.ts";

const longest = 8 * 2 ** 20;
const kept = { first: 256 * 1024, last: 2 ** 20 };

function readAt(file: number, from: number, length: number): Buffer {
  const buffer = Buffer.alloc(length);
  return buffer.subarray(0, readSync(file, buffer, 0, length, from));
}

/** The process appends, so it goes on at the new end; what it writes in this very moment may be lost. */
export function trimLog(path: string): void {
  if (!existsSync(path)) return;
  const file = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    const { size } = fstatSync(file);
    if (size <= longest) return;
    const first = readAt(file, 0, kept.first);
    const last = readAt(file, size - kept.last, kept.last);
    const gap = Buffer.from(`\n[${size - kept.first - kept.last} bytes are left out here]\n`);
    ftruncateSync(file, 0);
    writeSync(file, Buffer.concat([first, gap, last]), 0, null, 0);
  } finally {
    closeSync(file);
  }
}

/** Null: there is no such log. Bytes that are no UTF-8 show as U+FFFD. */
export async function readLogFile(folder: Folder, { previous = false, tail }: ReadLogOptions): Promise<string | null> {
  const path = previous ? folder.previousConsole : folder.console;
  if (!existsSync(path)) return null;
  const text = await readFile(path, { encoding: "utf8", flag: constants.O_RDONLY | constants.O_NOFOLLOW });
  return tail === undefined ? text : lastLines(text, tail);
}

export function lastLines(text: string, count: number): string {
  if (count <= 0) return "";
  let from = text.endsWith("\n") ? text.length - 1 : text.length;
  for (let left = count; left > 0 && from >= 0; left--) from = text.lastIndexOf("\n", from - 1);
  return text.slice(from + 1);
}

/**
 * `BRUME-READY` is what images say whose first boot is over (`readyMark`), perhaps behind a prompt that stands there already; the
 * small Linux says `READY` when it can be reached.
 */
const marks: readonly { readonly stage: BootStage; readonly mark: RegExp }[] = [
  { stage: "ready", mark: /BRUME-READY instance=/ },
  { stage: "login", mark: /login: ?$|^READY /m },
];
const rank: Readonly<Record<BootStage, number>> = { starting: 0, login: 1, ready: 2 };

export interface Follower {
  /** Reads on from where it was last asked. */
  stage(): BootStage;
}

export function followLog(path: string): Follower {
  let at = 0;
  let stage: BootStage = "starting";
  let rest = "";
  const look = () => {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      // It was shortened: what matters of it was read before.
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
        if (stage !== "ready") look();
      } catch {
        // Not there yet.
      }
      return stage;
    },
  };
}

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
      serials.set(id, stream);
      stream.once("close", () => serials.get(id) === stream && serials.delete(id));
      return stream;
    },
    openVnc: (id) => open(id, "vnc"),
  };
}
