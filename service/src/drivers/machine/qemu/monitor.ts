/** Typed queries to the monitor of a running VM. Sizes are in bytes unless a name or comment states otherwise. */
import { listAt, numberAt, pick, type Qmp, textAt } from "./qmp.ts";

/** Bytes. */
export const MIB = 2 ** 20;

/** Returns QAPI's RunState: `running`, `prelaunch` (has not received `cont`), `shutdown` (the guest shut down), `io-error` … */
export const runState = async (qmp: Qmp, limit?: number): Promise<string> =>
  textAt(await qmp.run("query-status", undefined, limit), "status");

export const uuidOf = async (qmp: Qmp): Promise<string> => textAt(await qmp.run("query-uuid"), "UUID");

const isRoot = (device: unknown): boolean => /(^|\/)root(\/|$)/.test(textAt(device, "qdev"));

/** The disk that the guest boots from, as QEMU has it open. */
export interface RootDisk {
  /** Number of the writable layer. */
  readonly layer: number;
  readonly node: string;
  readonly bytes: number;
}

/** Throws if the disk is not a layer that this driver created. */
export async function rootDisk(qmp: Qmp): Promise<RootDisk> {
  const inserted = pick(listAt(await qmp.run("query-block")).find(isRoot), "inserted");
  const node = textAt(inserted, "node-name");
  const [, layer] = /^disk([0-9]+)$/.exec(node) ?? [];
  if (layer === undefined) throw new Error(`the disk node of the VM is "${node}"; expected disk<layer>`);
  return { layer: Number(layer), node, bytes: numberAt(inserted, "image", "virtual-size") };
}

/** Returns the memory of the guest in MB, including hot-plugged modules. */
export async function memoryOf(qmp: Qmp, limit?: number): Promise<number> {
  const sizes = await qmp.run("query-memory-size-summary", undefined, limit);
  return Math.round((numberAt(sizes, "base-memory") + numberAt(sizes, "plugged-memory")) / MIB);
}

/** Returns the size of the translated code in bytes, and its maximum. */
export async function codeSize(qmp: Qmp): Promise<{ used: number; total: number }> {
  const text = textAt(await qmp.run("x-query-jit"), "human-readable-text");
  const [, used, total] = /^gen code size +([0-9]+)\/([0-9]+)$/m.exec(text) ?? [];
  if (used === undefined || total === undefined) throw new Error("x-query-jit of QEMU returned no code size");
  return { used: Number(used), total: Number(total) };
}

/** Returns the number of vCPUs, also those that were plugged in. */
export const cpusOf = async (qmp: Qmp, limit?: number): Promise<number> =>
  listAt(await qmp.run("query-cpus-fast", undefined, limit)).length;

/** Returns the bytes that the root disk has transferred since the start of the VM. */
export async function diskTraffic(qmp: Qmp, limit: number): Promise<{ diskRead: number; diskWritten: number }> {
  const stats = pick(listAt(await qmp.run("query-blockstats", undefined, limit)).find(isRoot), "stats");
  return { diskRead: numberAt(stats, "rd_bytes"), diskWritten: numberAt(stats, "wr_bytes") };
}

const balloon = "/machine/peripheral/balloon";

/** Makes the guest's balloon driver report its statistics in this interval. */
export async function pollMemory(qmp: Qmp, seconds: number): Promise<void> {
  await qmp.run("qom-set", { path: balloon, property: "guest-stats-polling-interval", value: seconds });
}

/** Returns the memory in use in MB, as reported by the guest; null before its first report. */
export async function memoryInUse(qmp: Qmp, limit: number): Promise<number | null> {
  const stats = await qmp.run("qom-get", { path: balloon, property: "guest-stats" }, limit);
  const total = numberAt(stats, "stats", "stat-total-memory");
  const available = numberAt(stats, "stats", "stat-available-memory");
  // A value that was never reported is 2^64 - 1.
  return total > 0 && total < 2 ** 60 && available <= total ? Math.round((total - available) / MIB) : null;
}

/** Returns the names of the hot-pluggable NICs with the PCIe port of each. */
export async function pluggedDevices(qmp: Qmp): Promise<ReadonlyMap<string, string>> {
  const entries = listAt(await qmp.run("qom-list", { path: "/machine/peripheral" }));
  const names = entries.map((entry) => textAt(entry, "name")).filter((name) => name.startsWith("nic"));
  const found = await Promise.all(
    names.map(async (name): Promise<[string, string]> => {
      const path = `/machine/peripheral/${name}`;
      const bus = String(await qmp.run("qom-get", { path, property: "parent_bus" }));
      return [name, /\/(rp[0-9]+)\//.exec(`${bus}/`)?.[1] ?? ""];
    }),
  );
  return new Map(found);
}

export const memoryModules = async (qmp: Qmp, limit?: number): Promise<number> =>
  listAt(await qmp.run("query-memory-devices", undefined, limit)).length;
