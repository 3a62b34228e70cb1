/**
 * The root of a server's process: a small file system of its own with the programs and firmware that it needs, read-only, the device
 * files that it opens, and those parts of the server's folder that it works on. The machine's own file system is not in it. The
 * process has no capabilities and cannot get any, and dumps no core, which would hold the guest's memory.
 *
 *     /usr/bin/…  /lib/…  /usr/share/…     read-only, from the machine
 *     /dev/null /dev/net/tun /dev/kvm      kvm only with hardware virtualisation
 *     /server/run  /server/disk-<n>        the server's own, to write to
 *     /server/seed.img                     read-only
 */
import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { type Exec, searchPath } from "../../exec.ts";
import { firmware } from "./arguments.ts";
import { diskName, type Folder } from "./folder.ts";

/** Rights that a process gives up. It is root until then. */
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
 * Run by `sh` as root in a mount namespace of its own; the text is constant, all that varies are its arguments:
 * BASE KVM (PATH)… -- (MODE FROM TO)… -- COMMAND…
 * `proc` points into the old root, since `umount` reads it there, and to nothing afterwards.
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
  if (found === undefined) throw new Error(`${name} is missing`);
  return found;
}

/** Paths without those that lie in another of them. */
const outermost = (paths: readonly string[]): readonly string[] =>
  [...new Set(paths)].filter((path) => !paths.some((other) => path.startsWith(`${other}/`))).sort();

/** Files and folders of the machine that QEMU needs: itself, its libraries, and what it loads for its devices. */
export async function findNeeds(exec: Exec): Promise<readonly string[]> {
  const paths = programs.map(programPath);
  const linked = (await Promise.all(paths.map((path) => exec.run(["ldd", path])))).join("\n");
  const libraries = [...linked.matchAll(/=> (\/\S+)/g)].map(([, path = ""]) => dirname(path));
  const loaders = [...linked.matchAll(/^\s*(\/\S+) \(/gm)].map(([, path = ""]) => path);
  const data = (await exec.run([paths[0] ?? "", "-L", "help"])).split("\n").filter((line) => line.startsWith("/"));
  const folders = [...libraries, ...data.map((path) => resolve(path)), dirname(firmware)].filter((path) =>
    existsSync(path),
  );
  // The modules of QEMU lie beside the libraries, by a name that is a link on some distributions.
  const real = [...folders, ...(existsSync(firmware) ? [firmware] : [])].map((path) => realpathSync(path));
  const inside = real.map((path) => (statSync(path).isDirectory() ? path : dirname(path)));
  return outermost([...paths, ...loaders, ...folders, ...inside]);
}

/**
 * How processes of servers are shut in. `needs`: each has a root of its own with these paths of the machine in it. `tun`, on a machine
 * that does not let us make one: they see the machine's file system, and come to /dev/net/tun, which gives taps only to their owners,
 * as the machine has it (`open` to all, as the kernel advises) or by a file that only they see (`private`).
 */
export type Confinement = { readonly needs: readonly string[] } | { readonly tun: "open" | "private" };

/** Nothing in here comes from outside: the shell only passes on what it is given. */
const privateTun = 'mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200 && exec "$0" "$@"';

export interface Prisoner {
  /** An empty folder that the new root is laid over. */
  readonly base: string;
  /** Mode, path on the machine, path in the new root. */
  readonly parts: readonly (readonly ["ro" | "rw", string, string])[];
  readonly kvm: boolean;
  readonly uid: number;
  readonly gid: number;
}

/** The parts of a server's folder that its process works on. */
export const partsOf = (folder: Folder, version: number): Prisoner["parts"] => [
  ["rw", folder.run, "/server/run"],
  ["rw", folder.disk(version), `/server/${diskName(version)}`],
  ["ro", folder.seed, "/server/seed.img"],
];

/** The command that runs this one shut in, in `/server/run` or, without a root of its own, where it was started. */
export function confine(how: Confinement, { base, parts, kvm, uid, gid }: Prisoner, argv: readonly string[]): string[] {
  const command = [...dropRights(uid, gid), ...argv];
  if ("needs" in how) {
    const words = [base, kvm ? "kvm" : "none", ...how.needs, "--", ...parts.flat(), "--", ...command];
    return ["unshare", "--mount", "--ipc", "--uts", "--propagation", "private", "sh", "-c", enter, "sh", ...words];
  }
  if (how.tun === "open") return command;
  return ["unshare", "--mount", "--propagation", "slave", "sh", "-c", privateTun, ...command];
}
