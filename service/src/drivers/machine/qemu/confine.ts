/**
 * Confines the process of a server to a private root: a small read-only file system with the programs and firmware it needs, its device
 * files, and parts of the server's folder. The file system of the host is not visible. The process has no capabilities, cannot get any, and
 * dumps no core, which would contain the guest's memory.
 *
 *     /usr/bin/…  /lib/…  /usr/share/…     read-only, from the host
 *     /dev/null /dev/net/tun /dev/kvm      kvm only with hardware virtualization
 *     /server/run  /server/disk-<n>        the server's own, writable
 *     /server/seed.img                     read-only
 */
import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { type Exec, searchPath } from "../../exec.ts";
import { firmware } from "./arguments.ts";
import { diskName, type Folder } from "./folder.ts";

/** Returns the command that drops the rights of root. */
const dropRights = (uid: number, gid: number): readonly string[] => [
  "setpriv",
  `--reuid=${uid}`,
  `--regid=${gid}`,
  "--clear-groups",
  "--bounding-set=-all",
  "--inh-caps=-all",
  "--no-new-privs",
];

/**
 * Run by `sh` as root in a private mount namespace. The text is constant; all variable parts are arguments: BASE KVM (PATH)… -- (MODE FROM
 * TO)… -- COMMAND… `proc` is a link into the old root, which `umount` needs; afterwards it points to nothing.
 */
const enter = `set -e
ulimit -c 0
ulimit -n 8192
base=$1 kvm=$2
shift 2
mount -t tmpfs -o mode=755,size=1m,nosuid,nodev root "$base"
cd "$base"
place() {
  if [ -d "$1" ]; then mkdir -p ".$2"; else
    mkdir -p ".\${2%/*}"
    : >".$2"
  fi
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
mkdir -p dev old server/run
mount -t tmpfs -o mode=755,size=64k,nosuid,noexec dev dev
mkdir dev/net
mknod -m 666 dev/net/tun c 10 200
mknod -m 666 dev/null c 1 3
if [ "$kvm" = kvm ]; then
  : >dev/kvm
  mount -o bind /dev/kvm dev/kvm
fi
mount -o remount,ro dev
ln -s old/proc proc
mount -o remount,ro .
pivot_root . old
cd /
umount -n -l /old
cd /server/run
exec "$@"
`;

const programs = ["qemu-system-x86_64", "setpriv", "umount"] as const;

function programPath(name: string): string {
  const found = searchPath
    .split(":")
    .map((folder) => `${folder}/${name}`)
    .find((path) => existsSync(path));
  if (found === undefined) throw new Error(`program ${name} is not in ${searchPath}`);
  return found;
}

/** Removes duplicates and paths inside another path of the list. */
const outermost = (paths: readonly string[]): readonly string[] =>
  [...new Set(paths)].filter((path) => !paths.some((other) => path.startsWith(`${other}/`))).sort();

/** Returns files and folders of the host that QEMU needs: programs, libraries, and data for its devices. */
export async function findNeeds(exec: Exec): Promise<readonly string[]> {
  const paths = programs.map(programPath);
  const linked = (await Promise.all(paths.map((path) => exec.run(["ldd", path])))).join("\n");
  const libraries = [...linked.matchAll(/=> (\/\S+)/g)].map(([, path = ""]) => dirname(path));
  const loaders = [...linked.matchAll(/^\s*(\/\S+) \(/gm)].map(([, path = ""]) => path);
  const data = (await exec.run([paths[0] ?? "", "-L", "help"])).split("\n").filter((line) => line.startsWith("/"));
  const folders = [...libraries, ...data.map((path) => resolve(path)), dirname(firmware)].filter((path) =>
    existsSync(path),
  );
  // QEMU's modules are beside the libraries; on some distributions that path is a symbolic link.
  const real = [...folders, ...(existsSync(firmware) ? [firmware] : [])].map((path) => realpathSync(path));
  const inside = real.map((path) => (statSync(path).isDirectory() ? path : dirname(path)));
  return outermost([...paths, ...loaders, ...folders, ...inside]);
}

/**
 * How processes of servers are confined. `needs`: each has a private root with these paths of the host. `tun`, on a host that does not
 * permit private roots: they see the host's file system and open /dev/net/tun, whose devices only their owners can open. `open`: the host's
 * device file is open to all users, as the kernel recommends. `private`: a device file that only they see.
 */
export type Confinement = { readonly needs: readonly string[] } | { readonly tun: "open" | "private" };

/** Constant text; the shell only executes its arguments. */
const privateTun = 'mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200 && exec "$0" "$@"';

/** Mounts and rights of a confined process. */
export interface ConfinedProcess {
  /** An empty folder, the mount point of the new root. */
  readonly base: string;
  /** Mode, path on the host, path in the new root. */
  readonly mounts: readonly (readonly ["ro" | "rw", string, string])[];
  readonly kvm: boolean;
  readonly uid: number;
  readonly gid: number;
}

/** Returns the mounts of a server's process: the parts of its folder that it uses. */
export const mountsOf = (folder: Folder, version: number): ConfinedProcess["mounts"] => [
  ["rw", folder.run, "/server/run"],
  ["rw", folder.disk(version), `/server/${diskName(version)}`],
  ["ro", folder.seed, "/server/seed.img"],
];

/** Returns the command line that runs `argv` confined: in `/server/run`, or without a private root in the current folder. */
export function confine(
  how: Confinement,
  { base, mounts, kvm, uid, gid }: ConfinedProcess,
  argv: readonly string[],
): string[] {
  const command = [...dropRights(uid, gid), ...argv];
  if ("needs" in how) {
    const parameters = [base, kvm ? "kvm" : "none", ...how.needs, "--", ...mounts.flat(), "--", ...command];
    return ["unshare", "--mount", "--ipc", "--uts", "--propagation", "private", "sh", "-c", enter, "sh", ...parameters];
  }
  if (how.tun === "open") return command;
  return ["unshare", "--mount", "--propagation", "slave", "sh", "-c", privateTun, ...command];
}
