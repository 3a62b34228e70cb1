/** Waits of an apply: until an action of a server has ended, until an object is gone. */
import type { Action } from "@brume/api/action.ts";
import { ApiError, WaitError } from "@brume/api/client.ts";
import { describeAction } from "../progress.ts";
import { pause } from "../time.ts";
import type { Work } from "./change.ts";

/** Waits for an action of a server and shows its steps. */
export const waitForAction = ({ client, signal, timeout, progress }: Work, action: Pick<Action, "ID" | "ServerID">) =>
  client.waitFor(action, { signal, timeout, onProgress: (one) => progress(describeAction(one)) });

/** Waits for the action `Create` of a server. */
export async function waitForCreation(work: Work, id: number): Promise<void> {
  const input = { path: { id }, query: { type: "Create,Copy,Rebuild", limit: 1 } };
  const [action] = await work.client.listActions(input, { signal: work.signal });
  if (action) await waitForAction(work, action);
}

/** Waits until a public network is applied. */
export const waitForNetwork = ({ client, signal, timeout }: Work, id: number) =>
  client.waitFor("readPublicNetwork", { path: { id } }, { signal, timeout });

/** Deletes an object and waits until it is gone. An object that does not exist is deleted already. */
export async function deleteAndWait(
  { signal, timeout }: Work,
  remove: () => Promise<unknown>,
  read: () => Promise<unknown>,
  what: string,
): Promise<void> {
  const end = Date.now() + timeout;
  try {
    await remove();
    for (;;) {
      const last = await read();
      if (Date.now() > end) throw new WaitError(what, timeout, last);
      await pause(200, signal);
      signal.throwIfAborted();
    }
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
  }
}
