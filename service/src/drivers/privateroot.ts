/**
 * Gives a process a private root: a small read-only file system with its programs and data, its device files, and some of the host's files.
 * The file system of the host is not visible. The process has no capabilities, or only those that it needs, cannot get any, and dumps no
 * core. VMs (`qemu/confine.ts`), programs that read disks (`disk/tool.ts`) and daemons of tunnels (`linux/confine.ts`) run this way.
 */
import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { type Exec, searchPath } from "./exec.ts";

/** Returns the command that drops the rights of root. */
export const dropRights = (uid: number, gid: number): readonly string[] => [
  "setpriv",
  `--reuid=${uid}`,
  `--regid=${gid}`,
  "--clear-groups",
  "--bounding-set=-all",
  "--inh-caps=-all",
  "--no-new-privs",
];

/** Returns the command that leaves root only these capabilities. Without the files of others it may keep its user id. */
export const keepRights = (capabilities: readonly string[]): readonly string[] => [
  "setpriv",
  `--bounding-set=${["-all", ...capabilities.map((name) => `+${name}`)].join(",")}`,
  "--inh-caps=-all",
  "--no-new-privs",
];

/**
 * Run by `sh` as root in a private mount namespace. The text is constant; all variable parts are arguments: BASE DEVICES FOLDER (PATH)… --
 * (MODE FROM TO)… -- COMMAND… `proc` is a link into the old root, which `umount` needs; afterwards it points to nothing.
 */
const enter = `set -e
ulimit -c 0
ulimit -n 8192
base=$1 devices=$2 folder=$3
shift 3
mount -t tmpfs -o mode=755,size=1m,nosuid,nodev root "$base"
cd "$base"
place() {
  if [ -e ".$2" ]; then return; fi
  parent=$2
  [ -d "$1" ] || parent=\${2%/*}
  [ -d ".$parent" ] || mkdir -p ".$parent"
  [ -d "$1" ] || : >".$2"
}
while [ "$1" != -- ]; do
  place "$1" "$1"
  mount -o bind,ro,nosuid,nodev "$1" ".$1"
  shift
done
shift
while [ "$1" != -- ]; do
  place "$2" "$3"
  mount -o "bind,$1,nosuid,nodev,noexec" "$2" ".$3"
  shift 3
done
shift
mkdir -p dev old ".$folder"
mount -t tmpfs -o mode=755,size=64k,nosuid,noexec dev dev
mknod -m 666 dev/null c 1 3
if [ "$devices" != null ]; then
  mkdir dev/net
  mknod -m 666 dev/net/tun c 10 200
fi
if [ "$devices" = vpn ]; then
  mknod -m 666 dev/random c 1 8
  mknod -m 666 dev/urandom c 1 9
fi
if [ "$devices" = kvm ]; then
  : >dev/kvm
  mount -o bind /dev/kvm dev/kvm
fi
mount -o remount,ro dev
ln -s old/proc proc
mount -o remount,ro .
pivot_root . old
cd /
umount -n -l /old
cd "$folder"
`;

/** What the new root contains, and where it is mounted. */
export interface PrivateRoot {
  /** A folder of the host that is a mount point meanwhile, in the private namespace only. No mounted path is inside it. */
  readonly base: string;
  /** `null`: only /dev/null. The others also have /dev/net/tun, and `kvm` /dev/kvm, `vpn` /dev/random and /dev/urandom. */
  readonly devices: "null" | "tun" | "kvm" | "vpn";
  /** Current folder of the command in the new root. */
  readonly folder: string;
  /** Paths of the host with programs and data, as `findNeeds` returns them. */
  readonly needs: readonly string[];
  /** Mode, path on the host, path in the new root. */
  readonly mounts: readonly (readonly ["ro" | "rw", string, string])[];
}

/**
 * Returns the command line that runs `command` in a new root; `namespaces`: options of `unshare`. With `isWaiting`, a shell of root waits
 * for the command, so a pid namespace ends with the shell, also if the command leaves its process group.
 */
export function enterRoot(
  { base, devices, folder, needs, mounts }: PrivateRoot,
  namespaces: readonly string[],
  command: readonly string[],
  isWaiting: boolean,
): string[] {
  const unshare = ["unshare", "--mount", "--ipc", "--uts", "--propagation", "private", ...namespaces];
  const script = `${enter}${isWaiting ? '"$@"\nexit $?\n' : 'exec "$@"\n'}`;
  const parameters = [base, devices, folder, ...needs, "--", ...mounts.flat(), "--", ...command];
  return [...unshare, "sh", "-c", script, "sh", ...parameters];
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

/** Returns the files and folders of the host that these programs need: themselves, their libraries, and `data`. Throws if one is missing. */
export async function findNeeds(
  exec: Exec,
  programs: readonly string[],
  data: readonly string[] = [],
): Promise<readonly string[]> {
  const paths = [...programs, "setpriv", "umount"].map(programPath);
  const linked = (await Promise.all(paths.map((path) => exec.run(["ldd", path])))).join("\n");
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
