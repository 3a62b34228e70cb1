/**
 * Free capacity of the host, for requests that allocate it. The host is observed before the transaction because that is slow; quotas and
 * capacity are checked inside it, under locks.
 */

import type { Location } from "@brume/api/catalog.ts";
import type { ProjectRow } from "../account/table.ts";
import { ApiError } from "../base/error.ts";
import { reasonOf } from "../base/reason.ts";
import type { Capacity } from "../drivers/machine/interface.ts";
import type { Reader, Tx } from "../store/db.ts";
import type { ServerContext } from "./context.ts";
import type { HostStatus } from "./machinestatus.ts";
import { capacityOf, type Demand, requireCapacity, requireQuotas } from "./model/capacity.ts";
import { type Held, sumAll, sumProject } from "./sumtable.ts";
import { lockCapacity } from "./table.ts";

/** The host as observed before the transaction. */
export interface HostCapacity {
  /** Null: the machine driver did not respond or is not ready. */
  readonly capacity: Capacity | null;
  /** Why there is no capacity; "" if there is. */
  readonly problem: string;
  readonly cpuOvercommit: number;
  /** Returns the largest size that the running VM of a server can reach without a restart. Null: unknown or off. */
  reach(server: number): { readonly cpus: number; readonly memory: number } | null;
}

/** Observes the host now, and the VMs of these servers. */
export const readHost = (context: ServerContext, ...servers: number[]): Promise<HostCapacity> =>
  hostOf(context, context.servers.machineStatus.observeServers(servers));

/** Uses the last observation if it is recent. Sufficient where only the free capacity counts. */
export const readHostCached = (context: ServerContext): Promise<HostCapacity> =>
  hostOf(context, context.servers.machineStatus.recent());

async function hostOf(
  { servers, log, cpuOvercommit }: ServerContext,
  observation: Promise<HostStatus>,
): Promise<HostCapacity> {
  const { ready, detail, capacity } = await observation.catch((error: unknown) => {
    log("warn", "Could not observe the VMs.", { error });
    return { ready: false, detail: reasonOf(error), capacity: null };
  });
  return {
    capacity: ready ? capacity : null,
    problem: ready ? "" : detail,
    cpuOvercommit,
    reach: (server) => servers.machineStatus.of(server)?.reach ?? null,
  };
}

/** What is allocated to a project, and to all projects. */
export interface Allocated {
  readonly project: Held;
  readonly host: Held;
}

/** Reads what is allocated. The caller has locked the project; the capacity of the host stays locked until the commit. */
export async function readAllocated(tx: Tx, project: number): Promise<Allocated> {
  const [own, , all] = await Promise.all([sumProject(tx, project), lockCapacity(tx), sumAll(tx)]);
  return { project: own, host: all };
}

/** Throws `quota_exceeded`, `engine_unavailable` or `no_capacity` if `wanted` cannot be allocated beside `allocated`. */
export function requireSpace(project: ProjectRow, host: HostCapacity, allocated: Allocated, wanted: Demand): void {
  requireQuotas(project.quotas, allocated.project, wanted);
  requireCapacity(capacityOf(requireEngine(host), allocated.host, host.cpuOvercommit), wanted);
}

/** Reads what is allocated, and throws as `requireSpace`. */
export const requireDemand = async (tx: Tx, project: ProjectRow, host: HostCapacity, wanted: Demand): Promise<void> =>
  requireSpace(project, host, await readAllocated(tx, project.id), wanted);

/** Returns the capacity of the host and its free part. Throws `engine_unavailable`. */
export const freeCapacity = async (db: Reader, host: HostCapacity): Promise<Location["Capacity"]> =>
  capacityOf(requireEngine(host), await sumAll(db), host.cpuOvercommit);

/** Throws `engine_unavailable` if the host could not be observed. */
export function requireEngine({ capacity, problem }: HostCapacity): Capacity {
  if (capacity === null)
    throw new ApiError("engine_unavailable", `The server driver does not work: ${problem}. Repeat the request later.`);
  return capacity;
}
