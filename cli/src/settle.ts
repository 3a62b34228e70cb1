/** Waits until a change has taken effect, and shows its progress: the action of a server, or the state of another object. */
import { setTimeout as pause } from "node:timers/promises";
import type { Action } from "@brume/api/action.ts";
import { ActionError, ApiError, type Client, WaitError } from "@brume/api/client.ts";
import { isSettled } from "@brume/api/wait.ts";
import { operationOf, titleOf } from "./model/schema.ts";
import { textOf } from "./print/columns.ts";
import { createProgress, type Progress } from "./progress.ts";
import type { Session } from "./session.ts";

type Row = Readonly<Record<string, unknown>>;

const isGone = (error: unknown) => error instanceof ApiError && error.status === 404;
const hasEnded = ({ State }: Action) => ["Completed", "Failed", "Canceled"].includes(State);

interface Wait {
  readonly client: Client;
  readonly signal: AbortSignal;
  /** Milliseconds. */
  readonly timeout: number;
  readonly progress: Progress;
}

const waitForAction = ({ client, signal, timeout, progress }: Wait, action: Pick<Action, "ID" | "ServerID">) =>
  client.waitFor(action, { signal, timeout, onProgress: progress.action });

/** Returns the newest action of a server that the change has started. */
async function newestAction({ client, signal }: Wait, id: number): Promise<Action | undefined> {
  const actions = await client.listActions({ path: { id }, query: { limit: 20 } }, { signal });
  return actions.find((one) => !hasEnded(one)) ?? actions[0];
}

/** Waits for the action of a new, copied or rebuilt server, and returns the server. */
async function waitForServer(wait: Wait, id: number): Promise<unknown> {
  const action = await newestAction(wait, id);
  if (action) await waitForAction(wait, action);
  return wait.client.readServer({ path: { id } }, { signal: wait.signal });
}

/** Waits until a read responds that the object does not exist. */
async function waitUntilGone(wait: Wait, read: (signal: AbortSignal) => Promise<unknown>, what: string): Promise<void> {
  const end = Date.now() + wait.timeout;
  for (;;) {
    try {
      const last = await read(wait.signal);
      if (Date.now() > end) throw new WaitError(what, wait.timeout, last);
    } catch (error) {
      if (isGone(error)) return;
      throw error;
    }
    await pause(250, undefined, { signal: wait.signal });
  }
}

async function waitForDeletion(wait: Wait, id: number): Promise<void> {
  try {
    const action = await newestAction(wait, id);
    if (action?.Type === "Delete") await waitForAction(wait, action);
  } catch (error) {
    // The server, and with it the action, no longer exists: it is deleted.
    if (isGone(error)) return;
    throw error;
  }
  await waitUntilGone(wait, (signal) => wait.client.readServer({ path: { id } }, { signal }), "deleteServer");
}

/** Waits for all servers of a group. With `BestEffort`, a server that failed is part of the result, unless all failed. */
async function waitForGroup(wait: Wait, answer: Row): Promise<unknown> {
  const servers = answer["Servers"] as { ID: number; Name: string }[];
  const ended: unknown[] = [];
  const failures: ActionError[] = [];
  for (const { ID, Name } of servers) {
    const counted: Progress = {
      ...wait.progress,
      action: (one) => wait.progress.show(`${ended.length}/${servers.length} ${Name} ${one.Progress}%`),
    };
    try {
      ended.push(await waitForServer({ ...wait, progress: counted }, ID));
    } catch (error) {
      if (!(error instanceof ActionError) || answer["Policy"] !== "BestEffort") throw error;
      failures.push(error);
      if (failures.length === servers.length) throw error;
      ended.push(await wait.client.readServer({ path: { id: ID } }, { signal: wait.signal }));
    }
  }
  // Groups have no read. At least one creation has completed, so the group is `Active` (docs/spec.md#server-group-states).
  return { ...answer, State: "Active", Servers: ended };
}

/**
 * Waits for the effect of a change and returns the object as it is then. Throws `ActionError` if its action failed, and `WaitError` after
 * the time of `--timeout`.
 */
export async function settle(
  session: Session,
  name: string,
  path: Readonly<Record<string, number>>,
  answer: unknown,
  subject: string,
): Promise<unknown> {
  const operation = operationOf(name);
  const title = titleOf(operation);
  const row = (answer ?? {}) as Row;
  const { signal } = session.host;
  const progress = createProgress(session.host, session.options, subject);
  const wait = { client: await session.client(), signal, timeout: session.options.timeout * 1000, progress };
  try {
    if (title === "Action") return await waitForAction(wait, answer as Action);
    if (title === "Server") return await waitForServer(wait, Number(row["ID"]));
    if (title === "Batch") return await waitForGroup(wait, row);
    if (name === "deleteServer") return await waitForDeletion(wait, path["id"] ?? 0);
    if (operation.resultOperation === undefined) return answer;
    const result = operationOf(operation.resultOperation);
    const id = Number(row["ID"] ?? row["Id"] ?? path["id"]);
    const read = async (signal: AbortSignal) =>
      (await (await session.any()).raw[operation.resultOperation ?? ""]?.({ path: { id } }, { signal }))?.answer;
    if (operation.method === "DELETE") {
      progress.show("is being deleted");
      return await waitUntilGone(wait, read, name);
    }
    if (isSettled(answer) || result.method !== "GET") return answer;
    progress.show(textOf(row["State"]));
    return await wait.client.waitFor(
      operation.resultOperation as "readPublicNetwork",
      { path: { id } },
      {
        signal,
        timeout: wait.timeout,
        onProgress: (one) => progress.show(progressOf(one)),
      },
    );
  } finally {
    progress.end();
  }
}

/** Returns the progress of an object that is no server: its state, with a percentage where it has one, and its error. */
function progressOf(value: unknown): string {
  const {
    State,
    Progress: percent,
    Error: cause,
  } = value as { State?: string; Progress?: number; Error?: { detail: string } | null };
  return [State === "Active" ? "is being applied" : State, percent !== undefined && `${percent}%`, cause?.detail]
    .filter(Boolean)
    .join(" ");
}
