/**
 * The loop that works on whatever takes time. It claims rows that are due, runs each in its worker, keeps their leases,
 * and sleeps until the next one comes due. Commits of this process wake it at once; those of others, which share a
 * PostgreSQL, are found by looking now and then. Any number of engines may share a database: each row has one worker.
 */

import type { Clock, ClockStep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Tx } from "../store/db.ts";
import type { Alarm } from "./alarm.ts";
import { createAlarm } from "./alarm.ts";
import { bringBack, createStepMeter, moveTimes } from "./clockstep.ts";
import type { ObservedStore } from "./commit.ts";
import type { Flow, Reconciler } from "./flow.ts";
import { claim, endLeases, findCancels, LostLease, nextDue, renew } from "./lease.ts";
import type { HeldLease, RunContext } from "./run.ts";
import { runFlow, runReconciler } from "./run.ts";
import type { Ended } from "./task.ts";
import { requestReconcile } from "./task.ts";
import type { Row } from "./view.ts";
import { createWaiters } from "./waiters.ts";

/** Milliseconds before the next look after the database failed. */
const retryAfter = 1_000;

export interface EngineOptions {
  readonly store: ObservedStore;
  readonly flows: readonly Flow[];
  readonly reconcilers: readonly Reconciler[];
  readonly clock: Clock;
  /** In [0, 1). Spreads pauses and names leases. */
  readonly random: () => number;
  readonly log: Log;
  /** Rows worked on at the same time. */
  readonly lanes?: number;
  /**
   * No other engine can be alive on this database, as with SQLite and one service: what a dead one held is taken over at once
   * instead of at the end of its lease.
   */
  readonly alone?: boolean;
  /** Moves times of others, in the transaction in which the engine moves its own. */
  readonly onClockSet?: (tx: Tx, step: ClockStep) => Promise<void>;
  /** Milliseconds after which another engine takes over from one that is silent. */
  readonly lease?: number;
  /** Milliseconds between looks for the work of other processes. */
  readonly poll?: number;
  readonly alarm?: Alarm;
}

export interface Engine {
  /** Begins to claim. */
  run(): void;
  /** Looks for work now. Needed only after changes that did not go through `start`, `nudge` or `cancel`. */
  wake(): void;
  /** Claims nothing more and resolves when all steps are over and all leases given back; after `within` milliseconds (10 s) steps are interrupted. */
  drain(within?: number): Promise<void>;
  /** Resolves when nothing is being worked on and nothing is due. */
  idle(): Promise<void>;
  readonly ended: Ended;
}

export function createEngine(options: EngineOptions): Engine {
  const { store, reconcilers, clock, random, log, lanes = 128, lease = 9_000, alone = false } = options;
  const { poll = store.processes === "one" ? 10_000 : 1_000, alarm = createAlarm(clock) } = options;
  const flows = new Map(options.flows.map((flow) => [flow.name, flow]));
  const reconcilerOf = new Map(reconcilers.map((reconciler) => [reconciler.name, reconciler]));
  const names = [...new Set([...flows.keys(), ...reconcilerOf.keys()])];
  if (names.length < options.flows.length + reconcilers.length)
    throw new Error("two flows or reconcilers share a name");
  const narrow = new Map(reconcilers.filter((each) => each.lanes < lanes).map((each) => [each.name, each.lanes]));
  const wide = names.filter((name) => !narrow.has(name));

  const self = Math.floor(random() * 2 ** 48).toString(36);
  const waiters = createWaiters(store.read, alarm, poll, log);
  const held = new Set<HeldLease>();
  let claims = 0;
  let state: "new" | "running" | "stopping" = "new";
  let began = false;
  let passing = false;
  let again = false;
  let quiet: (() => void)[] = [];
  let callOffPass = () => {};
  let callOffCare = () => {};
  let forgetCommits = () => {};
  const stepOf = createStepMeter(alarm);
  /** Of the clock, that were seen and are not stored yet. */
  const steps: ClockStep[] = [];
  let moving: Promise<void> | null = null;
  const context: RunContext = { store, alarm, random, log, lease, flows, stopping: () => state === "stopping" };

  function wake(): void {
    again = true;
    if (passing || state !== "running") return;
    passing = true;
    // One pass finds whatever else is committed in this turn.
    setImmediate(() => void pass());
  }

  async function pass(): Promise<void> {
    callOffPass();
    let next: number;
    try {
      if (!began) await begin();
      next = await takeAll();
    } catch (error) {
      log("error", "the engine cannot take its work, and tries again", { error });
      next = alarm.now() + retryAfter;
      // Whatever is waiting waits until then, or this would turn in circles.
      again = false;
    }
    passing = false;
    if (state === "running") {
      callOffPass = alarm.at(next, wake);
      if (again) wake();
    }
    settle();
  }

  /** Moves what is stored when the clock was set. Several engines on a database would do it several times. */
  function followClock(): Promise<void> {
    const by = stepOf();
    if (by !== 0) {
      log("warn", `The clock of this machine was set ${by < 0 ? "back" : "forward"} by ${Math.abs(by) / 1000} s.`);
      for (const each of held) if (!each.lost) void keep(each);
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

  /** Takes what is due, as far as lanes are free, and gives the time to look again. */
  async function takeAll(): Promise<number> {
    let next = alarm.now() + poll;
    do {
      again = false;
      await followClock();
      // A worker that is done looks again.
      const open = names.filter((name) => room(name) > 0);
      if (open.length === 0) break;
      const due = await nextDue(store.read, open);
      if (due === undefined || due.due_at > alarm.now()) next = Math.min(next, due?.due_at ?? Infinity);
      else if ((await take(due.name)) > 0) again = true;
      // Due, and not to be had: another engine is just taking it.
      else next = Math.min(next, alarm.now() + 20);
    } while (again && state === "running");
    return next;
  }

  /** How many rows of the name may be taken. */
  function room(name: string): number {
    const own = narrow.get(name) ?? lanes;
    const taken = own < lanes ? [...held].filter((each) => each.name === name).length : 0;
    return Math.min(lanes - held.size, own - taken);
  }

  /** Takes rows of the name and of those that share its lanes. */
  async function take(name: string): Promise<number> {
    const now = alarm.now();
    const alike = narrow.has(name) ? [name] : wide;
    const claimed = { names: alike, limit: room(name), lease: `${self}-${++claims}`, now, until: now + lease };
    const rows = await claim(store, claimed);
    for (const row of rows) void work(row, claimed.lease, claimed.until);
    return rows.length;
  }

  async function work(row: Row, name: string, until: number): Promise<void> {
    const mine: HeldLease = {
      id: row.id,
      name: row.name,
      lease: name,
      until,
      lost: false,
      cancel: row.cancel,
      current: null,
    };
    if (held.size === 0) care();
    held.add(mine);
    const flow = flows.get(row.name);
    const reconciler = reconcilerOf.get(row.name);
    if (flow !== undefined && (await runFlow(context, flow, row, mine))) waiters.tell(row.id, Infinity);
    if (reconciler !== undefined) waiters.tell(row.id, (await runReconciler(context, reconciler, row, mine)) ?? 0);
    held.delete(mine);
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
    began = true;
  }

  /** Renews leases long before they end, as long as anything is held. */
  function care(): void {
    callOffCare();
    callOffCare = alarm.at(alarm.now() + lease / 3, () => {
      followClock().catch((error: unknown) => log("warn", "times are moved later", { error }));
      const soon = alarm.now() + (lease * 2) / 3;
      for (const each of held) if (each.until <= soon && !each.lost) void keep(each);
      if (held.size > 0) care();
    });
  }

  async function keep(each: HeldLease): Promise<void> {
    const until = alarm.now() + lease;
    try {
      // One row a transaction: several would be locked in an order of their own.
      noteCancel(each, await store.write((tx) => renew(tx, each.id, each.lease, until)));
      each.until = until;
    } catch (error) {
      if (!(error instanceof LostLease)) return log("warn", "a lease was not renewed", { task: each.id, error });
      each.lost = true;
      each.current?.interrupt("another engine has taken over");
    }
  }

  function noteCancel(each: HeldLease, cancel: string | null): void {
    if (cancel === null || each.cancel !== null) return;
    each.cancel = cancel;
    each.current?.interrupt("canceled");
  }

  async function seeCancels(): Promise<void> {
    const ids = [...held].map((each) => each.id);
    try {
      const asked = await findCancels(store.read, ids);
      for (const each of held) noteCancel(each, asked.get(each.id) ?? null);
      await waiters.look();
    } catch (error) {
      log("warn", "cancellations are seen later", { error });
    }
    wake();
  }

  function settle(): void {
    if (held.size > 0 || passing || (again && state === "running")) return;
    const told = quiet;
    quiet = [];
    for (const tell of told) tell();
  }

  /** After another pass, so that what was committed before is seen. */
  const idle = () =>
    new Promise<void>((resolve) => {
      quiet.push(resolve);
      wake();
      settle();
    });

  return {
    run() {
      if (state !== "new") throw new Error("an engine runs once");
      state = "running";
      const task = store.onCommit("task", wake);
      const cancel = store.onCommit("cancel", () => void seeCancels());
      forgetCommits = () => {
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
      forgetCommits();
      callOffPass();
      const callOff = alarm.at(alarm.now() + within, () => {
        for (const each of held) each.current?.interrupt("the service stops");
      });
      await idle();
      callOff();
      callOffCare();
      waiters.release();
    },
    idle,
    ended: (task, { wake: seen = 0, signal } = {}) => waiters.add(task, seen, signal),
  };
}
