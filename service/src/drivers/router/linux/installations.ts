/**
 * One host may have several installations. Each leaves a note in its run folder: whose names these are, and which blocks it gives out.
 * At start the notes of the others and the host's own routes and addresses are compared with ours, and a start that would take names
 * or addresses from anybody fails and says what to set. A note counts only while something of its installation is on the host.
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

/** Blocks from one setting. */
export interface Pool {
  readonly setting: string;
  readonly blocks: readonly string[];
  /** The operator chose the blocks; else they are the defaults. */
  readonly isChosen: boolean;
}

interface Note {
  readonly folder: string;
  readonly process: Child | null;
  /** The network namespace that is the host's: blocks matter only there. */
  readonly space: string;
  readonly blocks: readonly string[];
}

export interface Names {
  readonly exec: Exec;
  readonly tag: string;
  readonly dataFolder: string;
  /** Of all run folders. */
  readonly root?: string;
}

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

/** Something of the installation is on the host: its service, a network, a link. */
function isPresent(exec: Exec, tag: string, note: Note): boolean {
  if (note.process !== null && exec.isAlive(note.process)) return true;
  if (list("/run/netns").some((name) => name.startsWith(`${prefix}${tag}-`))) return true;
  return list("/sys/class/net").some((name) => new RegExp(`^b${tag}[utx]`).test(name));
}

const overlap = (one: Addresses, other: Addresses): boolean =>
  one.family === other.family && one.first <= other.last && other.first <= one.last;
const covers = (outer: Addresses, inner: Addresses): boolean =>
  outer.first <= inner.first && inner.last <= outer.last && outer.last - outer.first > inner.last - inner.first;

interface Use {
  readonly range: Addresses;
  readonly by: string;
  /** Addresses of the host or of another installation, of which no part may be given out twice. */
  readonly isFirm: boolean;
}

interface Route {
  readonly type?: string;
  readonly dst?: string;
  readonly dev?: string;
}

/** What the host itself uses: its addresses and routes, without those to our own networks. */
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

/** What other installations of the same host give out. */
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

/** A block of the size that nobody uses; null: none is left. */
function freeBlock(size: bigint, used: readonly Addresses[]): Addresses | null {
  for (const { first, last } of ["10.63.0.0-10.255.255.255", "172.16.0.0/12"].map(parseAddresses))
    for (let next = ((first + size - 1n) / size) * size; next + size - 1n <= last; next += size) {
      const range: Addresses = { family: 4, first: next, last: next + size - 1n };
      if (!used.some((each) => overlap(range, each))) return range;
    }
  return null;
}

/** Loopback, link-local and the like. */
const reserved = closedExcept([])
  .filter((text) => text.includes("/"))
  .map((text): Use => ({ range: parseAddresses(text), by: `${text}, which no guest may have`, isFirm: true }));

/** Throws when a pool takes addresses that are in use. A wider route around a pool is the operator's business where he chose the pool. */
function checkPools(pools: readonly Pool[], uses: readonly Use[]): void {
  for (const { setting, blocks, isChosen } of pools)
    for (const block of blocks) {
      const range = parseAddresses(block);
      const hinders = ({ range: other, isFirm }: Use) =>
        overlap(range, other) && (isFirm || !isChosen || !covers(other, range));
      const use = [...reserved, ...uses].find(hinders);
      if (use === undefined) continue;
      const used = [...uses.map((each) => each.range), ...pools.flatMap((pool) => pool.blocks.map(parseAddresses))];
      const free = range.family === 4 ? freeBlock(range.last - range.first + 1n, used) : null;
      const example = free === null ? "" : `, such as ${formatAddresses(4, free)}`;
      throw new Error(
        `${setting}: ${block} overlaps ${use.by}. Set ${setting} to a block that is free on this host${example}.`,
      );
    }
}

/** Throws when the names belong to another installation. `isService`: also when another service runs with the same data folder. */
export function requireNames({ exec, tag, dataFolder, root = run }: Names, isService: boolean): void {
  const folder = join(root, prefix + tag);
  const note = readNote(folder);
  if (note === null || !isPresent(exec, tag, note)) return;
  if (note.folder !== dataFolder)
    throw new Error(
      `BRUME_DATA: the names "${prefix}${tag}" that ${dataFolder} has on this host are in use by the installation in ${note.folder}. Choose another path for BRUME_DATA. If that installation is gone for good, delete ${join(folder, fileName)}.`,
    );
  const { process: owner } = note;
  if (isService && owner !== null && owner.pid !== process.pid && exec.isAlive(owner))
    throw new Error(`BRUME_DATA: process ${owner.pid} runs with ${dataFolder} already. Stop it first.`);
}

/** Makes names and blocks ours, or throws an error that names the setting to change. */
export async function claimHost(options: ClaimOptions): Promise<void> {
  const { exec, tag, dataFolder, pools, root = run } = options;
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
  // Written before the others are read: of two that start at once at least one sees the other.
  write({ folder: dataFolder, process: exec.find(process.pid), space, blocks });
  try {
    checkPools(pools, [...usesOfOthers(options, space), ...(await usesOfHost(exec, tag))]);
  } catch (error) {
    if (before === null) rmSync(join(folder, fileName));
    else write({ ...before, process: null });
    throw error;
  }
}
