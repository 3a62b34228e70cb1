/**
 * Runs one flow with injected errors: on an engine with a simulated clock, with an intervention at every step, and with a process that can
 * crash at any write. The flow invariants use it.
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

/** A flow and a new subject with the rows it needs. The database may contain rows of earlier trials. */
export interface FlowFixture {
  readonly flow: Flow;
  /** Stores the task of the flow. */
  start(tx: Tx, now: number): Promise<Task>;
  /** Returns the actual state in a comparable form, without ids, dates and what a failed flow leaves on purpose. */
  observe(): Promise<unknown>;
  /** The flow deletes its subject, and its own task with it. */
  readonly forgets?: boolean;
  /** The effect is wanted also if the flow fails, so completed steps are not undone. */
  readonly oneWay?: boolean;
  close?(): Promise<void>;
}

/** Creates a fixture with a new subject. */
export type OpenFlow = (store: Store) => Promise<FlowFixture>;

/** One call of a step's `do` or `undo`. */
export interface StepCall {
  readonly trial: FlowTrial;
  readonly step: string;
  readonly way: "do" | "undo";
  readonly run: Run;
  /** Runs the step's own function. */
  original(): Promise<unknown>;
}

/** Replaces each `do` and `undo`; it may call the original, fail, hang or cancel. */
export type Intervention = (turn: StepCall) => Promise<unknown>;

/** One run of a flow with an intervention. */
export interface FlowTrial {
  readonly task: number;
  readonly fixture: FlowFixture;
  readonly alarm: TestAlarm;
  readonly process: CrashableStore;
  /** The state before the start of the flow. */
  readonly before: unknown;
  /** Steps that the starting transaction completed. */
  readonly done: readonly string[];
  /** Undone steps, in the order of their undo. */
  readonly undone: readonly string[];
  /** Number of crashed processes. */
  readonly crashes: number;
  /** Runs the flow to its end; when its process crashes, another one takes over. */
  finish(): Promise<Task>;
  /** Advances the clock until the signal is aborted. */
  hang(signal: AbortSignal): Promise<void>;
  /** Cancels the flow. */
  cancel(): Promise<void>;
}

/** Runs an engine until `done` returns true; advances the clock whenever the engine is idle. Throws if no timer is left. */
export async function drive(engine: Engine, alarm: TestAlarm, done: () => Promise<boolean>): Promise<void> {
  for (let rounds = 0; rounds < 5_000; rounds++) {
    await engine.idle();
    if (await done()) return;
    if (!alarm.step()) break;
  }
  throw new Error("the condition is not true and no timer is left");
}

/** Creates a fixture, starts its flow and returns the trial. `finish` runs it. */
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

  async function readTask(): Promise<Task> {
    const task =
      (await find(store.read, id)) ?? (fixture.forgets === true && last ? completed(last, alarm.now()) : null);
    assert.ok(task);
    last = task;
    assert.ok(task.progress >= progress, "the progress must not decrease");
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
        await readTask();
        const result = await intervene(at);
        if (at.way === "undo") undone.push(at.step);
        return result;
      });
      for (let processes = 0; processes < 5; processes++) {
        const life = processes === 0 ? process : createCrashableStore(store);
        const random = () => (processes + 1) / 10;
        const engine = createEngine({
          store: life,
          flows: [flow],
          reconcilers: [],
          clock: alarm,
          random,
          log,
          alarm,
          poll: 30_000,
          // Every renewal is a write. A step that hangs for its whole time renews its lease several times also with this one.
          lease: 45_000,
        });
        engine.run();
        const ended = drive(engine, alarm, async () => (await readTask()).end !== null);
        await Promise.race([ended, life.killed]);
        if (!life.dead) {
          await engine.drain();
          return readTask();
        }
        crashes++;
      }
      throw new Error("too many crashes");
    },
    async hang(signal) {
      while (!signal.aborted && alarm.step()) {
        // The engine works without delay on the simulated clock.
        do await turn();
        while (process.pending > 0);
      }
    },
    async cancel() {
      const { subject } = await readTask();
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

/** Returns the task as completed, for a flow that deletes its own task. */
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
