/**
 * The fence of an agent: the highest number that a control plane has sent. Calls with an older number are refused, so a control plane that
 * was replaced can change nothing, even if it does not know yet. The number is in a file, so it also holds after a restart of the agent.
 */
import { closeSync, fdatasyncSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { syncPathNow } from "../base/fsync.ts";
import type { Log } from "../base/log.ts";
import { AgentError } from "./error.ts";

/** Refuses control planes that a newer one has replaced. */
export interface Fence {
  /** Returns a number above all that were seen, and refuses older ones from now on. */
  next(): number;
  /**
   * Accepts a number and refuses older ones from now on. Throws `stale_fence`, `input_invalid` for a number far above the last one, and the
   * error of the disk if a newer one cannot be stored.
   */
  pass(number: number): void;
  /** Calls the listener with each number that ends older ones. Returns a function that unsubscribes. */
  onRaise(listener: (number: number) => void): () => void;
}

/** Where the number is kept while the agent does not run. */
export interface FenceStore {
  /** Returns the stored number, 0 if there is none. */
  read(): number;
  /** Stores the number on disk. Throws if that fails; the former number then counts. */
  write(number: number): void;
}

/** Digits of the number. The file has always the same length, so that a new number needs no space on a full disk, and fits one sector. */
const digits = 16;
const textOf = (number: number): string => `${String(number).padStart(digits, "0")}\n`;

/** Keeps the number in a file, which is created with the first number. Throws if its content is not a number. */
export function fenceFile(path: string): FenceStore {
  function read(): number | null {
    let text: string;
    try {
      text = readFileSync(path, "latin1");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
    const number = Number(text);
    if (!/^\d{16}\n$/.test(text) || !Number.isSafeInteger(number))
      throw new Error(
        `${path} must contain a number of ${digits} digits. Remove it if no other control plane uses this host.`,
      );
    return number;
  }
  let isThere = read() !== null;
  function create(text: string): void {
    const draft = `${path}.draft`;
    const file = openSync(draft, "w", 0o600);
    try {
      writeSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(draft, path);
    syncPathNow(dirname(path));
    isThere = true;
  }
  return {
    read: () => read() ?? 0,
    write(number) {
      const text = textOf(number);
      if (!isThere) return create(text);
      const file = openSync(path, "r+");
      try {
        writeSync(file, text, 0);
        fdatasyncSync(file);
      } finally {
        closeSync(file);
      }
    },
  };
}

/** Largest step to a newer number: a hostile control plane must not use up all numbers, since the last one is kept. */
const mostStep = 1_000_000;

/** Creates the fence of an agent that has just started. Without `store` it lasts as long as the agent. */
export function createFence(log: Log, store?: FenceStore): Fence {
  let highest = store?.read() ?? 0;
  const listeners = new Set<(number: number) => void>();
  const raise = (number: number): void => {
    highest = number;
    for (const listener of listeners) listener(number);
  };
  return {
    next() {
      const number = highest + 1;
      try {
        store?.write(number);
      } catch (error) {
        // On a disk that accepts no writes, reads are served nevertheless.
        log("warn", "The number of the control plane was not stored, and holds until the agent ends.", { error });
      }
      raise(number);
      return number;
    },
    pass(number) {
      if (number < highest)
        throw new AgentError(
          "stale_fence",
          `another control plane with the newer number ${highest} uses this host; number ${number} is refused: stop this control plane`,
        );
      if (number === highest) return;
      if (number > highest + mostStep)
        throw new AgentError(
          "input_invalid",
          `the number of a control plane must be at most ${mostStep} above the last one, ${highest}`,
        );
      store?.write(number);
      raise(number);
    },
    onRaise(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
