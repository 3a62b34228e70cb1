/**
 * A turn in a server's queue for work that stands elsewhere: a copy is the new server's, an image its own. Both need the server only
 * for the moment of the snapshot, so each leaves somebody in the queue who holds its place, wakes it, and goes when that is over.
 */

import type { Flow, Wait } from "../../engine/flow.ts";
import { find, queue, type Task, wake } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import type { ServerRow } from "../table.ts";
import { type Cause, type Facts, type FlowContext, type ServerStep } from "./context.ts";
import { serverFlow, startOn } from "./define.ts";
import { stepErrorOf } from "./error.ts";

/** For whom it is kept. */
interface QueueSlotInput {
  readonly task: number;
}
export type QueueSlotFlow = Flow<QueueSlotInput, Facts>;

export const queueSlotName = "server.turn";

/** As long as twenty others may have to be waited for. */
const longest = 4 * 3_600_000;
/** Milliseconds; both sides wake each other, so this is only for what got lost. */
const look = 30_000;

const snapshot = "Snapshot";

const needsSlot = (task: Task): boolean =>
  task.end === null &&
  task.steps.some(({ name, state }) => name === snapshot && !["Completed", "Undone"].includes(state));

export function queueSlotFlow(context: FlowContext): QueueSlotFlow {
  const { store, clock } = context;
  return serverFlow<QueueSlotInput>(context, {
    name: queueSlotName,
    steps: [
      {
        name: "Turn",
        time: longest,
        async do({ input }): Promise<Wait | void> {
          const task = await find(store.read, input.task);
          if (task === undefined || !needsSlot(task)) return;
          await store.write((tx) => wake(tx, task.id, clock.now()));
          return { wait: look };
        },
      },
    ],
    ended: (tx, { input }) => wake(tx, input.task, clock.now()),
  });
}

const slotOf = (tasks: readonly Task[], task: number): Task | undefined =>
  tasks.find(({ name, input }) => name === queueSlotName && (input as QueueSlotInput).task === task);

/** The step that waits for the turn at a server and takes the snapshot. What it has taken is there when it ends. */
export function snapshotStep<Input>(
  context: FlowContext,
  sourceOf: (input: Input) => number,
  { take, undo }: { take(subject: number, input: Input): Promise<void>; undo: ServerStep<Input>["undo"] & object },
): ServerStep<Input> {
  return {
    name: snapshot,
    time: longest,
    async do({ task, subject, input }) {
      const source = sourceOf(input);
      const turn = slotOf(await queue(context.store.read, { kind: "server", id: source }), task);
      if (turn === undefined)
        throw stepErrorOf("snapshot_failed", `Server ${source} is being deleted, or is blocked.`, { final: true });
      if (turn.state !== "InProgress") return { wait: look, detail: `waits for its turn at server ${source}` };
      await take(subject, input);
      return { detail: `of server ${source}` };
    },
    save: (tx, { task, input }) => releaseQueueSlot(context, tx, sourceOf(input), task),
    undo,
  };
}

/** Lets the server go on. */
export async function releaseQueueSlot({ clock }: FlowContext, tx: Tx, source: number, task: number): Promise<void> {
  const turn = slotOf(await queue(tx, { kind: "server", id: source }), task);
  if (turn !== undefined) await wake(tx, turn.id, clock.now());
}

export const reserveQueueSlot = (
  context: FlowContext,
  tx: Tx,
  turn: QueueSlotFlow,
  source: ServerRow,
  { id }: Task,
  by: Cause | null,
): Promise<Task> => startOn(context, tx, turn, source, { task: id }, by);
