/**
 * Takes out of a disk what makes its guest that one guest: host keys, machine id, password hashes, authorized keys, logs, DHCP and
 * cloud-init state. The disk is hostile and is never mounted: `e2fsck` and `debugfs` read it, as the server's own user. Files are cleared
 * by the number of their inode, since their names may be anything; the last check removes the entries that point to nothing, and gives
 * free blocks back, so what was deleted is not to be found in the image either, nor in its journal.
 */
import { type FileHandle, open } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { CommandError, type Exec, type RunOptions } from "../../exec.ts";
import type { Identity } from "../interface.ts";
import { type FileSystem, findFileSystems } from "./partitions.ts";

/** All files in these folders and below them. */
const trees = ["/var/log", "/var/lib/cloud", "/var/lib/dhcp", "/var/lib/dhclient", "/var/lib/dhcpcd", "/var/lib/brume"];
/** Files of these folders that are called so. */
const listed: readonly (readonly [string, RegExp])[] = [
  ["/etc", /^(shadow-|gshadow-|passwd-|brume-instance)$/],
  ["/etc/ssh", /^ssh_host_/],
  ["/etc/dropbear", /key/],
  ["/etc/netplan", /^50-cloud-init/],
  ["/etc/network/interfaces.d", /^50-cloud-init/],
  ["/etc/systemd/network", /^10-(cloud-init|netplan)/],
  ["/etc/udev/rules.d", /^70-persistent-net/],
  ["/var/lib/dbus", /^machine-id$/],
  ["/var/lib/systemd", /^(random-seed|credential\.secret)$/],
  ["/var/lib/NetworkManager", /(lease|secret_key)/],
];
const history = /^\.[a-z]+_history$/;
/** Folders in folders, and files in all: a disk that was made to be endless is given up. */
const [mostLevels, mostEntries] = [24, 500_000];

interface Entry {
  readonly inode: number;
  readonly type: "folder" | "file" | "link" | "other";
  readonly name: string;
  readonly bytes: number;
}

const types: Readonly<Record<string, Entry["type"]>> = { "04": "folder", "10": "file", "12": "link" };

interface Site {
  readonly exec: Exec;
  readonly uid: number;
  readonly signal?: AbortSignal | undefined;
}

/** The tools for one ext file system of a disk. */
function createTools({ exec, uid, signal }: Site, path: string, { offset }: FileSystem) {
  const device = `${basename(path)}?offset=${offset}`;
  const options: RunOptions = { cwd: dirname(path), uid, gid: uid, timeout: 3600_000, ...(signal && { signal }) };
  const debug = (commands: readonly string[], ...rights: readonly string[]) =>
    exec.run(["debugfs", ...rights, device], {
      ...options,
      stdin: commands.map((each) => `${each}\n`).join(""),
    });
  return {
    /** Replays the journal, repairs, and gives free blocks back, which it does only when there was nothing to repair. */
    async check(): Promise<void> {
      for (let tries = 4; ; tries--) {
        try {
          await exec.run(["e2fsck", "-f", "-y", "-E", "discard", device], options);
          return;
        } catch (error) {
          if (!(error instanceof CommandError && error.code === 1 && tries > 0)) throw error;
        }
      }
    },
    change: (commands: readonly string[]) => debug(commands, "-w"),
    /** What is in each of these folders; nothing in one that is none. */
    async list(folders: readonly string[]): Promise<Entry[][]> {
      const answers = (await debug(folders.map((folder) => `ls -p ${folder}`)))
        .split(/^debugfs: {2}ls -p .*\n/m)
        .slice(1);
      return answers.map((answer) =>
        [...answer.matchAll(/^\/([1-9][0-9]*)\/([0-7]{2})[0-7]{4}\/[0-9]+\/[0-9]+\/([^/]*)\/([0-9]*)\/$/gm)]
          .map(([, inode, type = "", name = "", bytes]) => ({
            inode: Number(inode),
            type: types[type] ?? ("other" as const),
            name,
            bytes: Number(bytes ?? 0),
          }))
          .filter(({ name }) => name !== "." && name !== ".."),
      );
    },
    /** Where the blocks of a file are, in order. */
    async blocks(inode: number): Promise<number[]> {
      const answer = await debug([`blocks <${inode}>`]);
      return (/^[0-9 ]+$/m.exec(answer)?.[0] ?? "").split(" ").filter(Boolean).map(Number);
    },
    async blockSize(): Promise<number> {
      const size = Number(/^Block size: +([0-9]+)$/m.exec(await debug(["stats -h"]))?.[1]);
      if (!(size >= 1024 && size <= 65_536)) throw new Error("the size of its blocks is not to be read");
      return size;
    },
  };
}
type Tools = ReturnType<typeof createTools>;

const isFile = ({ type }: Entry): boolean => type === "file" || type === "link";

async function filesBelow(tools: Tools, tops: readonly string[]): Promise<Entry[]> {
  const files: Entry[] = [];
  const seen = new Set<number>();
  let level: readonly string[] = tops;
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > mostLevels || seen.size > mostEntries) throw new Error("its folders have no end");
    const fresh = (await tools.list(level)).flat().filter(({ inode }) => !seen.has(inode));
    for (const { inode } of fresh) seen.add(inode);
    files.push(...fresh.filter(isFile));
    level = fresh.filter(({ type }) => type === "folder").map(({ inode }) => `<${inode}>`);
  }
  return files;
}

async function filesOfUsers(tools: Tools): Promise<Entry[]> {
  const [users = []] = await tools.list(["/home"]);
  const homes = ["/root", ...users.filter(({ type }) => type === "folder").map(({ inode }) => `<${inode}>`)];
  const contents = await tools.list(homes);
  const folders = contents.flat().filter(({ type, name }) => type === "folder" && name === ".ssh");
  const keys = (await tools.list(folders.map(({ inode }) => `<${inode}>`))).flat();
  return [
    ...contents.flat().filter((one) => isFile(one) && history.test(one.name)),
    ...keys.filter((one) => isFile(one) && one.name.startsWith("authorized_keys")),
  ];
}

/** Bytes of a file, in place: its blocks keep their number, and what is written is as long as what was there. */
async function rewrite(
  disk: FileHandle,
  tools: Tools,
  offset: number,
  { inode, bytes }: Entry,
  change: (text: string) => string,
): Promise<void> {
  const [size, blocks] = [await tools.blockSize(), await tools.blocks(inode)];
  const places = blocks.slice(0, Math.ceil(bytes / size)).map((block) => offset + block * size);
  const content = Buffer.alloc(places.length * size);
  for (const [index, place] of places.entries()) await disk.read(content, index * size, size, place);
  const changed = Buffer.from(change(content.toString("latin1", 0, bytes)), "latin1");
  changed.copy(content, 0, 0, Math.min(changed.length, bytes));
  for (const [index, place] of places.entries()) await disk.write(content, index * size, size, place);
}

/** No password has such a hash. What was locked without a hash stays as it was. */
const lockAll = (text: string): string =>
  text.replaceAll(/^([^:\n]*:)([^:\n]{2,})/gm, (_, name: string, hash: string) => name + "*".repeat(hash.length));

async function clearJournal(disk: FileHandle, tools: Tools, offset: number): Promise<void> {
  const [size, blocks] = [await tools.blockSize(), await tools.blocks(8)];
  const empty = Buffer.alloc(size);
  // The first one says that the rest is empty.
  for (const block of blocks.slice(1)) await disk.write(empty, 0, size, offset + block * size);
}

/** Resolves to whether it was a guest's root. */
async function cleanse(site: Site, path: string, disk: FileHandle, system: FileSystem): Promise<boolean> {
  const tools = createTools(site, path, system);
  await tools.check();
  const [etc = []] = await tools.list(["/etc"]);
  const named = (name: string) => etc.find((one) => one.name === name && one.type === "file");
  const contents = await tools.list(listed.map(([folder]) => folder));
  const inFolders = contents.flatMap((entries, index) =>
    entries.filter((one) => isFile(one) && listed[index]?.[1].test(one.name) === true),
  );
  const files = [...inFolders, ...(await filesBelow(tools, trees)), ...(await filesOfUsers(tools))];
  for (const name of ["shadow", "gshadow"]) {
    const found = named(name);
    if (found !== undefined) await rewrite(disk, tools, system.offset, found, lockAll);
  }
  await disk.sync();
  // An empty one is what systemd takes for a machine that has none yet.
  const machine = named("machine-id")?.inode;
  const emptied = machine === undefined ? [] : [`punch <${machine}> 0`, `set_inode_field <${machine}> size 0`];
  await tools.change([...new Set(files.map(({ inode }) => inode))].map((inode) => `clri <${inode}>`).concat(emptied));
  await tools.check();
  await clearJournal(disk, tools, system.offset);
  await disk.sync();
  return named("passwd") !== undefined;
}

const nameOf = ({ partition }: FileSystem): string => (partition === 0 ? "the disk" : `partition ${partition}`);

/** `path`: a raw disk that nobody else has open. Rejects when a file system is broken beyond repair: the disk is then of no use. */
export async function removeIdentity(site: Site, path: string): Promise<Identity> {
  const disk = await open(path, "r+");
  try {
    const systems = await findFileSystems(disk);
    const roots: boolean[] = [];
    for (const system of systems) if (system.kind === "ext") roots.push(await cleanse(site, path, disk, system));
    const closed = systems.filter(({ kind }) => kind !== "ext" && kind !== "none");
    const reasons = closed.map((system) => `${nameOf(system)} (${system.kind}) cannot be opened`);
    if (!roots.includes(true)) reasons.unshift("no root file system of a Linux was found in a file system of type ext");
    return { removed: reasons.length === 0, detail: reasons.join("; ") };
  } finally {
    await disk.close();
  }
}
