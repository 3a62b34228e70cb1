/**
 * Prevents conflicts between several installations on one host. Each installation writes a file in its run folder with its data folder and
 * address blocks. At start the files of the others and the host's routes and addresses are compared with the own blocks. A start that would
 * use names or addresses of others fails with the setting to change. A file counts only while its installation has a process, namespace or
 * link on the host.
 */
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type Addresses, formatAddresses, parseAddresses } from "../../../base/address.ts";
import type { Child, Exec } from "../../exec.ts";
import { closedExcept } from "../model/closedaddresses.ts";
import { uplinkPrefix } from "../model/name.ts";

/** The address blocks of one setting. */
export interface Pool {
  readonly setting: string;
  readonly blocks: readonly string[];
  /** Whether the operator set the blocks; otherwise they are defaults. */
  readonly isChosen: boolean;
}

/** The file `owner.json`. Its keys are read by other releases and never change. */
interface Note {
  readonly folder: string;
  readonly process: Child | null;
  /** Identity of the host's network namespace: only blocks in the same namespace can conflict. */
  readonly space: string;
  readonly blocks: readonly string[];
}

/** Identifies an installation. */
export interface Names {
  readonly exec: Exec;
  readonly tag: string;
  readonly dataFolder: string;
  /** Parent of all run folders, `/run` by default. */
  readonly root?: string;
  /** PID of the process that lives as long as the service; this one by default. */
  readonly owner?: number;
}

/** Options of `claimHost`. */
export interface ClaimOptions extends Names {
  readonly pools: readonly Pool[];
}

const run = "/run";
const prefix = "brume-";
const fileName = "owner.json";

function readNote(folder: string): Note | null {
  try {
    return JSON.parse(readFileSync(join(folder, fileName), "utf8")) as Note;
  } catch {
    return null;
  }
}

const list = (folder: string): string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

/** Returns whether the installation has a running service, a namespace or a link on the host. */
function isPresent(exec: Exec, tag: string, note: Note): boolean {
  if (note.process !== null && exec.isAlive(note.process)) return true;
  if (list("/run/netns").some((name) => name.startsWith(`${prefix}${tag}-`))) return true;
  return list("/sys/class/net").some((name) => new RegExp(`^b${tag}[utx]`).test(name));
}

const overlap = (one: Addresses, other: Addresses): boolean =>
  one.family === other.family && one.first <= other.last && other.first <= one.last;
const covers = (outer: Addresses, inner: Addresses): boolean =>
  outer.first <= inner.first && inner.last <= outer.last && outer.last - outer.first > inner.last - inner.first;

/** A range of addresses that is in use, and by what. */
interface Use {
  readonly range: Addresses;
  readonly by: string;
  /** True for addresses of the host or of another installation, which must not overlap at all. */
  readonly isFirm: boolean;
}

interface Route {
  readonly type?: string;
  readonly dst?: string;
  readonly dev?: string;
}

/** Returns the blocks that the host routes to networks of this installation. Empty where there are no routes, such as without `ip`. */
export async function listRouted(exec: Exec, tag: string): Promise<string[]> {
  const read = (family: string): Promise<string> => exec.run(["ip", "-j", family, "route"]).catch(() => "");
  const routes = [await read("-4"), await read("-6")].flatMap((text) => JSON.parse(text || "[]") as Route[]);
  return routes.filter(({ dev = "" }) => dev.startsWith(uplinkPrefix(tag))).flatMap(({ dst }) => dst ?? []);
}

/** Returns the host's addresses and routes, without routes to our own networks. */
async function usesOfHost(exec: Exec, tag: string): Promise<Use[]> {
  const read = async (family: string) =>
    JSON.parse((await exec.run(["ip", "-j", family, "route", "show", "table", "all"])) || "[]") as Route[];
  const routes = [...(await read("-4")), ...(await read("-6").catch(() => []))];
  return routes.flatMap(({ type = "unicast", dst = "default", dev = "" }): Use[] => {
    if ((type !== "unicast" && type !== "local") || dst === "default" || dev.startsWith(uplinkPrefix(tag))) return [];
    const what = type === "local" ? "the address" : "the route";
    return [{ range: parseAddresses(dst), by: `${what} ${dst} of ${dev}`, isFirm: type === "local" }];
  });
}

/** Returns the blocks of other installations on the host. */
function usesOfOthers({ exec, tag, root = run }: ClaimOptions, space: string): Use[] {
  return list(root)
    .filter((name) => name.startsWith(prefix) && name !== prefix + tag)
    .flatMap((name) => {
      const note = readNote(join(root, name));
      if (note === null || note.space !== space || !isPresent(exec, name.slice(prefix.length), note)) return [];
      return note.blocks.map((block) => ({
        range: parseAddresses(block),
        by: `${block} of the installation in ${note.folder}`,
        isFirm: true,
      }));
    });
}

/** Returns a free private IPv4 block of `size` addresses, null when there is none. */
function freeBlock(size: bigint, used: readonly Addresses[]): Addresses | null {
  for (const { first, last } of ["10.63.0.0-10.255.255.255", "172.16.0.0/12"].map(parseAddresses))
    for (let next = ((first + size - 1n) / size) * size; next + size - 1n <= last; next += size) {
      const range: Addresses = { family: 4, first: next, last: next + size - 1n };
      if (!used.some((each) => overlap(range, each))) return range;
    }
  return null;
}

/** Loopback, link-local and similar blocks. */
const reserved = closedExcept([])
  .filter((text) => text.includes("/"))
  .map((text): Use => ({ range: parseAddresses(text), by: `${text}, which guests must not use`, isFirm: true }));

/** Throws when a pool overlaps addresses in use. A wider route around a pool is allowed if the operator set the pool. */
function checkPools(pools: readonly Pool[], uses: readonly Use[]): void {
  for (const { setting, blocks, isChosen } of pools)
    for (const block of blocks) {
      const range = parseAddresses(block);
      const conflicts = ({ range: other, isFirm }: Use) =>
        overlap(range, other) && (isFirm || !isChosen || !covers(other, range));
      const use = [...reserved, ...uses].find(conflicts);
      if (use === undefined) continue;
      const used = [...uses.map((each) => each.range), ...pools.flatMap((pool) => pool.blocks.map(parseAddresses))];
      const free = range.family === 4 ? freeBlock(range.last - range.first + 1n, used) : null;
      const example = free === null ? "" : `, such as ${formatAddresses(4, free)}`;
      throw new Error(
        `${setting}: ${block} overlaps ${use.by}. Set ${setting} to a block that is free on this host${example}.`,
      );
    }
}

/** Throws when another installation uses the names. `isService`: also when another service runs with the same data folder. */
export function requireNames(
  { exec, tag, dataFolder, root = run, owner: own = process.pid }: Names,
  isService: boolean,
): void {
  const folder = join(root, prefix + tag);
  const note = readNote(folder);
  if (note === null || !isPresent(exec, tag, note)) return;
  if (note.folder !== dataFolder)
    throw new Error(
      `BRUME_DATA: the names "${prefix}${tag}" that ${dataFolder} has on this host are in use by the installation in ${note.folder}. Choose another path for BRUME_DATA. If that installation no longer exists, delete ${join(folder, fileName)}.`,
    );
  const { process: owner } = note;
  if (isService && owner !== null && owner.pid !== own && exec.isAlive(owner))
    throw new Error(`BRUME_DATA: process ${owner.pid} already runs with ${dataFolder}. Stop it first.`);
}

/** Registers the names and blocks of this installation. Throws an error that names the setting to change. */
export async function claimHost(options: ClaimOptions): Promise<void> {
  const { exec, tag, dataFolder, pools, root = run, owner = process.pid } = options;
  requireNames(options, true);
  const folder = join(root, prefix + tag);
  const space = readlinkSync("/proc/self/ns/net");
  const blocks = pools.flatMap((pool) => pool.blocks);
  const write = (note: Note) => {
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o711);
    const temporary = join(folder, `${fileName}.${process.pid}`);
    writeFileSync(temporary, `${JSON.stringify(note)}\n`, { mode: 0o600 });
    renameSync(temporary, join(folder, fileName));
  };
  const before = readNote(folder);
  // Written before the others are read: if two start at once, at least one sees the other.
  write({ folder: dataFolder, process: exec.find(owner), space, blocks });
  try {
    checkPools(pools, [...usesOfOthers(options, space), ...(await usesOfHost(exec, tag))]);
  } catch (error) {
    if (before === null) rmSync(join(folder, fileName));
    else write({ ...before, process: null });
    throw error;
  }
}
