/** Checks a demand against the quotas of the project and the capacity of the host (docs/spec.md#account-and-project, #defaults-and-limits). */
import type { Location } from "@brume/api/catalog.ts";
import { requireQuota } from "../../account/model/rules.ts";
import { ApiError } from "../../base/error.ts";
import type { Capacity as HostCapacity } from "../../drivers/machine/interface.ts";

/** Sum of what servers need. */
export interface Demand {
  readonly Servers: number;
  /** Cores, MB, GB. */
  readonly CPU: number;
  readonly RAM: number;
  readonly HDD: number;
}

interface Sized {
  readonly cpu: number;
  readonly ram: number;
  readonly hdd: number;
}

const kinds = ["Servers", "CPU", "RAM", "HDD"] as const;
const units = { CPU: "cores", RAM: "MB", HDD: "GB" } as const;

/** Returns the demand of new servers. */
export const demandOf = (servers: readonly Sized[]): Demand => ({
  Servers: servers.length,
  CPU: servers.reduce((sum, { cpu }) => sum + cpu, 0),
  RAM: servers.reduce((sum, { ram }) => sum + ram, 0),
  HDD: servers.reduce((sum, { hdd }) => sum + hdd, 0),
});

/** Returns what a server needs in addition to its reservation; 0 where it shrinks. */
export const growthOf = (held: Sized, wanted: Sized): Demand => ({
  Servers: 0,
  CPU: Math.max(0, wanted.cpu - held.cpu),
  RAM: Math.max(0, wanted.ram - held.ram),
  HDD: Math.max(0, wanted.hdd - held.hdd),
});

/** Throws `quota_exceeded`. `quotas` is JSON as stored. A quota that is lower than its use only matters if more is requested. */
export function requireQuotas(quotas: string, used: Demand, wanted: Demand): void {
  for (const kind of kinds) if (wanted[kind] > 0) requireQuota(quotas, kind, used[kind], wanted[kind]);
}

/** Overcommitment: memory none; disk 4-fold, because disks grow only with written data. That of cores is a setting. */
const overcommitment = { RAM: 1, HDD: 4 } as const;
/** MB that are reserved for the host. */
const hostMemory = 1024;
/** GB that must be free on the file system of the host for a new disk. */
const leastFreeDisk = 5;

/**
 * Returns the capacity of the host after overcommitment, and its free part. All locations are the same host, so the servers of all
 * locations count.
 */
export function capacityOf(
  host: HostCapacity,
  held: Omit<Demand, "Servers">,
  cpuOvercommit: number,
): Location["Capacity"] {
  const CPU = host.cores * cpuOvercommit;
  const RAM = Math.max(0, Math.floor(host.memory) - hostMemory) * overcommitment.RAM;
  const HDD = Math.floor(host.disk) * overcommitment.HDD;
  const free = (limit: number, taken: number) => Math.max(0, limit - taken);
  const FreeHDD = host.diskFree < leastFreeDisk ? 0 : free(HDD, held.HDD);
  return { CPU, RAM, HDD, FreeCPU: free(CPU, held.CPU), FreeRAM: free(RAM, held.RAM), FreeHDD };
}

/** Throws `no_capacity` if the free capacity is less than the demand. */
export function requireCapacity(capacity: Location["Capacity"], wanted: Demand): void {
  for (const kind of ["CPU", "RAM", "HDD"] as const) {
    const free = capacity[`Free${kind}`];
    if (wanted[kind] <= 0 || wanted[kind] <= free) continue;
    const detail = `${kind} (${units[kind]}): wanted ${wanted[kind]}, free ${free}, limit ${capacity[kind]}.`;
    throw new ApiError("no_capacity", detail);
  }
}
