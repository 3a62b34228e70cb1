/**
 * Fixture of the engine tests: resources outside the database that a flow creates and removes, so that tests can count leftovers; a
 * simulated clock; and a store that can crash at any write, as a process does.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Log } from "../../service/src/base/log.ts";
import type { Alarm } from "../../service/src/engine/alarm.ts";
import type { ObservedStore } from "../../service/src/engine/commit.ts";
import { observeCommits } from "../../service/src/engine/commit.ts";
import type { Engine } from "../../service/src/engine/engine.ts";
import { createEngine } from "../../service/src/engine/engine.ts";
import { append } from "../../service/src/engine/event.ts";
import type { Flow, Reconciler, Step } from "../../service/src/engine/flow.ts";
import { defineReconciler, flow } from "../../service/src/engine/flow.ts";
import type { Task } from "../../service/src/engine/task.ts";
import { find, start } from "../../service/src/engine/task.ts";
import type { Store } from "../../service/src/store/db.ts";
import type { Database, Kind } from "./databases.ts";
import { databases, startDatabase } from "./databases.ts";

/** A simulated clock with timers. */
export interface TestAlarm extends Alarm {
  /** Advances the clock to the next timer and calls it. Returns false if there is none. */
  step(): boolean;
  /** Advances the clock and calls all timers that become due. */
  pass(milliseconds: number): void;
}

/** Creates a simulated clock; `now` is its first time, in ms since 1970. */
export function createTestAlarm(now = Date.UTC(2026, 10, 20)): TestAlarm {
  let calls: { time: number; call: () => void }[] = [];
  let time = now;
  function step(until = Infinity): boolean {
    const next = calls.reduce((first, each) => (each.time < first.time ? each : first), { time: Infinity, call() {} });
    if (next.time > until || next.time === Infinity) return false;
    calls = calls.filter((each) => each !== next);
    time = Math.max(time, next.time);
    next.call();
    return true;
  }
  return {
    now: () => time,
    at(when, call) {
      const entry = { time: when, call };
      calls.push(entry);
      return () => {
        calls = calls.filter((each) => each !== entry);
      };
    },
    step: () => step(),
    pass(milliseconds) {
      const until = time + milliseconds;
      while (step(until));
      time = until;
    },
  };
}

/** A store whose process can be killed: after that no call resolves and nothing is stored. */
export interface CrashableStore extends ObservedStore {
  /** Crashes at write number `count` from now: before it is stored, or after it is stored but before it is confirmed. */
  crashAt(count: number, moment: "before" | "after"): void;
  /** Kills the process now. */
  kill(): void;
  readonly dead: boolean;
  /** Number of running writes. */
  readonly pending: number;
  /** Resolves when the process is killed. */
  readonly killed: Promise<void>;
}

const never = () => new Promise<never>(() => {});

/** Wraps a store, so that a test can crash it. */
export function createCrashableStore(store: Store): CrashableStore {
  const { promise: killed, resolve } = Promise.withResolvers<void>();
  let dead = false;
  let writes = 0;
  let pending = 0;
  let plannedCrash: { at: number; moment: "before" | "after" } | null = null;
  function kill(): void {
    dead = true;
    resolve();
  }
  const inner: Store = {
    kind: store.kind,
    processes: store.processes,
    foreignWrites: () => store.foreignWrites(),
    alone: store.alone,
    read: store.read,
    snapshot: () => store.snapshot(),
    unavailable: () => store.unavailable(),
    blocked: () => store.blocked(),
    close: () => store.close(),
    async write(work) {
      if (dead) return never();
      writes++;
      const fatal = plannedCrash?.at === writes ? plannedCrash.moment : null;
      if (fatal === "before") {
        kill();
        return never();
      }
      pending++;
      try {
        const result = await store.write((tx) => (dead ? Promise.reject(new Error("dead")) : work(tx)));
        if (fatal === "after") kill();
        if (!dead) return result;
      } catch (error) {
        if (!dead) throw error;
      } finally {
        pending--;
      }
      return never();
    },
  };
  return {
    ...observeCommits(inner),
    crashAt: (count, moment) => {
      plannedCrash = { at: writes + count, moment };
    },
    kill,
    killed,
    get dead() {
      return dead;
    },
    get pending() {
      return pending;
    },
  };
}

/** Named resources that flows create and remove, such as disks and VMs. */
export interface EngineFixture {
  readonly resources: Set<string>;
  /** Number of creations and removals that had an effect. */
  readonly changes: number;
  /** Largest number of steps that worked on one subject at the same time. */
  readonly busiest: number;
  /** Creates the resource unless it exists. */
  ensure(subject: number, name: string): Promise<void>;
  /** Removes the resource if it exists. */
  ensureGone(subject: number, name: string): Promise<void>;
}

/** Resolves in the next turn of the event loop. */
export const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

export function createEngineFixture(): EngineFixture {
  const resources = new Set<string>();
  const busy = new Map<number, number>();
  let changes = 0;
  let busiest = 0;
  async function occupy(subject: number, act: () => boolean): Promise<void> {
    const now = (busy.get(subject) ?? 0) + 1;
    busy.set(subject, now);
    busiest = Math.max(busiest, now);
    await turn();
    if (act()) changes++;
    await turn();
    busy.set(subject, (busy.get(subject) ?? 1) - 1);
  }
  return {
    resources,
    get changes() {
      return changes;
    },
    get busiest() {
      return busiest;
    },
    ensure: (subject, name) => occupy(subject, () => !resources.has(name) && resources.add(name) !== undefined),
    ensureGone: (subject, name) => occupy(subject, () => resources.delete(name)),
  };
}

export interface FixtureInput {
  readonly size: number;
}

/** A flow of three steps: each creates a resource and stores an event, and its undo removes the resource. */
export function createFixtureFlow(fixture: EngineFixture, spec: Partial<Flow<FixtureInput>> = {}): Flow<FixtureInput> {
  const step = (name: string): Step<FixtureInput> => ({
    name,
    async do({ subject }) {
      await fixture.ensure(subject, `${name} ${subject}`);
      return { detail: `${name} of ${subject}` };
    },
    save: (tx, run) => append(tx, [event(run.subject, `sample.${name.toLowerCase()}`)]),
    undo: ({ subject }) => fixture.ensureGone(subject, `${name} ${subject}`),
    unsave: (tx, run) => append(tx, [event(run.subject, `sample.no${name.toLowerCase()}`)]),
  });
  return flow<FixtureInput>({
    name: "sample.make",
    subject: "sample",
    steps: [step("Reserve"), step("Disk"), step("Boot")],
    ended: (tx, run, ending) => append(tx, [event(run.subject, `sample.${ending.toLowerCase()}`)]),
    ...spec,
  });
}

function event(id: number, type: string) {
  return { type, date: 0, project: 1, resource: "sample", id, data: null };
}

/** A persistent flow that removes the resources of `createFixtureFlow`. */
export function createFixtureDelete(
  fixture: EngineFixture,
  spec: Partial<Flow<FixtureInput>> = {},
): Flow<FixtureInput> {
  const step = (name: string): Step<FixtureInput> => ({
    name: `No${name}`,
    do: ({ subject }) => fixture.ensureGone(subject, `${name} ${subject}`),
  });
  const steps = [step("Boot"), step("Disk"), step("Reserve")];
  return flow<FixtureInput>({ name: "sample.delete", subject: "sample", steps, persistent: true, ...spec });
}

/** A reconciler of one lamp per subject: on or off as in `desired`. A subject without an entry is deleted. */
export function createFixtureReconciler(
  fixture: EngineFixture,
  desired: ReadonlyMap<number, boolean>,
  spec: Partial<Reconciler> = {},
): Reconciler {
  return defineReconciler({
    name: "sample.lamp",
    subject: "lamp",
    period: 60_000,
    async run({ subject }) {
      const lit = desired.get(subject);
      await (lit ? fixture.ensure(subject, `lamp ${subject}`) : fixture.ensureGone(subject, `lamp ${subject}`));
      return lit === undefined ? { gone: true } : {};
    },
    ...spec,
  });
}

export interface FixtureEngineOptions {
  readonly flows?: readonly Flow[];
  readonly reconcilers?: readonly Reconciler[];
  readonly log?: Log;
  readonly concurrency?: number;
  readonly alone?: boolean;
  /** Poll interval in ms. Use a long one if there is only one process: with the simulated clock every poll takes a round. */
  readonly poll?: number;
  /** Duration of a lease in ms. Use a long one if much simulated time passes: every renewal takes a round and a write. */
  readonly lease?: number;
}

let engines = 0;

/** Creates an engine on the simulated clock. The test calls `run`. */
export function createFixtureEngine(store: ObservedStore, alarm: Alarm, options: FixtureEngineOptions): Engine {
  const { flows = [], reconcilers = [], log = () => {}, concurrency = 128, alone = false, ...more } = options;
  const seed = ++engines;
  const random = () => (seed % 97) / 97;
  return createEngine({
    store,
    flows,
    reconcilers,
    clock: alarm,
    random,
    log,
    alarm,
    concurrency,
    alone,
    ...more,
  });
}

/** Registers a test of an invariant on each of the databases, each with a new database. */
export function invariant(
  name: string,
  check: (store: ObservedStore, database: Database) => Promise<void>,
  kinds: readonly Kind[] = databases,
): void {
  for (const kind of kinds) {
    test(`${name} (${kind})`, async () => {
      const database = await startDatabase(kind);
      try {
        await check(observeCommits(database.store), database);
      } finally {
        await database.close();
      }
    });
  }
}

/** Stores a new task of a flow. */
export function begin(
  store: ObservedStore,
  flow: Flow,
  subject: number,
  now: number,
  more: object = {},
): Promise<Task> {
  return store.write((tx) => start(tx, flow, { subject, project: 1, input: { size: 1 }, now, ...more }));
}

/** Returns the task; fails if it does not exist. */
export async function mustFind(store: ObservedStore, id: number): Promise<Task> {
  const task = await find(store.read, id);
  assert.ok(task);
  return task;
}

/** Returns the types of a subject's events, in order. */
export async function typesOf(store: ObservedStore, subject: number): Promise<string[]> {
  const rows = await store.read
    .selectFrom("event")
    .select("type")
    .where("resource_id", "=", subject)
    .orderBy("id")
    .execute();
  return rows.map((row) => row.type);
}

/** Creates a gate: `pass` waits in a step until the test calls `open`; `reached` resolves when the step waits. */
export function createGate() {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  return {
    reached: reached.promise,
    open: opened.resolve,
    async pass() {
      reached.resolve();
      await opened.promise;
    },
  };
}

/** Events of a `createFixtureFlow` that completes with each step done once. */
export const expectedEvents = ["sample.reserve", "sample.disk", "sample.boot", "sample.completed"];
