/**
 * Flow `Delete`: removes the VM, the links and the disk from the host first, and the row last, so that the address and the name are free
 * only when they are unused. It runs before the rest of the queue and is retried until it succeeds.
 */

import type { Done, Flow, Wait } from "../../engine/flow.ts";
import { forget } from "../../engine/prune.ts";
import { find, type Task } from "../../engine/task.ts";
import { findNetwork } from "../../network/table.ts";
import { rest, type Tx } from "../../store/db.ts";
import { listLinkedNetworks } from "../links.ts";
import { uuidOf } from "../model/machinespec.ts";
import { flowName } from "../model/state.ts";
import { retire } from "../orphantable.ts";
import {
  type BatchRow,
  deleteBatch,
  deleteServer,
  findAnyServer,
  findBatch,
  hasMembers,
  listMembers,
  lockBatch,
  type ServerRow,
  updateBatch,
} from "../table.ts";
import { cutPower, removeMachine } from "./boot.ts";
import { cancelWork } from "./cancel.ts";
import type { Cause, Facts, FlowContext } from "./context.ts";
import { serverFlow, startOn } from "./define.ts";
import { errorFor } from "./error.ts";
import { emitActionEvent, emitBatchEvent, emitServerEvent } from "./events.ts";
import { leaveNetworks } from "./network.ts";
import { isServed, waitForNetwork } from "./nics.ts";
import { changeServer } from "./serverrow.ts";

/** Returns the flow. Its end deletes the row, and the group of the server if that is empty. */
export function deleteFlow(context: FlowContext): Flow<null, Facts> {
  const { store } = context;
  return serverFlow<null>(context, {
    name: flowName("Delete"),
    persistent: true,
    steps: [
      {
        name: "Stop",
        async do({ subject }) {
          await cutPower(context, subject);
          const networks = (await listLinkedNetworks(store.read, subject)).map(({ network }) => network.id);
          return { detail: "power off", facts: { networks } };
        },
      },
      {
        name: "Network",
        async do({ subject, facts }): Promise<Done<Facts> | Wait<Facts>> {
          const raised = await store.write((tx) => leaveNetworks(context, tx, subject));
          const left = [...(facts.left ?? []), ...raised];
          const waiting = [];
          for (const id of facts.networks ?? []) {
            const network = await findNetwork(store.read, id);
            // After a kill before `left` was stored, the newest generation counts.
            const generation = left.findLast((each) => each.network === id)?.generation;
            if (network !== undefined && !isServed(network, generation)) waiting.push(network);
          }
          return waiting.length > 0 ? { ...waitForNetwork(subject, waiting), facts: { left } } : {};
        },
      },
      { name: "Disk", do: ({ subject }) => removeMachine(context, subject) },
      { name: "Release" },
    ],
    announce: async (tx, task, what) => {
      if (what !== "ended") await emitActionEvent(context, tx, task, what);
    },
    async ended(tx, { task, subject, facts }) {
      const server = await findAnyServer(tx, subject);
      if (server === undefined) return;
      const { by = null } = facts;
      // Appended here because after the end the server has no row.
      const ended = await find(tx, task);
      if (ended !== undefined) await emitActionEvent(context, tx, ended, "ended");
      await deleteServer(tx, subject);
      const date = context.clock.now();
      await retire(tx, { kind: "Server", name: String(subject), uuid: uuidOf(server), date });
      await emitServerEvent(context, tx, server, "deleted", by);
      forget(tx, { kind: "server", id: subject }, 0);
      const { batch_id, project_id } = server;
      const batch = batch_id === null ? undefined : await findBatch(tx, project_id, batch_id);
      if (batch !== undefined) await deleteEmptyBatch(context, tx, batch, by);
    },
  });
}

/** Deletes a group that has no servers left. */
async function deleteEmptyBatch(context: FlowContext, tx: Tx, batch: BatchRow, by: Cause | null): Promise<void> {
  // Without the lock, two members that are deleted at the same time would each see the other.
  await lockBatch(tx, batch.id);
  if (await hasMembers(tx, batch.id)) return;
  await deleteBatch(tx, batch.id);
  await emitBatchEvent(context, tx, batch, "deleted", by);
}

/** Queues the deletion and cancels all other work on the server. Resolves to null if it is being deleted already. */
export async function queueDelete(
  context: FlowContext,
  tx: Tx,
  flow: Flow<null, Facts>,
  { id, state }: ServerRow,
  by: Cause | null,
): Promise<Task | null> {
  if (state === "Deleting") return null;
  const server = await changeServer(context, tx, id, { state: "Deleting" }, by);
  await cancelWork(context, tx, id, errorFor("superseded", `Server ${id} is being deleted.`));
  return startOn(context, tx, flow, server, null, by);
}

/** Queues the deletion of all servers of a group. The group is deleted with the last one. */
export async function queueDeleteBatch(
  context: FlowContext,
  tx: Tx,
  flow: Flow<null, Facts>,
  batch: BatchRow,
  by: Cause | null,
): Promise<void> {
  const members = await listMembers(tx, batch.id);
  if (batch.state !== "Deleting") {
    const row = await updateBatch(tx, batch.id, { state: "Deleting" });
    await emitBatchEvent(context, tx, row, "changed", by);
  }
  for (const server of members) {
    await queueDelete(context, tx, flow, server, by);
    await rest(tx);
  }
  await deleteEmptyBatch(context, tx, batch, by);
}
