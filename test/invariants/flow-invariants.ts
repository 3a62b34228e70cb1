/**
 * The invariants of every flow. `testFlow` makes each step fail, repeat, hang and be canceled, and crashes the process at each write. Then
 * it compares the actual state with the expected one. PostgreSQL only gets one crash at each write, which runs all SQL of the flow, unless
 * `TEST_RUNS=all` is set: the engine, not the database, makes steps fail. Without it, each run makes every second one of the failures. A
 * feature calls it for each of its flows:
 *
 *     testFlow("server.create", async (store) => ({ flow, start, observe }));
 */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { StepError } from "../../service/src/engine/flow.ts";
import type { Task } from "../../service/src/engine/view.ts";
import { databases, type Kind, startDatabase } from "../support/databases.ts";
import type { FlowTrial, Intervention, OpenFlow } from "../support/flowfixture.ts";
import { openTrial } from "../support/flowfixture.ts";
import { everySecond, triesAll } from "../support/random.ts";

interface Known {
  readonly t: TestContext;
  open(intervene: Intervention): Promise<FlowTrial>;
  readonly steps: readonly string[];
  /** Steps with a `do` that the starting transaction has not completed. */
  readonly tried: readonly string[];
  /** Steps whose failure undoes nothing. */
  readonly keeps: ReadonlySet<string>;
  readonly persistent: boolean;
  /** The state after the completed flow. */
  readonly after: unknown;
  /** Crashes only before or after a write, in turn, instead of both. */
  readonly sparse: boolean;
}

const noError: Intervention = ({ original }) => original();

/** Registers the tests of all flow invariants for one flow, on each database of `kinds`. */
export function testFlow(name: string, open: OpenFlow, kinds: readonly Kind[] = databases): void {
  for (const kind of kinds) {
    test(`${name} satisfies the flow invariants on ${kind}`, async (t) => {
      const database = await startDatabase(kind);
      try {
        const opened = (intervene: Intervention) => openTrial(database.store, open, intervene);
        const first = await opened(noError);
        const task = await first.finish();
        const after = await first.fixture.observe();
        await first.fixture.close?.();
        const steps = task.steps.map((each) => each.name);
        const { persistent, steps: all } = first.fixture.flow;
        const tried = steps.filter(
          (step) => !first.done.includes(step) && all.some((one) => one.name === step && one.do),
        );
        const keeps = new Set(all.filter((step) => step.keeps).map((step) => step.name));
        const known: Known = {
          t,
          open: opened,
          steps,
          tried,
          keeps,
          persistent,
          after,
          sparse: kind === "postgres" && !triesAll,
        };
        await t.test("it completes", () => checkCompleted(known, task, after));
        const faulty = kind === "sqlite" || triesAll ? tried : [];
        for (const step of faulty) await testRepeats(known, step);
        for (const step of faulty)
          await (persistent ? testPersistence : keeps.has(step) ? testStepIsKept : testUndo)(known, step);
        await testCrashes(known);
      } finally {
        await database.close();
      }
    });
  }
}

/** Limits an intervention to one step and to its first `tries` calls. */
function at(step: string, way: "do" | "undo", intervene: Intervention, tries = Infinity): Intervention {
  let count = 0;
  return (turn) => (turn.step === step && turn.way === way && count++ < tries ? intervene(turn) : turn.original());
}

const fails: Intervention = async () => {
  throw new StepError("boot_failed", "It failed.", "On purpose.");
};
const failsAfterwards: Intervention = async ({ original }) => {
  await original();
  throw new Error("failed on purpose after the effect");
};
const failsIncomplete: Intervention = async ({ original }) => {
  await original();
  throw new StepError("boot_failed", "It failed.", "On purpose.", { final: true });
};
const twice: Intervention = async ({ original }) => {
  await original();
  return original();
};
const neverEnds: Intervention = async ({ trial, run }) => {
  await trial.hang(run.signal);
  throw run.signal.reason;
};
const isCanceled: Intervention = async ({ trial, original }) => {
  const result = await original();
  await trial.cancel();
  return result;
};
/** Combines two interventions: one for `do`, one for `undo`. */
const each =
  (doing: Intervention, undoing: Intervention): Intervention =>
  (turn) =>
    turn.way === "do" ? doing(turn) : undoing(turn);

function failsFirst(failures: number): Intervention {
  const count = new Map<string, number>();
  return async ({ step, original }) => {
    const before = count.get(step) ?? 0;
    count.set(step, before + 1);
    if (before < failures) throw new Error("failed on purpose; a retry works");
    return original();
  };
}

const isTried = everySecond();

async function runTrial(
  known: Known,
  name: string,
  intervene: Intervention,
  check: (trial: FlowTrial) => Promise<void>,
): Promise<void> {
  if (!isTried()) return;
  await known.t.test(name, async () => {
    const trial = await known.open(intervene);
    await check(trial);
    await trial.fixture.close?.();
  });
}

function checkCompleted({ after }: Known, task: Task, state: unknown): void {
  assert.equal(task.state, "Completed", JSON.stringify(task.error));
  assert.equal(task.progress, 100);
  assert.equal(task.error, null);
  assert.notEqual(task.end, null);
  assert.ok(task.steps.every((each) => each.state === "Completed" && each.start !== null && each.end !== null));
  assert.deepEqual(state, after);
}

async function assertCompletes(known: Known, trial: FlowTrial): Promise<void> {
  checkCompleted(known, await trial.finish(), await trial.fixture.observe());
}

/** Asserts that the flow ends without success at `step` and that the state is as before its start. */
async function assertUndone(known: Known, trial: FlowTrial, step: string, state: "Failed" | "Canceled"): Promise<Task> {
  const task = await trial.finish();
  assert.equal(task.state, state);
  assert.notEqual(task.end, null);
  const actual = await trial.fixture.observe();
  if (trial.fixture.oneWay !== true || !isDeepStrictEqual(actual, known.after))
    assert.deepEqual(actual, trial.before, "the failed flow left something");
  const index = known.steps.indexOf(step);
  const states = task.steps.map((each) => each.state);
  assert.deepEqual(new Set(states.slice(0, index)), new Set(index > 0 ? ["Undone"] : []));
  assert.ok(states.slice(index + 1).every((each) => each === "Pending"));
  if (state === "Failed") assert.equal(states[index], "Failed");
  const order = trial.undone.map((each) => known.steps.indexOf(each));
  assert.deepEqual(
    order,
    [...order].sort((one, other) => other - one),
    "undone in reverse",
  );
  return task;
}

async function testRepeats(known: Known, step: string): Promise<void> {
  const check = (trial: FlowTrial) => assertCompletes(known, trial);
  await runTrial(known, `${step} fails, then works`, at(step, "do", fails, 2), check);
  await runTrial(known, `${step} fails after its effect, then works`, at(step, "do", failsAfterwards, 2), check);
  await runTrial(known, `${step} runs twice`, at(step, "do", twice), check);
}

async function testPersistence(known: Known, step: string): Promise<void> {
  const check = (trial: FlowTrial) => assertCompletes(known, trial);
  await runTrial(known, `${step} is retried until it works`, at(step, "do", fails, 30), check);
  await runTrial(known, `${step} continues when canceled`, at(step, "do", isCanceled), check);
}

async function testUndo(known: Known, step: string): Promise<void> {
  const back = (state: "Failed" | "Canceled", code?: string) => async (trial: FlowTrial) => {
    const { error } = await assertUndone(known, trial, step, state);
    assert.equal(error?.step, step);
    if (code !== undefined) assert.equal(error.code, code);
  };
  const failing = at(step, "do", fails);
  await runTrial(known, `${step} fails finally`, failing, back("Failed", "boot_failed"));
  await runTrial(
    known,
    `${step} fails after a part of its effect`,
    at(step, "do", failsIncomplete),
    back("Failed", "boot_failed"),
  );
  await runTrial(known, `${step} fails, every undo runs twice`, each(failing, twice), back("Failed"));
  await runTrial(
    known,
    `${step} fails, every undo fails seven times first`,
    each(failing, failsFirst(7)),
    back("Failed", "boot_failed"),
  );
  await runTrial(known, `${step} hangs`, at(step, "do", neverEnds), back("Failed"));
  await runTrial(
    known,
    `${step} is canceled while it hangs`,
    at(step, "do", cancelsAndHangs),
    back("Canceled", "superseded"),
  );
  await runTrial(known, `${step} ends and is canceled`, at(step, "do", isCanceled, 1), async (trial) => {
    const next = known.steps[known.steps.indexOf(step) + 1];
    // After the last step the flow is complete and cannot be canceled.
    if (next === undefined) return assertCompletes(known, trial);
    await assertUndone(known, trial, next, "Canceled");
  });
}

/** For a step that only checks: its failure undoes nothing, its cancellation undoes all. */
async function testStepIsKept(known: Known, step: string): Promise<void> {
  const stays = async (trial: FlowTrial) => {
    const task = await trial.finish();
    const index = known.steps.indexOf(step);
    const states = task.steps.map((each) => each.state);
    assert.deepEqual([task.state, task.error?.step], ["Failed", step]);
    assert.deepEqual(new Set(states.slice(0, index)), new Set(["Completed"]));
    assert.equal(states[index], "Failed");
    assert.deepEqual(trial.undone, []);
    assert.deepEqual(await trial.fixture.observe(), known.after, "completed steps must stay");
  };
  await runTrial(known, `${step} fails finally, and nothing is undone`, at(step, "do", fails), stays);
  await runTrial(known, `${step} hangs, and nothing is undone`, at(step, "do", neverEnds), stays);
  await runTrial(known, `${step} is canceled while it hangs`, at(step, "do", cancelsAndHangs), async (trial) => {
    await assertUndone(known, trial, step, "Canceled");
  });
}

const cancelsAndHangs: Intervention = async ({ trial, run }) => {
  // The signal is aborted at once; the clock does not advance.
  const aborted = new Promise((resolve) => run.signal.addEventListener("abort", resolve));
  await trial.cancel();
  await aborted;
  throw run.signal.reason;
};

/** Crashes the process at each of its writes, before and after the write is stored; another process continues. */
async function testCrashes(known: Known): Promise<void> {
  const moments = ["before", "after"] as const;
  const sweep = async (name: string, intervene: Intervention, check: (trial: FlowTrial) => Promise<void>) => {
    await known.t.test(name, async () => {
      let crashes = 1;
      for (let write = 1; crashes > 0; write++) {
        crashes = 0;
        for (const moment of known.sparse ? [moments[write % 2] ?? "after"] : moments) {
          const trial = await known.open(intervene);
          trial.process.crashAt(write, moment);
          await check(trial);
          crashes += trial.crashes;
          await trial.fixture.close?.();
        }
        assert.ok(crashes > 0 || write > known.tried.length, "no process has crashed");
      }
    });
  };
  await sweep("its process crashes at any write", noError, (trial) => assertCompletes(known, trial));
  const last = known.tried.findLast((step) => !known.keeps.has(step));
  if (last === undefined || known.persistent) return;
  await sweep("its process crashes at any write while it fails", at(last, "do", failsIncomplete), async (trial) => {
    await assertUndone(known, trial, last, "Failed");
  });
}
