/** Reads and changes the row of the server that a flow works on. A change that clients see raises the version and appends an event. */
import { isSameError } from "../../base/plaincause.ts";
import type { Tx } from "../../store/db.ts";
import { findAnyServer, type ServerRow, updateServer } from "../table.ts";
import type { Cause, FlowContext } from "./context.ts";
import { emitServerEvent } from "./events.ts";

/** Returns the row of a server. The row exists while a flow of the server runs; otherwise throws. */
export async function requireServer({ store }: FlowContext, id: number): Promise<ServerRow> {
  const row = await findAnyServer(store.read, id);
  if (row === undefined) throw new Error(`server ${id} has no row`);
  return row;
}

/** Columns that a client can set. A change of one of them raises the version of the server. */
const settable: ReadonlySet<string> = new Set([
  "name",
  "labels",
  "is_protected",
  "is_backup_active",
  "backup_period",
  "cpu",
  "ram",
  "hdd",
  "is_high_performance",
  "hdd_type",
  "image_id",
  "user_data",
  "admin_password",
]);

/**
 * Updates columns of the row and appends `server.changed`. Does nothing if all columns have these values already, or the error of an
 * earlier try of the same work.
 * An empty `change` only appends the event, after a change of the links or keys of the server.
 */
export async function changeServer(
  context: Pick<FlowContext, "clock" | "machineStatus">,
  tx: Tx,
  id: number,
  change: Parameters<typeof updateServer>[2],
  by: Cause | null,
): Promise<ServerRow> {
  const before = await findAnyServer(tx, id);
  if (before === undefined) throw new Error(`server ${id} has no row`);
  const entries = Object.entries(change);
  const isSame = ([key, value]: [string, unknown]): boolean =>
    before[key as keyof ServerRow] === value ||
    (key === "error" && isSameError(before.error, value as ServerRow["error"]));
  if (entries.length > 0 && entries.every(isSame)) return before;
  const raisesVersion = Object.keys(change).some((key) => settable.has(key));
  const row = await updateServer(tx, id, { ...change, version: before.version + Number(raisesVersion) });
  await emitServerEvent(context, tx, row, "changed", by);
  return row;
}
