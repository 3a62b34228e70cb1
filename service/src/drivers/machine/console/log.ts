/**
 * Reads the serial logs of servers, and opens their consoles. The boot progress of a guest is also read from the log, since every image
 * prints a mark at the end of its boot.
 */
import { closeSync, constants, existsSync, fstatSync, openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { readAt } from "../../../base/logfile.ts";
import type { BootStage, Consoles, ReadLogOptions, Stream } from "../interface.ts";
import type { Folder } from "../qemu/folder.ts";
import { openSocket } from "../qemu/socket.ts";

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
