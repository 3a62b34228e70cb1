/**
 * Tracks running VMs: the process, its monitor connection and its state file. A run ends on request, by the guest or by a crash.
 * `finishRun` handles all three. The requested reason is stored in `ending` before anything is done, so an unrequested end is never
 * mistaken for a requested one.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { endOfLog } from "../../../base/logfile.ts";
import type { Child, Exec } from "../../exec.ts";
import { type Follower, followLog } from "../console/log.ts";
import type { Exit, PowerEvent } from "../interface.ts";
import { type Folder, readState, type State, writeState } from "./folder.ts";
import { thaw } from "./guestagent.ts";
import { pollMemory, runState, uuidOf } from "./monitor.ts";
import { endProcess, waitForEnd } from "./process.ts";
import { createQmp, pick, type Qmp } from "./qmp.ts";
import { isAbsent, openSocket } from "./socket.ts";

/** A running VM. */
export interface Run {
  readonly id: number;
  readonly folder: Folder;
  readonly child: Child;
  readonly qmp: Qmp;
  state: State;
  /** Resolves when the last change of the state is in its file. */
  written: Promise<void>;
  readonly log: Follower;
  /** Time of the last response, by `performance.now()`. */
  respondedAt: number;
  /** Resolves when the process has ended and its exit is stored. */
  readonly over: Promise<void>;
  /** Reason of a requested end; null while it should run. */
  ending: Exit["reason"] | null;
}

/** Dependencies of `createRuns`; `logError` logs errors of work that has no caller. */
export interface RunOptions {
  readonly exec: Exec;
  readonly now: () => number;
  /** Returns another number at each call, to synchronize with the guest agent. */
  readonly sync: () => number;
  /** Called after the exit of a run is stored. */
  readonly ended: (run: Run) => Promise<void> | void;
  readonly publish: (event: PowerEvent) => void;
  readonly logError: (sentence: string, error: unknown) => void;
}

/** The table of running VMs. */
export interface Runs {
  readonly all: ReadonlyMap<number, Run>;
  /** Starts to track a process. */
  track(id: number, folder: Folder, child: Child, qmp: Qmp, state: State): Run;
  /**
   * Adopts a process that an earlier service started, and thaws its guest if a freeze is recorded. Resolves to null if the process was
   * ended: it had not received `cont`, or its guest had shut down. Rejects if it does not respond.
   */
  adopt(id: number, folder: Folder, child: Child): Promise<Run | null>;
  /** Ends the VM at once. Resolves when the exit is stored. */
  end(run: Run, reason: Exit["reason"]): Promise<void>;
  /** Changes the stored state of a run. Resolves when it is in the file. */
  updateState(run: Run, change: Partial<State>): Promise<void>;
  /** Stores the exit of a run that ended while it was not tracked. */
  recordExit(folder: Folder, state: State, exit: Omit<Exit, "at">): Promise<void>;
  /** Closes all monitor connections; the VMs continue to run. */
  close(): void;
}

/** Seconds between two reports of memory usage by the guest. */
const memoryPoll = 10;

/** Returns the last 500 characters of the process's output since its start; "" if there are none. */
export function lastOutput(folder: Folder): string {
  try {
    return endOfLog(folder.output, 500);
  } catch {
    return "";
  }
}

/** Connects to the monitor of a VM. `limit`: ms for the connection and for the banner of QEMU. */
export async function callMonitor(folder: Folder, limit?: number): Promise<Qmp> {
  return createQmp(await openSocket(folder.run, "qmp", limit), limit);
}

/** Creates an empty table of running VMs. */
export function createRuns({ exec, now, sync, ended, publish, logError }: RunOptions): Runs {
  const all = new Map<number, Run>();
  let closing = false;

  async function recordExit(folder: Folder, state: State, exit: Omit<Exit, "at">): Promise<void> {
    await writeState(folder, { ...state, exit: { ...exit, at: now() } });
  }

  /** Writes of one file are serialized: a process may end while its share changes. */
  function updateState(run: Run, change: Partial<State>): Promise<void> {
    run.state = { ...run.state, ...change };
    run.written = run.written.catch(() => {}).then(() => writeState(run.folder, run.state));
    return run.written;
  }

  /** Stores the exit after the monitor was closed. A process without a monitor connection is ended. */
  async function finishRun(run: Run): Promise<void> {
    run.ending ??= "died";
    if (!(await waitForEnd(exec, run.child, 2000))) await endProcess(exec, run.child);
    const reason = run.ending;
    const detail = reason === "died" ? lastOutput(run.folder) || "the process was killed from outside" : "";
    const exit: Exit = { reason, at: now(), detail };
    // Until the exit is stored, observers find a run instead of an end without a reason.
    await updateState(run, { exit })
      .finally(() => all.delete(run.id))
      .catch((error: unknown) => logError(`Could not record the end of server ${run.id}.`, error));
    try {
      await ended(run);
    } catch (error) {
      logError(`Could not clean up after the end of server ${run.id}.`, error);
    }
    publish({ id: run.id, boot: run.state.boot, exit });
  }

  function track(id: number, folder: Folder, child: Child, qmp: Qmp, state: State): Run {
    const over = qmp.closed.then(() => (closing ? undefined : finishRun(run)));
    over.catch((error: unknown) => logError(`Could not end server ${id}.`, error));
    const log = followLog(folder.console);
    const run: Run = {
      id,
      folder,
      child,
      qmp,
      state,
      written: Promise.resolve(),
      log,
      respondedAt: performance.now(),
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
    // The process may end before it responds.
    await run.qmp.run("quit", undefined, 2000).catch(() => {});
    if (!(await waitForEnd(exec, run.child, 2000))) await endProcess(exec, run.child);
    run.qmp.close();
    await run.over;
  }

  return {
    all,
    track,
    updateState,
    recordExit,
    end,
    async adopt(id, folder, child) {
      const state = readState(folder);
      const isRecorded = state !== null && state.child.pid === child.pid && state.child.born === child.born;
      const qmp = await callMonitor(folder, 2000).catch((error: unknown) => {
        if (isRecorded || !isAbsent(error)) throw error;
        return null;
      });
      // It has no monitor yet, so it never received `cont`.
      if (qmp === null) return endProcess(exec, child).then(() => null);
      try {
        const status = state !== null && (await uuidOf(qmp)) === state.uuid ? await runState(qmp) : "unknown";
        if (state !== null && status !== "unknown" && status !== "prelaunch" && status !== "shutdown") {
          const run = track(id, folder, child, qmp, state);
          // The earlier service may have ended between a freeze and its thaw.
          void thaw(run, sync);
          return run;
        }
        qmp.close();
        await endProcess(exec, child);
        if (state !== null && status === "shutdown") await recordExit(folder, state, { reason: "guest", detail: "" });
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

/** Milliseconds between two presses of the power button: a guest that is still booting ignores the first. */
const pressAgain = 5000;

/** Presses the power button until the guest is off (true) or `signal` aborts (false). */
export async function requestShutdown(run: Run, signal: AbortSignal | undefined): Promise<boolean> {
  const off = run.over.then(() => true);
  const aborted = new Promise<false>((resolve) => {
    if (signal?.aborted === true) resolve(false);
    signal?.addEventListener("abort", () => resolve(false), { once: true });
  });
  for (;;) {
    if (run.ending === null) await run.qmp.run("system_powerdown").catch(() => {});
    const pause = sleep(pressAgain, null, { ref: false });
    const result = await Promise.race([off, aborted, pause]);
    if (result !== null) return result;
  }
}
