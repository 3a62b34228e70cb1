/** Questions to a running server's monitor, and their answers in our words. Sizes are in bytes unless a name says otherwise. */
import { listAt, numberAt, pick, type Qmp, textAt } from "./qmp.ts";

export const MIB = 2 ** 20;

/** QAPI's RunState: `running`, `prelaunch` (never told to go), `shutdown` (the guest switched itself off), `io-error` … */
export const runState = async (qmp: Qmp, limit?: number): Promise<string> =>
  textAt(await qmp.run("query-status", undefined, limit), "status");

export const uuidOf = async (qmp: Qmp): Promise<string> => textAt(await qmp.run("query-uuid"), "UUID");

const isRoot = (device: unknown): boolean => /(^|\/)root(\/|$)/.test(textAt(device, "qdev"));

export interface RootDisk {
  /** Number of the layer that is written to. */
  readonly layer: number;
  readonly node: string;
  readonly bytes: number;
}

export async function rootDisk(qmp: Qmp): Promise<RootDisk> {
  const inserted = pick(listAt(await qmp.run("query-block")).find(isRoot), "inserted");
  const node = textAt(inserted, "node-name");
  const [, layer] = /^disk([0-9]+)$/.exec(node) ?? [];
  if (layer === undefined) throw new Error(`the server's disk is "${node}", which is none of ours`);
  return { layer: Number(layer), node, bytes: numberAt(inserted, "image", "virtual-size") };
}

/** MB that the guest has, modules plugged in later included. */
export async function memoryOf(qmp: Qmp, limit?: number): Promise<number> {
  const sizes = await qmp.run("query-memory-size-summary", undefined, limit);
  return Math.round((numberAt(sizes, "base-memory") + numberAt(sizes, "plugged-memory")) / MIB);
}

/** Bytes of translated code, and how many there may be. */
export async function codeSize(qmp: Qmp): Promise<{ used: number; total: number }> {
  const text = textAt(await qmp.run("x-query-jit"), "human-readable-text");
  const [, used, total] = /^gen code size +([0-9]+)\/([0-9]+)$/m.exec(text) ?? [];
  if (used === undefined || total === undefined) throw new Error("QEMU does not say how much code it has translated");
  return { used: Number(used), total: Number(total) };
}

export const cpusOf = async (qmp: Qmp, limit?: number): Promise<number> =>
  listAt(await qmp.run("query-cpus-fast", undefined, limit)).length;

export async function diskTraffic(qmp: Qmp, limit: number): Promise<{ diskRead: number; diskWritten: number }> {
  const stats = pick(listAt(await qmp.run("query-blockstats", undefined, limit)).find(isRoot), "stats");
  return { diskRead: numberAt(stats, "rd_bytes"), diskWritten: numberAt(stats, "wr_bytes") };
}

const balloon = "/machine/peripheral/balloon";

/** The guest's driver answers by itself from then on. */
export async function pollMemory(qmp: Qmp, seconds: number): Promise<void> {
  await qmp.run("qom-set", { path: balloon, property: "guest-stats-polling-interval", value: seconds });
}

/** MB in use as the guest says; null while it has said nothing. */
export async function memoryInUse(qmp: Qmp, limit: number): Promise<number | null> {
  const answer = await qmp.run("qom-get", { path: balloon, property: "guest-stats" }, limit);
  const total = numberAt(answer, "stats", "stat-total-memory");
  const available = numberAt(answer, "stats", "stat-available-memory");
  // What was never told is 2^64 - 1.
  return total > 0 && total < 2 ** 60 && available <= total ? Math.round((total - available) / MIB) : null;
}

/** Names of the devices that can be unplugged, with the place each is in. */
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
