/**
 * How servers that could not be made end, and what that means for the group they were made in: an `Atomic` group comes to be as a
 * whole or not at all, so one that fails takes the others with it, also those that stand already (docs/spec.md#server-group-states).
 */

import type { Flow } from "../../engine/flow.ts";
import type { TaskError } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import { findBatch, listMembers, lockBatch, type ServerRow, updateBatch } from "../table.ts";
import { cancelWork } from "./cancel.ts";
import { type FlowContext } from "./context.ts";
import { errorFor } from "./error.ts";
import { emitBatchEvent } from "./events.ts";
import { leaveNetworks } from "./network.ts";
import { queueReconcile } from "./reconcile.ts";
import { changeServer } from "./serverrow.ts";

/** Nothing is left of it but the row that says why. What there is of a machine goes in its turn, next. */
export async function failServer(
  context: FlowContext,
  tx: Tx,
  reconcile: Flow,
  { id }: Pick<ServerRow, "id">,
  error: TaskError,
): Promise<void> {
  await cancelWork(context, tx, id, errorFor("superseded", `Server ${id} could not be made.`));
  await leaveNetworks(context, tx, id);
  const nothing = { is_on: 0, held_cpu: 0, held_ram: 0, held_hdd: 0 };
  const row = await changeServer(context, tx, id, { state: "Failed", ...nothing, error: JSON.stringify(error) }, null);
  await queueReconcile(context, tx, reconcile, row);
}

/** To be asked whenever the making of a member has ended. */
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
  const members = await listMembers(tx, batch);
  const isUndone = row.policy === "Atomic" && members.some(({ state }) => state === "Failed");
  if (isUndone) await undoMembers(context, tx, reconcile, batch, members);
  if (members.some(({ state }) => state === "New")) return;
  const stands = members.some(({ state }) => state === "Active" || state === "Blocked");
  const changed = await updateBatch(tx, batch, { state: stands && !isUndone ? "Active" : "Failed" });
  await emitBatchEvent(context, tx, changed, "changed", null);
}

async function undoMembers(
  context: FlowContext,
  tx: Tx,
  reconcile: Flow,
  batch: number,
  members: readonly ServerRow[],
) {
  const guilty = members.find(({ state }) => state === "Failed");
  const why = errorFor("batch_undone", `Server ${guilty?.id} of group ${batch} could not be made.`);
  for (const { id, state } of members)
    if (state === "New") await cancelWork(context, tx, id, why);
    else if (state === "Active" || state === "Blocked") await failServer(context, tx, reconcile, { id }, why);
}
