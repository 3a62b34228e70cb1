/**
 * The loop that runs flows and reconcilers. It claims due task rows, runs each in a worker, renews their leases, and sleeps until the
 * next row is due. Commits of this process wake it immediately; those of other processes on the same PostgreSQL are found by polling.
 * Any number of engines may share a database: each row has one worker.
 */

import type { Clock, ClockStep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { createTurn } from "../base/turn.ts";
import type { Tx } from "../store/db.ts";
import type { Alarm } from "./alarm.ts";
import { createAlarm } from "./alarm.ts";
import { bringBack, createStepMeter, moveTimes } from "./clockstep.ts";
import type { ObservedStore } from "./commit.ts";
import type { Flow, Reconciler } from "./flow.ts";
import { createDueTasks, type DueTasks, endLeases, findCancels, LostLease, renew } from "./lease.ts";
import type { HeldLease, RunContext } from "./run.ts";
import { runFlow, runReconciler } from "./run.ts";
import type { Ended } from "./task.ts";
import { requestReconcile } from "./task.ts";
import type { Row } from "./view.ts";
import { createWaiters } from "./waiters.ts";

/** Milliseconds before the next pass after the database failed. */
const retryAfter = 1_000;

/** Dependencies and limits of the engine. */
export interface EngineOptions {
  readonly store: ObservedStore;
  readonly flows: readonly Flow[];
  readonly reconcilers: readonly Reconciler[];
  readonly clock: Clock;
  /** In [0, 1). Varies pauses and creates lease names. */
  readonly random: () => number;
  readonly log: Log;
  /** Rows worked on at the same time. Default 128. */
  readonly concurrency?: number;
  /** No other engine uses this database. Rows of a dead engine are then taken over at the start instead of at the end of their leases. */
  readonly alone?: boolean;
  /** Moves the times of features after the clock was set, in the same transaction as those of the engine. */
  readonly onClockSet?: (tx: Tx, step: ClockStep) => Promise<void>;
  /** Milliseconds of a lease: after it, another engine takes over the row. Default 9000. */
  readonly lease?: number;
  /** Milliseconds between polls for the work of other processes. Default 10,000 if this process is the only one, else 1000. */
  readonly poll?: number;
  readonly alarm?: Alarm;
}

/** The workflow engine: runs flows and reconcilers from their rows. */
export interface Engine {
  /** Starts claiming rows. Throws on the second call. */
  run(): void;
  /** Starts a pass now. Needed only after changes that did not use `start`, `requestReconcile` or `cancel`. */
  wake(): void;
  /** Stops claiming. Resolves when all steps have ended and all leases are released. Steps are interrupted after `within` ms (default 10 s). */
  drain(within?: number): Promise<void>;
  /** Resolves when no row is being worked on and none is due. */
  idle(): Promise<void>;
  readonly ended: Ended;
}

/** Creates an engine for these flows and reconcilers. Throws if two of them have the same name. It starts with `run`. */
export function createEngine(options: EngineOptions): Engine {
  const { store, reconcilers, clock, random, log, concurrency = 128, lease = 9_000, alone = false } = options;
  const { poll = store.processes === "one" ? 10_000 : 1_000, alarm = createAlarm(clock) } = options;
  const flows = new Map(options.flows.map((flow) => [flow.name, flow]));
  const reconcilerOf = new Map(reconcilers.map((reconciler) => [reconciler.name, reconciler]));
  const names = [...new Set([...flows.keys(), ...reconcilerOf.keys()])];
  if (names.length < options.flows.length + reconcilers.length)
    throw new Error("two flows or reconcilers have the same name");
  const limits = new Map(
    reconcilers.filter((each) => each.concurrency < concurrency).map((each) => [each.name, each.concurrency]),
  );
  /** Names whose rows are claimed together, with the queries on them: each limited one, and those without a limit. */
  const classes: readonly { readonly names: readonly string[]; readonly due: DueTasks }[] = [
    ...[...limits.keys()].map((name) => ({ names: [name], due: createDueTasks(name, []) })),
    { names: names.filter((name) => !limits.has(name)), due: createDueTasks(null, [...limits.keys()]) },
  ].filter((each) => each.names.length > 0);

  const self = Math.floor(random() * 2 ** 48).toString(36);
  const waiters = createWaiters(store.read, alarm, poll, log);
  const held = new Set<HeldLease>();
  let claims = 0;
  let state: "new" | "running" | "stopping" = "new";
  let hasBegun = false;
  let passing = false;
  let again = false;
  let idlers: (() => void)[] = [];
  let cancelPass = () => {};
  let cancelRenewal = () => {};
  let unsubscribe = () => {};
  const stepOf = createStepMeter(alarm);
  /** Steps of the clock that are detected and not stored yet. */
  const steps: ClockStep[] = [];
  let moving: Promise<void> | null = null;
  const turn = createTurn();
  const context: RunContext = { store, alarm, random, log, lease, flows, turn, stopping: () => state === "stopping" };

  function wake(): void {
    again = true;
    if (passing || state !== "running") return;
    passing = true;
    // One pass finds all commits of this turn of the event loop.
    setImmediate(() => void pass());
  }

  async function pass(): Promise<void> {
    cancelPass();
    let next: number;
    try {
      if (!hasBegun) await begin();
      next = await takeAll();
    } catch (error) {
      log("error", `The engine could not claim tasks; retrying in ${retryAfter / 1000} s.`, { error });
      next = alarm.now() + retryAfter;
      // Otherwise `wake` below would retry without a pause.
      again = false;
    }
    passing = false;
    if (state === "running") {
      cancelPass = alarm.at(next, wake);
      if (again) wake();
    }
    settle();
  }

  /** Moves stored times when the clock was set. Only with `alone`: several engines on a database would each do it. */
  function followClock(): Promise<void> {
    const by = stepOf();
    if (by !== 0) {
      log("warn", `The clock of the host was set ${by < 0 ? "back" : "forward"} by ${Math.abs(by) / 1000} s.`);
      for (const each of held) if (!each.lost) void renewHeld(each);
      if (alone) steps.push({ by, now: alarm.now() });
    }
    if (steps.length > 0) moving ??= move().finally(() => (moving = null));
    return moving ?? Promise.resolve();
  }

  async function move(): Promise<void> {
    for (let step = steps[0]; step !== undefined; step = steps[0]) {
      const present = step;
      await store.write(async (tx) => {
        await moveTimes(tx, present);
        await options.onClockSet?.(tx, present);
      });
      steps.shift();
    }
  }

  /** Claims due rows within the limits of concurrency. Returns the time of the next pass, in milliseconds since 1970. */
  async function takeAll(): Promise<number> {
    let next = alarm.now() + poll;
    do {
      again = false;
      await followClock();
      // Without capacity, the next worker that ends starts a pass.
      for (const each of classes) {
        if (capacity(each.names[0]) <= 0) continue;
        const due = await each.due.next(store.read, each.names);
        if (due === undefined || due.due_at > alarm.now()) next = Math.min(next, due?.due_at ?? Infinity);
        else if ((await take(each)) > 0) again = true;
        // Due, but another engine is claiming it.
        else next = Math.min(next, alarm.now() + 20);
      }
    } while (again && state === "running");
    return next;
  }

  /** Returns how many more rows of this name may be claimed. */
  function capacity(name = ""): number {
    const limit = limits.get(name) ?? concurrency;
    const taken = limit < concurrency ? [...held].filter((each) => each.name === name).length : 0;
    return Math.min(concurrency - held.size, limit - taken);
  }

  /** Claims due rows of a class. Returns their number. */
  async function take({ names: alike, due }: (typeof classes)[number]): Promise<number> {
    const now = alarm.now();
    const claimed = { names: alike, limit: capacity(alike[0]), lease: `${self}-${++claims}`, now, until: now + lease };
    const rows = await due.claim(store, claimed);
    for (const row of rows) void work(row, claimed.lease, claimed.until);
    return rows.length;
  }

  async function work(row: Row, name: string, until: number): Promise<void> {
    const lease: HeldLease = {
      id: row.id,
      name: row.name,
      lease: name,
      until,
      lost: false,
      cancel: row.cancel,
      current: null,
    };
    if (held.size === 0) planRenewal();
    held.add(lease);
    const flow = flows.get(row.name);
    const reconciler = reconcilerOf.get(row.name);
    if (flow !== undefined && (await runFlow(context, flow, row, lease))) waiters.notify(row.id, Infinity);
    if (reconciler !== undefined) waiters.notify(row.id, (await runReconciler(context, reconciler, row, lease)) ?? 0);
    held.delete(lease);
    wake();
    settle();
  }

  async function begin(): Promise<void> {
    const single = reconcilers.filter((reconciler) => reconciler.single);
    if (single.length > 0 || alone) {
      await store.write(async (tx) => {
        if (alone) await endLeases(tx, alarm.now());
        if (alone) await bringBack(tx, alarm.now(), reconcilers, options.flows);
        for (const reconciler of single) await requestReconcile(tx, reconciler, 0);
      });
    }
    hasBegun = true;
  }

  /** Renews leases after a third of their time, while rows are held. */
  function planRenewal(): void {
    cancelRenewal();
    cancelRenewal = alarm.at(alarm.now() + lease / 3, () => {
      followClock().catch((error: unknown) =>
        log("warn", "Could not move stored times after a step of the clock; the next pass tries again.", { error }),
      );
      const soon = alarm.now() + (lease * 2) / 3;
      for (const each of held) if (each.until <= soon && !each.lost) void renewHeld(each);
      if (held.size > 0) planRenewal();
    });
  }

  async function renewHeld(each: HeldLease): Promise<void> {
    const until = alarm.now() + lease;
    try {
      // One row per transaction: several locks in arbitrary order could deadlock.
      noteCancel(each, await store.write((tx) => renew(tx, each.id, each.lease, until)));
      each.until = until;
    } catch (error) {
      if (!(error instanceof LostLease))
        return log("warn", `Could not renew the lease of task ${each.id}.`, { task: each.id, error });
      each.lost = true;
      each.current?.interrupt("another engine has taken over");
    }
  }

  function noteCancel(each: HeldLease, cancel: string | null): void {
    if (cancel === null || each.cancel !== null) return;
    each.cancel = cancel;
    each.current?.interrupt("canceled");
  }

  async function readCancels(): Promise<void> {
    const ids = [...held].map((each) => each.id);
    try {
      const reasons = await findCancels(store.read, ids);
      for (const each of held) noteCancel(each, reasons.get(each.id) ?? null);
      await waiters.poll();
    } catch (error) {
      log("warn", "Could not read cancellations; the next renewal of a lease returns them.", { error });
    }
    wake();
  }

  function settle(): void {
    if (held.size > 0 || passing || (again && state === "running")) return;
    const resolved = idlers;
    idlers = [];
    for (const resolve of resolved) resolve();
  }

  /** Starts a pass first, so that earlier commits are seen. */
  const idle = () =>
    new Promise<void>((resolve) => {
      idlers.push(resolve);
      wake();
      settle();
    });

  return {
    run() {
      if (state !== "new") throw new Error("the engine is already running: `run` may be called once");
      state = "running";
      const task = store.onCommit("task", wake);
      const cancel = store.onCommit("cancel", () => void readCancels());
      unsubscribe = () => {
        task();
        cancel();
      };
      wake();
    },
    wake,
    async drain(within = 10_000) {
      const before = state;
      state = "stopping";
      if (before === "new") return;
      unsubscribe();
      cancelPass();
      const cancelTimer = alarm.at(alarm.now() + within, () => {
        for (const each of held) each.current?.interrupt("the service stops");
      });
      await idle();
      cancelTimer();
      cancelRenewal();
      waiters.release();
    },
    idle,
    ended: (task, { wake: seen = 0, signal } = {}) => waiters.add(task, seen, signal),
  };
}
