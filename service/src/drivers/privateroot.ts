/**
 * Gives a process a private root: a small read-only file system with its programs and data, its device files, and some of the host's files.
 * The file system of the host is not visible. The process has no capabilities, or only those that it needs, cannot get any, and dumps no
 * core. VMs (`qemu/confine.ts`), programs that read disks (`disk/tool.ts`) and daemons of networks (`linux/confine.ts`) run this way.
 */
import { existsSync, realpathSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { architectures, buildFilter, filterRules } from "../base/systemcalls.ts";
import { type Exec, searchPath } from "./exec.ts";

const capabilitiesText = (names: readonly string[]): string => ["-all", ...names.map((name) => `+${name}`)].join(",");

/** Returns the command that drops the rights of root except these capabilities. */
export const dropRights = (uid: number, gid: number, capabilities: readonly string[] = []): readonly string[] => [
  "setpriv",
  `--reuid=${uid}`,
  `--regid=${gid}`,
  "--clear-groups",
  `--bounding-set=${capabilitiesText(capabilities)}`,
  `--inh-caps=${capabilitiesText(capabilities)}`,
  ...(capabilities.length > 0 ? [`--ambient-caps=${capabilitiesText(capabilities)}`] : []),
  "--no-new-privs",
];

/** Returns the command that leaves root only these capabilities. Without the files of others it may keep its user id. */
export const keepRights = (capabilities: readonly string[]): readonly string[] => [
  "setpriv",
  `--bounding-set=${capabilitiesText(capabilities)}`,
  "--inh-caps=-all",
  "--no-new-privs",
];

/**
 * Run by `perl`, which Debian always has: installs a filter of system calls and becomes the program. The text is constant; arguments:
 * number of the call, instructions, COMMAND…. The filter is given as struct sock_fprog: number of instructions, then their address.
 */
const install = `my ($call, $filter) = (0 + shift, pack "H*", shift);
my $program = pack "S x6 P", length($filter) / 8, $filter;
syscall($call, 1, 0, $program) == 0 or die "filter of system calls: $!\n";
exec {$ARGV[0]} @ARGV or die "$ARGV[0]: $!\n";
`;

/** Programs that `filterCalls` runs. */
export const filterPrograms = (): readonly string[] => (findProgram("perl") === null ? [] : ["perl"]);

/**
 * Returns the command that gives the following program a filter of system calls; it must have `no_new_privs`. Empty, so without a filter, on
 * a processor whose calls are not known, and on a host without perl.
 */
export function filterCalls(kind: keyof typeof filterRules): readonly string[] {
  const architecture = architectures[process.arch];
  if (architecture === undefined || filterPrograms().length === 0) return [];
  const filter = buildFilter(architecture, filterRules[kind]).toString("hex");
  return ["perl", "-e", install, String(architecture.seccomp), filter];
}

/**
 * Run by `sh` as root in a private mount namespace. The text is constant; all variable parts are arguments: BASE FOLDER, lists of folders
 * and files to create, the mounts as fstab(5), a device of /dev/net/tun ("tun") or none (""), COMMAND…. It starts few programs, since each
 * start of a network or server runs it. `proc` is a link into the old root, which `umount` needs; afterwards it points to nothing.
 */
const enter = `set -ef
ulimit -c 0
ulimit -n 8192
base=$1 folder=$2 folders=$3 files=$4 table=$5 tun=$6
shift 6
mount -t tmpfs -o mode=755,size=1m,nosuid root "$base"
cd "$base"
IFS='
'
mkdir -p $folders
for file in $files; do : >"$file"; done
unset IFS
if [ "$tun" = tun ]; then mknod -m 666 dev/net/tun c 10 200; fi
printf '%s\\n' "$table" >proc
mount -a -T ./proc
ln -sf old/proc proc
mount -o remount,ro .
pivot_root . old
cd /
umount -n -l /old
cd "$folder"
`;

/** Devices of the host that each kind has besides /dev/net/tun. */
const deviceFiles = {
  null: ["null"],
  random: ["null", "random", "urandom"],
  tun: ["null"],
  kvm: ["null", "kvm"],
  vpn: ["null", "random", "urandom"],
} as const;

/** What the new root contains, and where it is mounted. */
export interface PrivateRoot {
  /** A folder of the host that is a mount point meanwhile, in the private namespace only. No mounted path is inside it. */
  readonly base: string;
  /** `null`: only /dev/null. `random` adds /dev/random and /dev/urandom, `tun` /dev/net/tun, `kvm` this and /dev/kvm, `vpn` `random` and `tun`. */
  readonly devices: "null" | "random" | "tun" | "kvm" | "vpn";
  /** Current folder of the command in the new root. */
  readonly folder: string;
  /** Paths of the host with programs and data, as `findNeeds` returns them. */
  readonly needs: readonly string[];
  /** Mode, path on the host, path in the new root. */
  readonly mounts: readonly (readonly ["ro" | "rw", string, string])[];
}

/** Writes a path as a field of fstab(5). */
export function fieldOf(path: string): string {
  if (path.includes("\n")) throw new Error("a path of a private root contains a line break");
  return path.replace(/[\\ \t#]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, "0")}`);
}

/**
 * Returns the command line that runs `command` in a new root; `namespaces`: options of `unshare`. With `isWaiting`, a shell of root waits
 * for the command, so a pid namespace ends with the shell, also if the command leaves its process group. All mounted paths must exist.
 */
export function enterRoot(
  { base, devices, folder, needs, mounts }: PrivateRoot,
  namespaces: readonly string[],
  command: readonly string[],
  isWaiting: boolean,
): string[] {
  const bound = [
    ...needs.map((path) => ["bind,ro,nosuid,nodev", path, path] as const),
    ...mounts.map(([mode, from, to]) => [`bind,${mode},nosuid,nodev,noexec`, from, to] as const),
    // A device can be written to on a read-only mount, too.
    ...deviceFiles[devices].map((name) => ["bind,ro,nosuid,noexec", `/dev/${name}`, `/dev/${name}`] as const),
  ];
  const isFolder = ([, from]: (typeof bound)[number]): boolean => statSync(from).isDirectory();
  const inRoot = ([, , to]: (typeof bound)[number]): string => `.${to}`;
  const files = bound.filter((one) => !isFolder(one)).map(inRoot);
  const hasTun = devices === "tun" || devices === "kvm" || devices === "vpn";
  const folders = [
    "./old",
    `.${folder}`,
    ...(hasTun ? ["./dev/net"] : []),
    ...bound.filter(isFolder).map(inRoot),
    ...files.map((file) => dirname(file)),
  ];
  const table = bound.map(([options, from, to]) => `${fieldOf(from)} ${fieldOf(`${base}${to}`)} none ${options} 0 0`);
  const unshare = ["unshare", "--mount", "--ipc", "--uts", "--propagation", "private", ...namespaces];
  const script = `${enter}${isWaiting ? '"$@"\nexit $?\n' : 'exec "$@"\n'}`;
  const lists = [[...new Set(folders)], files, table].map((list) => list.join("\n"));
  return [...unshare, "sh", "-c", script, "sh", base, folder, ...lists, hasTun ? "tun" : "", ...command];
}

/** Returns the path of a program; null if the host does not have it. */
export const findProgram = (name: string): string | null =>
  searchPath
    .split(":")
    .map((folder) => `${folder}/${name}`)
    .find((path) => existsSync(path)) ?? null;

function programPath(name: string): string {
  const found = findProgram(name);
  if (found === null) throw new Error(`program ${name} is not in ${searchPath}`);
  return found;
}

/** Removes duplicates and paths inside another path of the list. */
const outermost = (paths: readonly string[]): readonly string[] =>
  [...new Set(paths)].filter((path) => !paths.some((other) => path.startsWith(`${other}/`))).sort();

/**
 * Returns the path of the dynamic loader in the first bytes of a program (PT_INTERP, elf(5)); null if they contain none, or the program is not
 * of 64 bits in little-endian order.
 */
export function loaderOf(program: Buffer): string | null {
  if (program.length < 64 || program.readUInt32BE(0) !== 0x7f454c46 || program.readUInt16BE(4) !== 0x0201) return null;
  const [start, size] = [Number(program.readBigUInt64LE(32)), program.readUInt16LE(54)];
  for (let index = 0; index < program.readUInt16LE(56); index++) {
    const header = program.subarray(start + index * size);
    if (header.length < 56) return null;
    const [at, length] = [Number(header.readBigUInt64LE(8)), Number(header.readBigUInt64LE(32))];
    // The text ends with a zero byte.
    if (header.readUInt32LE(0) === 3)
      return at + length > program.length ? null : program.toString("latin1", at, at + length - 1);
  }
  return null;
}

/** Returns the listing of the libraries that a program loads. `ldd` is a script that takes ten times as long as the loader. */
async function listLibraries(exec: Exec, path: string): Promise<string> {
  await using file = await open(path);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(4096), 0, 4096, 0);
  const loader = loaderOf(buffer.subarray(0, bytesRead));
  return await exec.run(loader === null ? ["ldd", path] : [loader, "--list", path], { rights: "all" });
}

/** Returns the files and folders of the host that these programs need: themselves, their libraries, and `data`. Throws if one is missing. */
export async function findNeeds(
  exec: Exec,
  programs: readonly string[],
  data: readonly string[] = [],
): Promise<readonly string[]> {
  const paths = [...programs, "setpriv", "umount"].map(programPath);
  const linked = (await Promise.all(paths.map((path) => listLibraries(exec, path)))).join("\n");
  const libraries = [...linked.matchAll(/=> (\/\S+)/g)].map(([, path = ""]) => dirname(path));
  const loaders = [...linked.matchAll(/^\s*(\/\S+) \(/gm)].map(([, path = ""]) => path);
  const present = [...libraries, ...data].filter((path) => existsSync(path));
  const folders = present.filter((path) => statSync(path).isDirectory());
  // QEMU's modules are beside the libraries; on some distributions that path is a symbolic link.
  const inside = present
    .map((path) => realpathSync(path))
    .map((path) => (statSync(path).isDirectory() ? path : dirname(path)));
  return outermost([...paths, ...loaders, ...folders, ...inside]);
}
