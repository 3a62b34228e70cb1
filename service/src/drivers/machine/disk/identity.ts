/**
 * Removes from a disk what identifies its guest: host keys, machine id, password hashes, authorized keys, logs, DHCP and cloud-init state.
 * The disk is untrusted and is never mounted: `e2fsck` and `debugfs` read it, as the server's own user. Files are cleared by inode number,
 * since their names may contain any character. The final check removes the directory entries without an inode and discards free blocks, so
 * deleted data is neither in the image nor in its journal.
 */
import { type FileHandle, open } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { hasPrintedTooMuch } from "../../exec.ts";
import type { Identity } from "../interface.ts";
import { type FileSystem, findFileSystems } from "./partitions.ts";
import { type DiskTools, missingPrograms, ownCode, type ToolUse } from "./tool.ts";

/** Folders whose files are all cleared, recursively. */
const trees = ["/var/log", "/var/lib/cloud", "/var/lib/dhcp", "/var/lib/dhclient", "/var/lib/dhcpcd", "/var/lib/brume"];
/** Folders and the names of the files in them that are cleared. */
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
/** A home folder in /etc/passwd, in characters that debugfs does not interpret. */
const home = /^[^:\n]*:[^:\n]*:[0-9]+:[0-9]+:[^:\n]*:(\/[\w./-]+):/gm;
const maxHomes = 1000;
/** Maximum depth of folders and number of entries; a malicious disk could be endless. */
const [maxLevels, maxEntries] = [24, 500_000];
/** Maximum bytes of a file that is rewritten. */
const maxRewritten = 2 ** 24;

interface Entry {
  readonly inode: number;
  readonly type: "folder" | "file" | "link" | "other";
  readonly name: string;
  readonly bytes: number;
}

const types: Readonly<Record<string, Entry["type"]>> = { "04": "folder", "10": "file", "12": "link" };

/** Consecutive data of a file, in bytes: its place in the file, its place on the disk, and its length. */
interface Extent {
  readonly at: number;
  readonly place: number;
  readonly bytes: number;
}

/** A file system that cannot be read or repaired. Its content is the cause, so a repetition does not help. */
export class FileSystemError extends Error {
  override readonly name = "FileSystemError";
}

/** Exit codes of e2fsck(8): it has repaired errors; the first that is no result of reading the file system. */
const [repaired, usageError] = [1, 16];
/** What e2fsck writes first. */
const version = /^e2fsck [0-9]/m;

interface Site {
  readonly tools: DiskTools;
  readonly uid: number;
  readonly signal?: AbortSignal | undefined;
}

/** Returns operations on one ext file system of a disk. */
function createTools({ tools, uid, signal }: Site, path: string, bytes: number, { offset }: FileSystem) {
  const name = basename(path);
  const device = `${name}?offset=${offset}`;
  const use = { folder: dirname(path), bytes, uid, timeout: 3600_000, ...(signal && { signal }) };
  const reading: ToolUse = { ...use, readable: [name], writable: [] };
  const writing: ToolUse = { ...use, readable: [], writable: [name] };
  const run: DiskTools["run"] = (argv, how) =>
    tools.run(argv, how).catch((error: unknown) => {
      throw hasPrintedTooMuch(error) ? new FileSystemError(String(error), { cause: error }) : error;
    });
  const debug = (commands: readonly string[], isWriting = false) =>
    run(["debugfs", ...(isWriting ? ["-w"] : []), device], {
      ...(isWriting ? writing : reading),
      stdin: commands.map((each) => `${each}\n`).join(""),
    });
  async function blockSize(): Promise<number> {
    const size = Number(/^Block size: +([0-9]+)$/m.exec(await debug(["stats -h"]))?.[1]);
    if (!(size >= 1024 && size <= 65_536))
      throw new FileSystemError("the block size of the file system cannot be read");
    return size;
  }
  return {
    /** Replays the journal, repairs, and discards free blocks; e2fsck discards only if nothing was repaired, so it is repeated. */
    async check(): Promise<void> {
      for (let tries = 4; ; tries--) {
        try {
          await run(["e2fsck", "-f", "-y", "-E", "discard", device], writing);
          return;
        } catch (error) {
          const code = ownCode(error, version);
          if (code === null || code >= usageError) throw error;
          if (code !== repaired || tries === 0) throw new FileSystemError(String(error), { cause: error });
        }
      }
    },
    change: (commands: readonly string[]) => debug(commands, true),
    /** Returns the entries of each folder; none for a path that is not a folder. */
    async list(folders: readonly string[]): Promise<Entry[][]> {
      const listings = (await debug(folders.map((folder) => `ls -p ${folder}`)))
        .split(/^debugfs: {2}ls -p .*\n/m)
        .slice(1);
      return listings.map((listing) =>
        [...listing.matchAll(/^\/([1-9][0-9]*)\/([0-7]{2})[0-7]{4}\/[0-9]+\/[0-9]+\/([^/]*)\/([0-9]*)\/$/gm)]
          .map(([, inode, type = "", name = "", bytes]) => ({
            inode: Number(inode),
            type: types[type] ?? ("other" as const),
            name,
            bytes: Number(bytes ?? 0),
          }))
          .filter(({ name }) => name !== "." && name !== ".."),
      );
    },
    /** Returns the home folders of accounts, and /root. */
    async homes(): Promise<string[]> {
      const accounts = (await debug(["cat /etc/passwd"])).matchAll(home);
      return [...new Set(["/root", ...[...accounts].slice(0, maxHomes).map(([, path = ""]) => path)])];
    },
    /** Returns the data of a file. `blocks` would also list the blocks that map others, without a mark. */
    async extents(inode: number): Promise<Extent[]> {
      const listing = await debug([`stat <${inode}>`]);
      // The last list: the names of attributes before it are the guest's.
      const list = /^[^]*\n(?:BLOCKS|EXTENTS):\n(.*)/.exec(listing)?.[1] ?? "";
      const size = await blockSize();
      return [...list.matchAll(/\(([0-9]+)(?:-([0-9]+))?(?:\[u\])?\):([0-9]+)/g)].map(([, first, last, block]) => {
        const count = Number(last ?? first) - Number(first) + 1;
        const extent = { at: Number(first) * size, place: offset + Number(block) * size, bytes: count * size };
        if (!(extent.bytes > 0 && extent.place + extent.bytes <= bytes))
          throw new FileSystemError(`the blocks of inode ${inode} are not on the disk`);
        return extent;
      });
    },
    blockSize,
  };
}
type Tools = ReturnType<typeof createTools>;

const isFile = ({ type }: Entry): boolean => type === "file" || type === "link";

async function filesBelow(tools: Tools, tops: readonly string[]): Promise<Entry[]> {
  const files: Entry[] = [];
  const seen = new Set<number>();
  let level: readonly string[] = tops;
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxLevels || seen.size > maxEntries)
      throw new FileSystemError("its folders are nested too deeply or contain too many entries");
    const unseen = (await tools.list(level)).flat().filter(({ inode }) => !seen.has(inode));
    for (const { inode } of unseen) seen.add(inode);
    files.push(...unseen.filter(isFile));
    level = unseen.filter(({ type }) => type === "folder").map(({ inode }) => `<${inode}>`);
  }
  return files;
}

/** Where a file system belongs in the guest's tree; "" is the root. */
type Place = "" | "/var" | "/var/log" | "/home";

/** Returns the place of a file system by the names at its top. A partition with other data is treated as `/home`, where little is cleared. */
function placeOf(top: readonly Entry[], etc: readonly Entry[]): Place {
  const has = (name: RegExp) => top.some((one) => name.test(one.name));
  if (etc.some(({ name }) => name === "passwd")) return "";
  if (has(/^lib$/) && has(/^log$/)) return "/var";
  return has(/^(journal|[bw]tmp|lastlog|syslog|messages)$/) ? "/var/log" : "/home";
}

/** Returns the path inside the file system, null if it is not in it. */
const pathIn = (place: Place, path: string): string | null =>
  path === place ? "/" : path.startsWith(`${place}/`) ? path.slice(place.length) : null;

async function filesOfUsers(tools: Tools, place: Place): Promise<Entry[]> {
  const parent = pathIn(place, "/home");
  const users = parent === null ? [] : (await tools.list([parent])).flat();
  const others = place === "" ? await tools.homes() : [];
  const homes = [...others, ...users.filter(({ type }) => type === "folder").map(({ inode }) => `<${inode}>`)];
  const contents = await tools.list(homes);
  const folders = contents.flat().filter(({ type, name }) => type === "folder" && name === ".ssh");
  const keys = (await tools.list(folders.map(({ inode }) => `<${inode}>`))).flat();
  return [
    ...contents.flat().filter((one) => isFile(one) && history.test(one.name)),
    ...keys.filter((one) => isFile(one) && one.name.startsWith("authorized_keys")),
  ];
}

/** Changes the bytes of a file in place: its blocks and its length stay. Rejects if some of its bytes are in no block. */
async function rewrite(
  disk: FileHandle,
  tools: Tools,
  { inode, bytes }: Entry,
  change: (text: string) => string,
): Promise<void> {
  const parts = (await tools.extents(inode))
    .map((extent) => ({ ...extent, bytes: Math.min(extent.bytes, bytes - extent.at) }))
    .filter((part) => part.bytes > 0);
  if (bytes > maxRewritten || parts.reduce((sum, part) => sum + part.bytes, 0) !== bytes)
    throw new FileSystemError(`inode ${inode} is too large or incomplete`);
  const content = Buffer.alloc(bytes);
  for (const part of parts) await disk.read(content, part.at, part.bytes, part.place);
  content.write(change(content.toString("latin1")), "latin1");
  for (const part of parts) await disk.write(content, part.at, part.bytes, part.place);
}

/** Replaces password hashes by text that no password matches. Accounts that are locked without a hash stay unchanged. */
const lockAll = (text: string): string =>
  text.replaceAll(/^([^:\n]*:)([^:\n]{2,})/gm, (_, name: string, hash: string) => name + "*".repeat(hash.length));

/** Writes zeros to the journal, except to its first block, which marks the rest as empty. */
async function clearJournal(disk: FileHandle, tools: Tools): Promise<void> {
  const zeros = Buffer.alloc(2 ** 20);
  const first = await tools.blockSize();
  for (const { at, place, bytes } of await tools.extents(8))
    for (let done = at === 0 ? first : 0; done < bytes; done += zeros.length)
      await disk.write(zeros, 0, Math.min(zeros.length, bytes - done), place + done);
}

/** Cleans one file system; resolves to whether it is a root file system. */
async function cleanse(site: Site, path: string, disk: FileHandle, system: FileSystem): Promise<boolean> {
  const tools = createTools(site, path, (await disk.stat()).size, system);
  await tools.check();
  const [etc = [], top = []] = await tools.list(["/etc", "/"]);
  const place = placeOf(top, etc);
  const named = (name: string) => etc.find((one) => one.name === name && one.type === "file");
  const folders = listed.flatMap(([folder, names]) => {
    const path = pathIn(place, folder);
    return path === null ? [] : [{ path, names }];
  });
  const contents = await tools.list(folders.map(({ path }) => path));
  const inFolders = contents.flatMap((entries, index) =>
    entries.filter((one) => isFile(one) && folders[index]?.names.test(one.name) === true),
  );
  const tops = trees.flatMap((tree) => pathIn(place, tree) ?? []);
  const files = [...inFolders, ...(await filesBelow(tools, tops)), ...(await filesOfUsers(tools, place))];
  for (const name of ["shadow", "gshadow"]) {
    const found = named(name);
    if (found !== undefined) await rewrite(disk, tools, found, lockAll);
  }
  await disk.sync();
  // systemd creates a new id if the file is empty.
  const machineId = named("machine-id")?.inode;
  const emptied = machineId === undefined ? [] : [`punch <${machineId}> 0`, `set_inode_field <${machineId}> size 0`];
  await tools.change([...new Set(files.map(({ inode }) => inode))].map((inode) => `clri <${inode}>`).concat(emptied));
  await tools.check();
  await clearJournal(disk, tools);
  await disk.sync();
  // A file system that this has damaged must not be used.
  await tools.check();
  return named("passwd") !== undefined;
}

const nameOf = ({ partition }: FileSystem): string => (partition === 0 ? "the disk" : `partition ${partition}`);

/**
 * Removes the identity from the raw disk `path`, which no other process may have open. Rejects with a `FileSystemError` if a file system
 * cannot be repaired, and with another error if that is not known, because a program was killed for example; the disk is then unusable.
 */
export async function removeIdentity(site: Site, path: string): Promise<Identity> {
  const missing = missingPrograms();
  if (missing.length > 0) return { removed: false, detail: `programs are missing on its host: ${missing.join(", ")}` };
  const disk = await open(path, "r+");
  try {
    const systems = await findFileSystems(disk);
    const roots: boolean[] = [];
    for (const system of systems) if (system.kind === "ext") roots.push(await cleanse(site, path, disk, system));
    const closed = systems.filter(({ kind }) => kind !== "ext" && kind !== "none");
    const reasons = closed.map((system) => `${nameOf(system)} (${system.kind}) cannot be opened`);
    if (!roots.includes(true)) reasons.unshift("no ext file system with a Linux root was found");
    return { removed: reasons.length === 0, detail: reasons.join("; ") };
  } finally {
    await disk.close();
  }
}
