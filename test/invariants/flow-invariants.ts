/**
 * The laws of every flow and reconciler, for each feature to run over its own: steps are failed, repeated, interrupted, canceled
 * and killed one by one, on both databases, and then the world is compared with what it should be. A flow is tested by being named here:
 *
 *     proveFlow("server.create", async (store) => ({ flow, start, observe }));
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

interface Known {
  readonly t: TestContext;
  open(intervene: Intervention): Promise<FlowTrial>;
  readonly steps: readonly string[];
  /** Those that work at all: not only rows, and not done by the transaction that begins the flow. */
  readonly tried: readonly string[];
  /** Those that keep what is there when they fail. */
  readonly keeps: ReadonlySet<string>;
  readonly persistent: boolean;
  /** What is there when the flow has completed. */
  readonly after: unknown;
}

const unchanged: Intervention = ({ original }) => original();

/** Registers a test of all laws for one flow on each database, or on these. */
export function testFlow(name: string, open: OpenFlow, kinds: readonly Kind[] = databases): void {
  for (const kind of kinds) {
    test(`${name} keeps the laws of flows on ${kind}`, async (t) => {
      const database = await startDatabase(kind);
      try {
        const opened = (intervene: Intervention) => openTrial(database.store, open, intervene);
        const first = await opened(unchanged);
        const task = await first.finish();
        const after = await first.fixture.observe();
        await first.fixture.close?.();
        const steps = task.steps.map((each) => each.name);
        const { persistent, steps: all } = first.fixture.flow;
        const tried = steps.filter(
          (step) => !first.done.includes(step) && all.some((one) => one.name === step && one.do),
        );
        const keeps = new Set(all.filter((step) => step.keeps).map((step) => step.name));
        const known: Known = { t, open: opened, steps, tried, keeps, persistent, after };
        await t.test("it completes", () => checkCompleted(known, task, after));
        for (const step of tried) await proveRepeats(known, step);
        for (const step of tried)
          await (persistent ? provePersistence : keeps.has(step) ? proveKeeping : proveUndo)(known, step);
        await proveDeaths(known);
      } finally {
        await database.close();
      }
    });
  }
}

/** Meddles with one step only, and with its first tries only. */
function at(step: string, way: "do" | "undo", intervene: Intervention, tries = Infinity): Intervention {
  let count = 0;
  return (turn) => (turn.step === step && turn.way === way && count++ < tries ? intervene(turn) : turn.original());
}

const fails: Intervention = async () => {
  throw new StepError("boot_failed", "It failed.", "On purpose.");
};
const failsAfterwards: Intervention = async ({ original }) => {
  await original();
  throw new Error("broken after the effect");
};
const failsHalfDone: Intervention = async ({ original }) => {
  await original();
  throw new StepError("boot_failed", "It failed.", "On purpose.", { final: true });
};
const twice: Intervention = async ({ original }) => {
  await original();
  return original();
};
const hangs: Intervention = async ({ trial, run }) => {
  await trial.hang(run.signal);
  throw run.signal.reason;
};
const isCanceled: Intervention = async ({ trial, original }) => {
  const result = await original();
  await trial.cancel();
  return result;
};
/** Of two that meddle: the first with what is done, the second with what is undone. */
const each =
  (doing: Intervention, undoing: Intervention): Intervention =>
  (turn) =>
    turn.way === "do" ? doing(turn) : undoing(turn);

function clumsy(failures: number): Intervention {
  const count = new Map<string, number>();
  return async ({ step, original }) => {
    const before = count.get(step) ?? 0;
    count.set(step, before + 1);
    if (before < failures) throw new Error("broken, and to be tried again");
    return original();
  };
}

async function act(
  known: Known,
  name: string,
  intervene: Intervention,
  check: (trial: FlowTrial) => Promise<void>,
): Promise<void> {
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

async function completes(known: Known, trial: FlowTrial): Promise<void> {
  checkCompleted(known, await trial.finish(), await trial.fixture.observe());
}

/** It ends without success at `step`, and the world is as it was. */
async function goesBack(known: Known, trial: FlowTrial, step: string, state: "Failed" | "Canceled"): Promise<Task> {
  const task = await trial.finish();
  assert.equal(task.state, state);
  assert.notEqual(task.end, null);
  const actual = await trial.fixture.observe();
  if (trial.fixture.oneWay !== true || !isDeepStrictEqual(actual, known.after))
    assert.deepEqual(actual, trial.before, "something was left over");
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

async function proveRepeats(known: Known, step: string): Promise<void> {
  const check = (trial: FlowTrial) => completes(known, trial);
  await act(known, `${step} fails, then works`, at(step, "do", fails, 2), check);
  await act(known, `${step} fails after its effect, then works`, at(step, "do", failsAfterwards, 2), check);
  await act(known, `${step} runs twice`, at(step, "do", twice), check);
}

async function provePersistence(known: Known, step: string): Promise<void> {
  const check = (trial: FlowTrial) => completes(known, trial);
  await act(known, `${step} is never given up`, at(step, "do", fails, 30), check);
  await act(known, `${step} goes on when canceled`, at(step, "do", isCanceled), check);
}

async function proveUndo(known: Known, step: string): Promise<void> {
  const back = (state: "Failed" | "Canceled", code?: string) => async (trial: FlowTrial) => {
    const { error } = await goesBack(known, trial, step, state);
    assert.equal(error?.step, step);
    if (code !== undefined) assert.equal(error.code, code);
  };
  const failing = at(step, "do", fails);
  await act(known, `${step} fails for good`, failing, back("Failed", "boot_failed"));
  await act(known, `${step} fails half done`, at(step, "do", failsHalfDone), back("Failed", "boot_failed"));
  await act(known, `${step} fails, every undo runs twice`, each(failing, twice), back("Failed"));
  await act(known, `${step} fails, every undo fails first`, each(failing, clumsy(7)), back("Failed", "boot_failed"));
  await act(known, `${step} hangs`, at(step, "do", hangs), back("Failed"));
  await act(
    known,
    `${step} is canceled while it hangs`,
    at(step, "do", cancelsAndHangs),
    back("Canceled", "superseded"),
  );
  await act(known, `${step} ends and is canceled`, at(step, "do", isCanceled, 1), async (trial) => {
    const next = known.steps[known.steps.indexOf(step) + 1];
    // Nothing comes after the last step, so nothing is canceled there.
    if (next === undefined) return completes(known, trial);
    await goesBack(known, trial, next, "Canceled");
  });
}

/** What was done before stays when a step fails that only looks, and goes when it is canceled. */
async function proveKeeping(known: Known, step: string): Promise<void> {
  const stays = async (trial: FlowTrial) => {
    const task = await trial.finish();
    const index = known.steps.indexOf(step);
    const states = task.steps.map((each) => each.state);
    assert.deepEqual([task.state, task.error?.step], ["Failed", step]);
    assert.deepEqual(new Set(states.slice(0, index)), new Set(["Completed"]));
    assert.equal(states[index], "Failed");
    assert.deepEqual(trial.undone, []);
    assert.deepEqual(await trial.fixture.observe(), known.after, "what was done has not stayed");
  };
  await act(known, `${step} fails for good, and all else stays`, at(step, "do", fails), stays);
  await act(known, `${step} hangs, and all else stays`, at(step, "do", hangs), stays);
  await act(known, `${step} is canceled while it hangs`, at(step, "do", cancelsAndHangs), async (trial) => {
    await goesBack(known, trial, step, "Canceled");
  });
}

const cancelsAndHangs: Intervention = async ({ trial, run }) => {
  // It is told at once, without time passing.
  const told = new Promise((resolve) => run.signal.addEventListener("abort", resolve));
  await trial.cancel();
  await told;
  throw run.signal.reason;
};

/** The process dies at each of its writes, once with nothing of it stored and once with all of it, and another goes on. */
async function proveDeaths(known: Known): Promise<void> {
  const moments = ["before", "after"] as const;
  const sweep = async (name: string, intervene: Intervention, check: (trial: FlowTrial) => Promise<void>) => {
    await known.t.test(name, async () => {
      let crashes = 1;
      for (let write = 1; crashes > 0; write++) {
        crashes = 0;
        for (const moment of moments) {
          const trial = await known.open(intervene);
          trial.process.crashAt(write, moment);
          await check(trial);
          crashes += trial.crashes;
          await trial.fixture.close?.();
        }
        assert.ok(crashes > 0 || write > known.tried.length, "no process has died");
      }
    });
  };
  await sweep("its process dies at any moment", unchanged, (trial) => completes(known, trial));
  const last = known.tried.findLast((step) => !known.keeps.has(step));
  if (last === undefined || known.persistent) return;
  await sweep("its process dies at any moment while it fails", at(last, "do", failsHalfDone), async (trial) => {
    await goesBack(known, trial, last, "Failed");
  });
}
