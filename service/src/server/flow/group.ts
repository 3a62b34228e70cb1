/**
 * Ends the creation of servers that failed, and updates the state of their group. An `Atomic` group is created completely or not at all:
 * if one member fails, the others are removed too, including those that are running already (docs/spec.md#server-group-states).
 */

import type { Flow } from "../../engine/flow.ts";
import type { TaskError } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import { findBatch, hasMemberIn, listMembers, lockBatch, type ServerRow, updateBatch } from "../table.ts";
import { cancelWork } from "./cancel.ts";
import type { FlowContext } from "./context.ts";
import { errorFor } from "./error.ts";
import { emitBatchEvent } from "./events.ts";
import { leaveNetworks } from "./network.ts";
import { queueReconcile } from "./reconcile.ts";
import { changeServer } from "./serverrow.ts";

/** Sets a server to `Failed` with an error, releases its links and quotas, and queues the removal of its VM. */
export async function failServer(
  context: FlowContext,
  tx: Tx,
  reconcile: Flow,
  { id }: Pick<ServerRow, "id">,
  error: TaskError,
): Promise<void> {
  await cancelWork(context, tx, id, errorFor("superseded", `Server ${id} could not be created.`));
  await leaveNetworks(context, tx, id);
  const released = { is_on: 0, held_cpu: 0, held_ram: 0, held_hdd: 0 };
  const row = await changeServer(context, tx, id, { state: "Failed", ...released, error: JSON.stringify(error) }, null);
  await queueReconcile(context, tx, reconcile, row);
}

/** Updates the group after the creation of a member has ended. Does nothing without a group. */
export async function updateGroup(
  context: FlowContext,
  tx: Tx,
  reconcile: Flow,
  { project_id, batch_id: batch }: Pick<ServerRow, "project_id" | "batch_id">,
): Promise<void> {
  if (batch === null) return;
  await lockBatch(tx, batch);
  const row = await findBatch(tx, project_id, batch);
  if (row === undefined || row.state !== "New") return;
  const isUndone = row.policy === "Atomic" && (await hasMemberIn(tx, batch, "Failed"));
  const isCreating = await hasMemberIn(tx, batch, "New");
  if (isUndone) await undoMembers(context, tx, reconcile, batch, await listMembers(tx, batch));
  if (isCreating) return;
  const hasServers = (await hasMemberIn(tx, batch, "Active")) || (await hasMemberIn(tx, batch, "Blocked"));
  const changed = await updateBatch(tx, batch, { state: hasServers && !isUndone ? "Active" : "Failed" });
  await emitBatchEvent(context, tx, changed, "changed", null);
}

async function undoMembers(
  context: FlowContext,
  tx: Tx,
  reconcile: Flow,
  batch: number,
  members: readonly ServerRow[],
) {
  const failed = members.find(({ state }) => state === "Failed");
  const why = errorFor("batch_undone", `Server ${failed?.id} of group ${batch} could not be created.`);
  for (const { id, state } of members)
    if (state === "New") await cancelWork(context, tx, id, why);
    else if (state === "Active" || state === "Blocked") await failServer(context, tx, reconcile, { id }, why);
}
