/**
 * Servers that run: each a process, the monitor that we hold of it, and what is told when it ends. A run ends in one of three ways
 * (ordered, by the guest, or neither), and whichever it is, one function closes the books: who asked is in `ending` before anything
 * is done, so that an end that nobody asked for is never taken for one that somebody did.
 */

import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Child, Exec } from "../../exec.ts";
import { type Follower, followLog } from "../console/log.ts";
import type { Exit, PowerEvent } from "../interface.ts";
import { type Folder, readState, type State, writeState } from "./folder.ts";
import { pollMemory, runState, uuidOf } from "./monitor.ts";
import { endProcess, waitForEnd } from "./process.ts";
import { createQmp, pick, type Qmp } from "./qmp.ts";
import { isAbsent, openSocket } from "./socket.ts";

export interface Run {
  readonly id: number;
  readonly folder: Folder;
  readonly child: Child;
  readonly qmp: Qmp;
  state: State;
  /** Resolves when the state is in its file. */
  written: Promise<void>;
  readonly log: Follower;
  /** When it last answered. */
  heardAt: number;
  /** Resolves when the process is gone and that is written down. */
  readonly over: Promise<void>;
  /** Why it is about to end; null while it should not. */
  ending: Exit["reason"] | null;
}

export interface RunOptions {
  readonly exec: Exec;
  readonly now: () => number;
  /** After the books are closed. */
  readonly ended: (run: Run) => Promise<void> | void;
  readonly tell: (event: PowerEvent) => void;
  readonly fault: (sentence: string, error: unknown) => void;
}

export interface Runs {
  readonly all: ReadonlyMap<number, Run>;
  /** From now on this process is watched. */
  hold(id: number, folder: Folder, child: Child, qmp: Qmp, state: State): Run;
  /**
   * Takes over the process that an earlier service started. Null when it is gone by the time this returns: because it was never told
   * to go on, or its guest had switched itself off. Rejects when it does not answer.
   */
  adopt(id: number, folder: Folder, child: Child): Promise<Run | null>;
  /** Cuts the power. Resolves when it is written down. */
  end(run: Run, reason: Exit["reason"]): Promise<void>;
  /** Changes what is remembered of a run. Resolves when it is written down. */
  remember(run: Run, change: Partial<State>): Promise<void>;
  /** A run that nobody saw the end of. */
  bury(folder: Folder, state: State, exit: Omit<Exit, "at">): Promise<void>;
  close(): void;
}

/** Seconds between two looks at how much memory a guest uses. */
const memoryPoll = 10;

/** The last words of the process, which are those of this start. */
export function lastOutput(folder: Folder): string {
  try {
    return readFileSync(folder.output, "utf8").trim().slice(-500);
  } catch {
    return "";
  }
}

export async function callMonitor(folder: Folder, limit?: number): Promise<Qmp> {
  return createQmp(await openSocket(folder.run, "qmp", limit), limit);
}

export function createRuns({ exec, now, ended, tell, fault }: RunOptions): Runs {
  const all = new Map<number, Run>();
  let closing = false;

  async function bury(folder: Folder, state: State, exit: Omit<Exit, "at">): Promise<void> {
    await writeState(folder, { ...state, exit: { ...exit, at: now() } });
  }

  /** One writer of the file after the other: a process may end while its share changes. */
  function remember(run: Run, change: Partial<State>): Promise<void> {
    run.state = { ...run.state, ...change };
    run.written = run.written.catch(() => {}).then(() => writeState(run.folder, run.state));
    return run.written;
  }

  /** The monitor is closed: the process is gone, or has no business going on without it. */
  async function closeBooks(run: Run): Promise<void> {
    run.ending ??= "died";
    if (!(await waitForEnd(exec, run.child, 2000))) await endProcess(exec, run.child);
    const reason = run.ending;
    const detail = reason === "died" ? lastOutput(run.folder) || "the process was killed from outside" : "";
    const exit: Exit = { reason, at: now(), detail };
    try {
      // Who looks before it is written down still finds a run, not one that ended for no reason.
      await remember(run, { exit }).finally(() => all.delete(run.id));
      await ended(run);
    } catch (error) {
      fault(`The end of server ${run.id} is not tidied up.`, error);
    }
    tell({ id: run.id, boot: run.state.boot, exit });
  }

  function hold(id: number, folder: Folder, child: Child, qmp: Qmp, state: State): Run {
    const over = qmp.closed.then(() => (closing ? undefined : closeBooks(run)));
    over.catch((error: unknown) => fault(`Server ${id} does not end.`, error));
    const log = followLog(folder.console);
    const run: Run = {
      id,
      folder,
      child,
      qmp,
      state,
      written: Promise.resolve(),
      log,
      heardAt: performance.now(),
      over,
      ending: null,
    };
    all.set(id, run);
    qmp.onEvent(({ name, data }) => {
      if (name === "SHUTDOWN" && pick(data, "guest") === true) end(run, "guest").catch(() => {});
    });
    pollMemory(qmp, memoryPoll).catch(() => {});
    return run;
  }

  async function end(run: Run, reason: Exit["reason"]): Promise<void> {
    run.ending ??= reason;
    // It answers, or is gone before it could.
    await run.qmp.run("quit", undefined, 2000).catch(() => {});
    if (!(await waitForEnd(exec, run.child, 2000))) await endProcess(exec, run.child);
    run.qmp.close();
    await run.over;
  }

  return {
    all,
    hold,
    remember,
    bury,
    end,
    async adopt(id, folder, child) {
      const state = readState(folder);
      const told = state !== null && state.child.pid === child.pid && state.child.born === child.born;
      const qmp = await callMonitor(folder, 2000).catch((error: unknown) => {
        if (told || !isAbsent(error)) throw error;
        return null;
      });
      // It has not come as far as its monitor, so nobody has told it to go on.
      if (qmp === null) return endProcess(exec, child).then(() => null);
      try {
        const status = state !== null && (await uuidOf(qmp)) === state.uuid ? await runState(qmp) : "stranger";
        if (state !== null && status !== "stranger" && status !== "prelaunch" && status !== "shutdown") {
          return hold(id, folder, child, qmp, state);
        }
        qmp.close();
        await endProcess(exec, child);
        if (state !== null && status === "shutdown") await bury(folder, state, { reason: "guest", detail: "" });
        return null;
      } catch (error) {
        qmp.close();
        throw error;
      }
    },
    close() {
      closing = true;
      for (const { qmp } of all.values()) qmp.close();
      all.clear();
    },
  };
}

/** Milliseconds between two presses: a guest that is just booting does not see the first. */
const pressAgain = 5000;

export async function askToStop(run: Run, signal: AbortSignal | undefined): Promise<boolean> {
  const off = run.over.then(() => true);
  const late = new Promise<false>((resolve) => {
    if (signal?.aborted === true) resolve(false);
    signal?.addEventListener("abort", () => resolve(false), { once: true });
  });
  for (;;) {
    if (run.ending === null) await run.qmp.run("system_powerdown").catch(() => {});
    const pause = sleep(pressAgain, null, { ref: false });
    const result = await Promise.race([off, late, pause]);
    if (result !== null) return result;
  }
}
