/** Whether there is room for more: in the quotas of the project, and on the host (docs/spec.md#account-and-project, #defaults-and-limits). */
import type { Location } from "@brume/api/catalog.ts";
import { requireQuota } from "../../account/model/rules.ts";
import { ApiError } from "../../base/error.ts";
import type { Capacity as HostCapacity } from "../../drivers/machine/interface.ts";

/** Of several servers together, or what one more of something comes to. */
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

export const demandOf = (servers: readonly Sized[]): Demand => ({
  Servers: servers.length,
  CPU: servers.reduce((sum, { cpu }) => sum + cpu, 0),
  RAM: servers.reduce((sum, { ram }) => sum + ram, 0),
  HDD: servers.reduce((sum, { hdd }) => sum + hdd, 0),
});

/** What a server needs more than it held: never less than nothing, since less takes nobody's place. */
export const growthOf = (held: Sized, wanted: Sized): Demand => ({
  Servers: 0,
  CPU: Math.max(0, wanted.cpu - held.cpu),
  RAM: Math.max(0, wanted.ram - held.ram),
  HDD: Math.max(0, wanted.hdd - held.hdd),
});

/** Throws `quota_exceeded`. `quotas` is the project's, as stored; what is not wanted is not held against a quota that was lowered. */
export function requireQuotas(quotas: string, used: Demand, wanted: Demand): void {
  for (const kind of kinds) if (wanted[kind] > 0) requireQuota(quotas, kind, used[kind], wanted[kind]);
}

/** Cores as configured, since most servers idle; memory not at all; disk 4-fold, since disks grow with what is written. */
const overcommitment = { RAM: 1, HDD: 4 } as const;
/** MB that stay the host's own. */
const hostMemory = 1024;
/** GB: with less really free no new disk is begun. */
const leastFreeDisk = 5;

/**
 * What the host offers after over-commitment, and what of it nobody holds. Locations are names for one host, so all servers count,
 * wherever they say they are.
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

/** Throws `no_capacity`. */
export function requireCapacity(capacity: Location["Capacity"], wanted: Demand): void {
  for (const kind of ["CPU", "RAM", "HDD"] as const) {
    const free = capacity[`Free${kind}`];
    if (wanted[kind] <= 0 || wanted[kind] <= free) continue;
    const detail = `${kind} (${units[kind]}): wanted ${wanted[kind]}, free ${free}, limit ${capacity[kind]}.`;
    throw new ApiError("no_capacity", detail);
  }
}
