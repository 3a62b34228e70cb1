/**
 * Dependencies and helpers that the request handlers of servers share. All handlers take their locks in one order: project, queues of
 * servers by id, capacity of the host, networks by id.
 */
import type { Action } from "@brume/api/action.ts";
import { findProject, lockProject, type ProjectRow } from "../account/table.ts";
import type { Clock } from "../base/clock.ts";
import { ApiError } from "../base/error.ts";
import type { Log } from "../base/log.ts";
import { listImages, listSshKeys } from "../catalog/table.ts";
import type { Consoles, Machines } from "../drivers/machine/interface.ts";
import { type Ended, endedWithin, find, queue, type Task } from "../engine/task.ts";
import type { Caller, Request, ResourceChange } from "../http/handler.ts";
import type { Tickets } from "../http/tickets.ts";
import { listNetworksById } from "../network/table.ts";
import type { Reader, Store, Tx } from "../store/db.ts";
import type { Cause } from "./flow/context.ts";
import type { References } from "./model/plan.ts";
import { showAction } from "./model/show.ts";
import type { Servers } from "./servers.ts";
import { findServer, type ServerRow } from "./table.ts";
import type { ViewContext } from "./view.ts";

/** Dependencies of the request handlers of servers. */
export interface ServerContext extends ViewContext {
  readonly store: Store;
  /** Returns a number that changes with each commit; null: other processes write. */
  readonly position: () => number | null;
  readonly clock: Clock;
  readonly log: Log;
  readonly machines: Pick<Machines, "ensureStopped" | "holdDisks" | "releaseDisks">;
  readonly consoles: Consoles;
  /** Folder on the host with the folders of servers, for responses; this process may have no access to it. */
  readonly serversFolder: string;
  readonly servers: Servers;
  /** Titles; the first is the default. */
  readonly locations: readonly string[];
  readonly tickets: Tickets;
  /** vCPUs that may be allocated per core of the host. */
  readonly cpuOvercommit: number;
  /** Resolves when a task has ended. */
  readonly ended: Ended;
}

/** Returns a server of the caller's project. Throws `server_not_found`. */
export async function getServer(db: Reader, caller: Caller, id: number): Promise<ServerRow> {
  const row = await findServer(db, caller.projectId, id);
  if (row === undefined) throw new ApiError("server_not_found", `Server ${id} does not exist in this project.`);
  return row;
}

/** Returns the cause of a change for its events: the token and the request. */
export const causeOf = ({ caller, requestId }: Pick<Request, "caller" | "requestId">): Cause => ({
  token: caller.tokenId,
  request: requestId,
});

/** Locks the queue of a server until the commit. Returns its tasks, the running one first. */
export const queueOf = (tx: Tx, server: number): Promise<Task[]> => queue(tx, { kind: "server", id: server });

/** Loads the objects that the body of a request can refer to. Of networks, loads those in `networkIds` that the project can use. */
export async function loadReferences(
  { locations }: ServerContext,
  db: Reader,
  { projectId }: Caller,
  networkIds: readonly (number | undefined)[] = [],
): Promise<References> {
  const ids = new Set(networkIds.flatMap((id) => id ?? []));
  const [named, images, keys] = await Promise.all([
    listNetworksById(db, [...ids]),
    listImages(db, projectId),
    listSshKeys(db, projectId),
  ]);
  const networks = named.filter(({ project_id, kind }) => project_id === projectId || kind === "shared");
  return {
    images,
    locations,
    networks: new Map(networks.map((network) => [network.id, network])),
    keys: new Map(keys.map((key) => [key.id, key])),
  };
}

/**
 * Locks the caller's project until the commit, so that requests that use its quotas run one after the other. Throws `project_blocked` if it
 * was blocked after the request was authorized, and `token_invalid` if it was deleted.
 */
export async function openProject(tx: Tx, caller: Caller): Promise<ProjectRow> {
  await lockProject(tx, caller.projectId);
  const project = await findProject.first(tx, { id: caller.projectId });
  if (project === undefined)
    throw new ApiError("token_invalid", `Project ${caller.projectId} of the token does not exist any more.`);
  if (project.is_blocked === 1)
    throw new ApiError("project_blocked", "The project is blocked: its objects can only be read and deleted.");
  return project;
}

/** Resolves when all tasks have ended, or after `ms`. */
export const waitForTasks = ({ ended }: ServerContext, tasks: readonly Pick<Task, "id">[], ms: number): Promise<void> =>
  endedWithin(
    ended,
    tasks.map(({ id }) => ({ task: id })),
    ms,
  );

/** Returns the action that shows the task. Throws for a task that is not an action. */
export function actionOf(task: Task): Action {
  const action = showAction(task);
  if (action === null) throw new Error(`${task.name} is no action`);
  return action;
}

/** Waits until the action has ended, at most `ms`. Resolves to its present state; undefined without a wait or if it was deleted. */
export async function awaitAction(context: ServerContext, task: Task, ms: number): Promise<Action | undefined> {
  if (ms <= 0) return undefined;
  await waitForTasks(context, [task], ms);
  const now = await find(context.store.read, task.id);
  return now && actionOf(now);
}

/** Returns a change that is written to the audit only, because the code that queues the work appends the event. */
export const auditOnly = (
  type: ResourceChange["type"],
  id: number,
  before: unknown,
  after: unknown,
): ResourceChange => ({
  type,
  id,
  parent: null,
  before,
  after,
  silent: true,
});
