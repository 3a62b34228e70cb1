/** Appends the events of servers, actions, server groups and images, each in the transaction of its change. */

import { showImage } from "../../catalog/model/show.ts";
import type { ImageRow } from "../../catalog/table.ts";
import { append, type NewEvent } from "../../engine/event.ts";
import type { Task } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import { readParts, type ServerParts, showLink } from "../links.ts";
import { showAction, showBatch, showServer } from "../model/show.ts";
import { type BatchRow, listMembers, type ServerRow } from "../table.ts";
import type { Cause, Facts, FlowContext } from "./context.ts";

const causeFields = (by: Cause | null): Pick<NewEvent, "token" | "request"> => ({
  token: by?.token ?? null,
  request: by?.request ?? null,
});

type EventContext = Pick<FlowContext, "clock" | "machineStatus">;

/** Returns the server as events show it, without the password. */
async function describe({ machineStatus }: EventContext, tx: Tx, row: ServerRow, parts?: ServerParts) {
  const { links, keys } = parts ?? (await readParts(tx, row.id));
  return showServer(row, { links: links.map(showLink), keys, password: "", isOn: machineStatus.power(row.id) });
}

/** Appends `server.created`, `.changed`, `.crashed` or `.deleted`. `parts`: the links and keys of the server, if they are known. */
export async function emitServerEvent(
  context: EventContext,
  tx: Tx,
  row: ServerRow,
  what: "created" | "changed" | "crashed" | "deleted",
  by: Cause | null,
  parts?: ServerParts,
): Promise<void> {
  const data = what === "deleted" ? null : JSON.stringify(await describe(context, tx, row, parts));
  const type = `server.${what}`;
  const { project_id: project, id } = row;
  await append(tx, [{ type, date: context.clock.now(), project, resource: "server", id, ...causeFields(by), data }]);
}

/** Appends `action.created`, `.changed` or `.ended`. Does nothing for a task that is not an action. */
export async function emitActionEvent(
  { clock }: Pick<FlowContext, "clock">,
  tx: Tx,
  task: Task,
  what: "created" | "changed" | "ended",
): Promise<void> {
  const action = showAction(task);
  if (action === null) return;
  const { by = null } = task.facts as Partial<Facts>;
  const event: NewEvent = {
    type: `action.${what}`,
    date: clock.now(),
    project: task.project,
    resource: "action",
    id: task.id,
    parent: task.subject.id,
    ...causeFields(by),
    data: JSON.stringify(action),
  };
  await append(tx, [event]);
}

/** Appends `batch.changed` with all members, or `batch.deleted`. */
export async function emitBatchEvent(
  context: EventContext,
  tx: Tx,
  row: BatchRow,
  what: "changed" | "deleted",
  by: Cause | null,
): Promise<void> {
  const servers = [];
  if (what === "changed")
    for (const member of await listMembers(tx, row.id)) servers.push(await describe(context, tx, member));
  const data = what === "deleted" ? null : JSON.stringify(showBatch(row, servers));
  const type = `batch.${what}`;
  const { project_id: project, id } = row;
  await append(tx, [{ type, date: context.clock.now(), project, resource: "batch", id, ...causeFields(by), data }]);
}

/** Appends `image.created`, `.changed` or `.deleted`. Does nothing for images of the operator, which belong to no project. */
export async function emitImageEvent(
  { clock }: Pick<FlowContext, "clock">,
  tx: Tx,
  row: ImageRow,
  what: "created" | "changed" | "deleted",
  by: Cause | null,
): Promise<void> {
  if (row.project_id === null) return;
  const data = what === "deleted" ? null : JSON.stringify(showImage(row));
  const type = `image.${what}`;
  const { project_id: project, id } = row;
  await append(tx, [{ type, date: clock.now(), project, resource: "image", id, ...causeFields(by), data }]);
}
