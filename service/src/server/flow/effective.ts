/**
 * The part of a server's row that the VM already has. A request for a rebuild changes the image, password and keys in the row at once,
 * because clients see them. Until the rebuild runs, tasks that are queued before it must use the fields from before the request; so must a
 * rebuild that is undone, since it starts the VM from its old disk again.
 */
import type { Ending } from "../../engine/flow.ts";
import { find, queue, type Task } from "../../engine/task.ts";
import type { Reader } from "../../store/db.ts";
import { flowName } from "../model/state.ts";
import { listServerKeys, type ServerRow } from "../table.ts";

/** Name of the flow `Rebuild`. */
export const rebuildName = flowName("Rebuild");

type Fields = Pick<ServerRow, "image_id" | "image_name" | "family" | "guest" | "admin_password" | "user_data">;
type Keys = Awaited<ReturnType<typeof listServerKeys>>;

/** Fields that a rebuild replaces, as JSON. Secrets stay sealed and are base64. */
export type RebuildBackup = Pick<Fields, "image_id" | "image_name" | "family" | "guest"> & {
  readonly password: string;
  readonly userData: string | null;
  readonly keys: Keys;
};

/** Input of the flow `Rebuild`, stored in task rows. */
export interface RebuildInput {
  /** Fields that the request replaced. */
  readonly before: RebuildBackup;
  /** Id of the rebuild that was queued before this one; null: none. If that one fails, its fields never took effect. */
  readonly behind: number | null;
}

/** Returns the fields of the row that a rebuild is about to replace. */
export function snapshotFields(server: ServerRow, keys: Keys): RebuildBackup {
  const { image_id, image_name, family, guest, admin_password, user_data } = server;
  const text = (sealed: Uint8Array): string => Buffer.from(sealed).toString("base64");
  const userData = user_data === null ? null : text(user_data);
  return { image_id, image_name, family, guest, password: text(admin_password), userData, keys };
}

/** True if the rebuild took effect: it completed, or only the guest was not ready in time. */
export async function tookEffect(db: Reader, task: number, ending: Ending): Promise<boolean> {
  if (ending === "Completed") return true;
  const steps = (await find(db, task))?.steps ?? [];
  return steps.some((step) => step.name === "Boot" && step.state === "Completed");
}

/** Returns the fields and keys before this rebuild, or before the first of several consecutive rebuilds that all failed. */
export async function stateBefore(db: Reader, input: RebuildInput): Promise<{ fields: Fields; keys: Keys }> {
  const earlier = input.behind === null ? undefined : await find(db, input.behind);
  if (earlier !== undefined && earlier.end !== null && !(await tookEffect(db, earlier.id, earlier.state as Ending)))
    return stateBefore(db, earlier.input as RebuildInput);
  const { password, userData, keys, ...fields } = input.before;
  const open = (text: string): Uint8Array => Buffer.from(text, "base64");
  const sealed = { admin_password: open(password), user_data: userData === null ? null : open(userData) };
  return { fields: { ...fields, ...sealed }, keys };
}

/** Returns the row and the keys without the changes of rebuilds that are queued or being undone. */
export async function effectiveServer(db: Reader, server: ServerRow): Promise<{ server: ServerRow; keys: Keys }> {
  const isWithoutEffect = ({ name, state, undoing }: Task): boolean =>
    name === rebuildName && (state === "Postponed" || undoing);
  const next = (await queue(db, { kind: "server", id: server.id })).find(isWithoutEffect);
  if (next === undefined) return { server, keys: await listServerKeys(db, server.id) };
  const { fields, keys } = await stateBefore(db, next.input as RebuildInput);
  return { server: { ...server, ...fields }, keys };
}
