/**
 * What the routes of servers share: who asks for what, what the host has left for it, and how long an answer waits for the work that was
 * ordered. Locks are taken in one order by all: project, the servers' queues by id, room, networks by id.
 */
import type { Action } from "@brume/api/action.ts";
import type { Location } from "@brume/api/catalog.ts";
import { findProject, lockProject, type ProjectRow } from "../account/table.ts";
import type { Clock } from "../base/clock.ts";
import { ApiError } from "../base/error.ts";
import type { Log } from "../base/log.ts";
import { listImages, listSshKeys } from "../catalog/table.ts";
import type { Capacity, Consoles, Machines, MachinesStatus } from "../drivers/machine/interface.ts";
import { type Ended, endedWithin, find, queue, type Task } from "../engine/task.ts";
import type { Caller, Request, ResourceChange } from "../http/handler.ts";
import type { Tickets } from "../http/tickets.ts";
import { listNetworksById } from "../network/table.ts";
import type { Reader, Store, Tx } from "../store/db.ts";
import type { Cause } from "./flow/context.ts";
import { capacityOf, type Demand, requireCapacity, requireQuotas } from "./model/capacity.ts";
import type { References } from "./model/plan.ts";
import { showAction } from "./model/show.ts";
import type { Servers } from "./servers.ts";
import { findServer, lockCapacity, type ServerRow, sumAll, sumProject } from "./table.ts";
import type { ViewTools } from "./view.ts";

/** What the routes have in their hands. */
export interface ServerContext extends ViewTools {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly machines: Pick<Machines, "ensureStopped" | "holdDisks" | "releaseDisks">;
  readonly consoles: Consoles;
  readonly servers: Servers;
  /** Titles; the first is the default. */
  readonly locations: readonly string[];
  readonly tickets: Tickets;
  /** Processors of servers that one core of the host is counted for. */
  readonly cpuOvercommit: number;
  readonly ended: Ended;
}

/** Throws `server_not_found`. */
export async function getServer(db: Reader, caller: Caller, id: number): Promise<ServerRow> {
  const row = await findServer(db, caller.projectId, id);
  if (row === undefined) throw new ApiError("server_not_found", `There is no server ${id} in this project.`);
  return row;
}

export const causeOf = ({ caller, requestId }: Pick<Request, "caller" | "requestId">): Cause => ({
  token: caller.tokenId,
  request: requestId,
});

/** What works on a server and waits for it; it stays so until the commit. */
export const queueOf = (tx: Tx, server: number): Promise<Task[]> => queue(tx, { kind: "server", id: server });

/** What wishes can refer to; of networks those that these name, the shared ones included as in `AddNetwork`. */
export async function loadReferences(
  { locations }: ServerContext,
  db: Reader,
  { projectId }: Caller,
  named: readonly (number | undefined)[] = [],
): Promise<References> {
  const ids = new Set(named.flatMap((id) => id ?? []));
  const networks = (await listNetworksById(db, [...ids])).filter(
    ({ project_id, kind }) => project_id === projectId || kind === "shared",
  );
  return {
    images: await listImages(db, projectId),
    locations,
    networks: new Map(networks.map((network) => [network.id, network])),
    keys: new Map((await listSshKeys(db, projectId)).map((key) => [key.id, key])),
  };
}

/** The machines as they stand, asked for before the transaction. Null: they do not answer. */
export interface HostCapacity {
  readonly capacity: Capacity | null;
  readonly cpuOvercommit: number;
  /** The most that this server can grow to as it runs. */
  reach(server: number): { readonly cpus: number; readonly memory: number } | null;
}

export const readHost = (context: ServerContext): Promise<HostCapacity> =>
  askHost(context, context.servers.machineStatus.look());

/** The same by the last look, for who asks for room only. */
export const readHostCached = (context: ServerContext): Promise<HostCapacity> =>
  askHost(context, context.servers.machineStatus.recent());

async function askHost(
  { servers, log, cpuOvercommit }: ServerContext,
  asked: Promise<MachinesStatus>,
): Promise<HostCapacity> {
  const status = await asked.catch((error: unknown) => {
    log("warn", "The machines do not answer.", { error });
    return null;
  });
  return {
    capacity: status?.ready === true ? status.capacity : null,
    cpuOvercommit,
    reach: (server) => servers.machineStatus.of(server)?.reach ?? null,
  };
}

/** Orders all that take of a project's quotas. Throws `project_blocked` when that has happened since the request was let in. */
export async function openProject(tx: Tx, caller: Caller): Promise<ProjectRow> {
  await lockProject(tx, caller.projectId);
  const project = await findProject.first(tx, { id: caller.projectId });
  if (project === undefined) throw new ApiError("token_invalid", "The token's project is gone.");
  if (project.is_blocked === 1)
    throw new ApiError("project_blocked", "A blocked project can only be read and cleared.");
  return project;
}

/** Throws `quota_exceeded`, `engine_unavailable`, `no_capacity`. The project is locked; from here on so is the room of the host. */
export async function requireDemand(tx: Tx, project: ProjectRow, host: HostCapacity, wanted: Demand): Promise<void> {
  requireQuotas(project.quotas, await sumProject(tx, project.id), wanted);
  await lockCapacity(tx);
  requireCapacity(await freeCapacity(tx, host), wanted);
}

/** What the host offers, and what of it nobody holds. Throws `engine_unavailable`. */
export const freeCapacity = async (db: Reader, host: HostCapacity): Promise<Location["Capacity"]> =>
  capacityOf(requireEngine(host), await sumAll(db), host.cpuOvercommit);

/** Throws `engine_unavailable`. */
export function requireEngine({ capacity }: HostCapacity): Capacity {
  if (capacity === null) throw new ApiError("engine_unavailable", "The machines do not answer.");
  return capacity;
}

/** Resolves when all of them have ended, or `ms` are over. */
export const waitForTasks = ({ ended }: ServerContext, tasks: readonly Pick<Task, "id">[], ms: number): Promise<void> =>
  endedWithin(
    ended,
    tasks.map(({ id }) => ({ task: id })),
    ms,
  );

/** The task of an order, which is an action. */
export function actionOf(task: Task): Action {
  const action = showAction(task);
  if (action === null) throw new Error(`${task.name} is no action`);
  return action;
}

/** The action as it is when it has ended, or `ms` are over. */
export async function awaitAction(context: ServerContext, task: Task, ms: number): Promise<Action | undefined> {
  if (ms <= 0) return undefined;
  await waitForTasks(context, [task], ms);
  const now = await find(context.store.read, task.id);
  return now && actionOf(now);
}

/** For the audit; the events are told where the work is ordered. */
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
