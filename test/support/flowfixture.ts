/**
 * A flow on a stage: an engine of its own on a clock whose hours pass at once, somebody who meddles with every step, and a
 * process that may die at any write. What the laws do to a flow, they do here.
 */
import assert from "node:assert/strict";
import type { Engine } from "../../service/src/engine/engine.ts";
import { createEngine } from "../../service/src/engine/engine.ts";
import type { Flow, Run, Step } from "../../service/src/engine/flow.ts";
import { cancel, find } from "../../service/src/engine/task.ts";
import type { Task } from "../../service/src/engine/view.ts";
import type { Store, Tx } from "../../service/src/store/db.ts";
import type { CrashableStore, TestAlarm } from "./enginefixture.ts";
import { createCrashableStore, createTestAlarm, turn } from "./enginefixture.ts";

/** A fresh subject in a fresh world, with the rows it needs, on a database that others have used before. */
export interface FlowFixture {
  readonly flow: Flow;
  start(tx: Tx, now: number): Promise<Task>;
  /** What is there, in a comparable form without ids and dates. What a flow that failed leaves on purpose is not part of it. */
  observe(): Promise<unknown>;
  /** The flow deletes its subject, and with it what is known of the flow. */
  readonly forgets?: boolean;
  /** What it does is wanted anyway, so when it fails it stays as far as it came. */
  readonly oneWay?: boolean;
  close?(): Promise<void>;
}

export type OpenFlow = (store: Store) => Promise<FlowFixture>;

/** A step about to run. */
export interface StepCall {
  readonly trial: FlowTrial;
  readonly step: string;
  readonly way: "do" | "undo";
  readonly run: Run;
  /** What the step does by itself. */
  original(): Promise<unknown>;
}

/** Runs instead of each `do` and `undo`. */
export type Intervention = (turn: StepCall) => Promise<unknown>;

export interface FlowTrial {
  readonly task: number;
  readonly fixture: FlowFixture;
  readonly alarm: TestAlarm;
  readonly process: CrashableStore;
  /** What was there before the flow began. */
  readonly before: unknown;
  /** Steps that were done with its beginning. */
  readonly done: readonly string[];
  /** Steps in the order in which they were undone. */
  readonly undone: readonly string[];
  /** Processes that have died. */
  readonly crashes: number;
  /** Lets the flow end; whenever its process dies, another one takes over. */
  finish(): Promise<Task>;
  /** Lets time pass until the signal is aborted. */
  hang(signal: AbortSignal): Promise<void>;
  cancel(): Promise<void>;
}

/** Runs an engine until `done`, letting time pass whenever nothing else is left to do. */
export async function drive(engine: Engine, alarm: TestAlarm, done: () => Promise<boolean>): Promise<void> {
  for (let rounds = 0; rounds < 5_000; rounds++) {
    await engine.idle();
    if (await done()) return;
    if (!alarm.step()) break;
  }
  throw new Error("nothing is left to wait for");
}

export async function openTrial(store: Store, open: OpenFlow, intervene: Intervention): Promise<FlowTrial> {
  const fixture = await open(store);
  const alarm = createTestAlarm();
  const process = createCrashableStore(store);
  const undone: string[] = [];
  const before = await fixture.observe();
  const { id, steps } = await process.write((tx) => fixture.start(tx, alarm.now()));
  let crashes = 0;
  let progress = 0;

  let last: Task | undefined;

  async function look(): Promise<Task> {
    const task =
      (await find(store.read, id)) ?? (fixture.forgets === true && last ? completed(last, alarm.now()) : null);
    assert.ok(task);
    last = task;
    assert.ok(task.progress >= progress, "Progress fell");
    assert.equal(task.progress === 100, task.state === "Completed");
    progress = task.progress;
    return task;
  }

  const trial: FlowTrial = {
    task: id,
    fixture,
    alarm,
    process,
    before,
    done: steps.filter((step) => step.state === "Completed").map((step) => step.name),
    undone,
    get crashes() {
      return crashes;
    },
    async finish() {
      const flow = withIntervention(fixture.flow, trial, async (at) => {
        await look();
        const result = await intervene(at);
        if (at.way === "undo") undone.push(at.step);
        return result;
      });
      for (let lives = 0; lives < 5; lives++) {
        const life = lives === 0 ? process : createCrashableStore(store);
        const random = () => (lives + 1) / 10;
        const engine = createEngine({
          store: life,
          flows: [flow],
          reconcilers: [],
          clock: alarm,
          random,
          log,
          alarm,
          poll: 30_000,
        });
        engine.run();
        const ended = drive(engine, alarm, async () => (await look()).end !== null);
        await Promise.race([ended, life.killed]);
        if (!life.dead) {
          await engine.drain();
          return look();
        }
        crashes++;
      }
      throw new Error("too many deaths");
    },
    async hang(signal) {
      while (!signal.aborted && alarm.step()) {
        // The engine is as quick as its clock.
        do await turn();
        while (process.pending > 0);
      }
    },
    async cancel() {
      const { subject } = await look();
      const why = {
        code: "superseded",
        title: "The action was superseded by a later request.",
        detail: "On purpose.",
      } as const;
      await process.write((tx) => cancel(tx, subject, why, alarm.now()));
    },
  };
  return trial;
}

const log = () => {};

/** As a task must have been that is not there any more. */
function completed(task: Task, now: number): Task {
  const steps = task.steps.map((step) => ({
    ...step,
    state: "Completed" as const,
    start: step.start ?? now,
    end: now,
  }));
  return { ...task, state: "Completed", progress: 100, end: now, error: null, steps };
}

function withIntervention(flow: Flow, trial: FlowTrial, intervene: Intervention): Flow {
  const wrap = (step: Step, way: "do" | "undo") => {
    const original = step[way];
    if (original === undefined) return {};
    return {
      [way]: (run: Run) =>
        intervene({ trial, step: step.name, way, run, original: async () => original.call(step, run) }),
    };
  };
  const steps = flow.steps.map((step) => ({
    ...step,
    ...wrap(step, "do"),
    ...wrap(step, "undo"),
  }));
  return { ...flow, steps };
}
