/**
 * What of a server's row is in force. A rebuild changes what callers see (image, password, keys) with its order, so while it waits the
 * row is ahead of the machine: whatever has its turn before it has to do with what the row said then.
 */
import type { Ending } from "../../engine/flow.ts";
import { find, queue, type Task } from "../../engine/task.ts";
import type { Reader } from "../../store/db.ts";
import { flowName } from "../model/state.ts";
import { listServerKeys, type ServerRow } from "../table.ts";

export const rebuildName = flowName("Rebuild");

type Fields = Pick<ServerRow, "image_id" | "image_name" | "family" | "guest" | "admin_password" | "user_data">;
type Keys = Awaited<ReturnType<typeof listServerKeys>>;

/** Sealed things as base64, as they were stored. */
export type RebuildBackup = Pick<Fields, "image_id" | "image_name" | "family" | "guest"> & {
  readonly password: string;
  readonly userData: string | null;
  readonly keys: Keys;
};

export interface RebuildInput {
  /** What the order has replaced. */
  readonly before: RebuildBackup;
  /** The rebuild that was waiting when this one was ordered: if that comes to nothing, so does what it had put there. */
  readonly behind: number | null;
}

export function snapshotFields(server: ServerRow, keys: Keys): RebuildBackup {
  const { image_id, image_name, family, guest, admin_password, user_data } = server;
  const text = (sealed: Uint8Array): string => Buffer.from(sealed).toString("base64");
  const userData = user_data === null ? null : text(user_data);
  return { image_id, image_name, family, guest, password: text(admin_password), userData, keys };
}

/** It has come to something: also when only the guest was not ready in time. */
export async function tookEffect(db: Reader, task: number, ending: Ending): Promise<boolean> {
  if (ending === "Completed") return true;
  const steps = (await find(db, task))?.steps ?? [];
  return steps.some((step) => step.name === "Boot" && step.state === "Completed");
}

/** What was there before this rebuild, or before the first in a row that all came to nothing. */
export async function stateBefore(db: Reader, input: RebuildInput): Promise<{ fields: Fields; keys: Keys }> {
  const earlier = input.behind === null ? undefined : await find(db, input.behind);
  if (earlier !== undefined && earlier.end !== null && !(await tookEffect(db, earlier.id, earlier.state as Ending)))
    return stateBefore(db, earlier.input as RebuildInput);
  const { password, userData, keys, ...fields } = input.before;
  const open = (text: string): Uint8Array => Buffer.from(text, "base64");
  const sealed = { admin_password: open(password), user_data: userData === null ? null : open(userData) };
  return { fields: { ...fields, ...sealed }, keys };
}

/** The row without what rebuilds have put there that wait, and the keys that go with it. */
export async function effectiveServer(db: Reader, server: ServerRow): Promise<{ server: ServerRow; keys: Keys }> {
  const waits = ({ name, state }: Task): boolean => name === rebuildName && state === "Postponed";
  const next = (await queue(db, { kind: "server", id: server.id })).find(waits);
  if (next === undefined) return { server, keys: await listServerKeys(db, server.id) };
  const { fields, keys } = await stateBefore(db, next.input as RebuildInput);
  return { server: { ...server, ...fields }, keys };
}
