/**
 * Confines the control plane: its own user without other groups, no capability except the one for ports below 1024, no way to gain any, and
 * a private root that contains only the programs, libraries and code that it runs, read-only, and its own folder. The files of the host,
 * also those that every user may read, are not in it.
 */
import { existsSync, realpathSync } from "node:fs";
import { dirname } from "node:path";
import type { Account } from "./account.ts";

/**
 * Run by `sh` as root in a private mount namespace. The text is constant; all variable parts are arguments: BASE (MODE FROM TO)… -- COMMAND….
 * Where the host allows it, /proc shows only processes of the own user.
 */
const enter = `set -e
ulimit -c 0
base=$1
shift
mount -t tmpfs -o mode=755,size=1m,nosuid,nodev root "$base"
cd "$base"
while [ "$1" != -- ]; do
  if [ -d "$2" ]; then mkdir -p ".$3"; else
    mkdir -p ".\${3%/*}"
    [ -e ".$3" ] || : >".$3"
  fi
  mount -o "bind,$1,nosuid" "$2" ".$3"
  shift 3
done
shift
mkdir -p dev old proc
for each in null zero urandom random; do
  : >"dev/$each"
  mount -o bind "/dev/$each" "dev/$each"
done
mount -t proc -o ro,nosuid,nodev,noexec,hidepid=2 proc proc 2>/dev/null || mount -o bind,ro,nosuid,nodev,noexec /proc proc
mount -o remount,ro .
pivot_root . old
cd /
umount -n -l /old
exec "$@"
`;

/** Whether the host allows a private root; run as root with an empty folder as argument. */
export const trial: readonly string[] = ["unshare", "--mount", "--propagation", "private", "sh", "-c"];
export const trialText = 'mount -t tmpfs -o size=64k root "$0" && mkdir "$0/old" && cd "$0" && pivot_root . old';

/** Libraries of all programs; each exists on some distributions only. */
const libraries = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"];
const programs = ["setpriv", "umount"];
const programFolders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** What the control plane may see of the host. */
export interface Confined {
  /** An empty folder, the mount point of the private root. */
  readonly base: string;
  readonly account: Account;
  /** Whether it may listen on ports below 1024. */
  readonly lowPorts: boolean;
  /** Paths that it may read, and the only one that it may also write. */
  readonly readable: readonly string[];
  readonly writable: string;
}

function programPath(name: string): string {
  const found = programFolders.map((folder) => `${folder}/${name}`).find((path) => existsSync(path));
  if (found === undefined) throw new Error(`program ${name} is not in ${programFolders.join(" or ")}`);
  return found;
}

/** Removes duplicates and paths inside another path of the list. */
const outermost = (paths: readonly string[]): readonly string[] =>
  [...new Set(paths)].filter((path) => !paths.some((other) => path.startsWith(`${other}/`))).sort();

/** Returns the paths of the host's settings for names and certificates. */
function settings(): readonly string[] {
  const resolv = existsSync("/etc/resolv.conf") ? dirname(realpathSync("/etc/resolv.conf")) : "/etc";
  return ["/etc", resolv];
}

/** Returns the command line that runs `argv` confined. */
export function confine({ base, account, lowPorts, readable, writable }: Confined, argv: readonly string[]): string[] {
  const kept = lowPorts ? "-all,+net_bind_service" : "-all";
  const command = [
    "setpriv",
    `--reuid=${account.uid}`,
    `--regid=${account.gid}`,
    "--clear-groups",
    `--bounding-set=${kept}`,
    `--inh-caps=${kept}`,
    ...(lowPorts ? ["--ambient-caps=-all,+net_bind_service"] : []),
    "--no-new-privs",
    ...argv,
  ];
  const shown = outermost([...libraries.filter(existsSync), ...programs.map(programPath), ...settings(), ...readable]);
  const mounts = [...shown.flatMap((path) => ["ro", path, path]), "rw", writable, writable];
  return [
    "unshare",
    "--mount",
    "--ipc",
    "--uts",
    "--propagation",
    "private",
    "sh",
    "-c",
    enter,
    "sh",
    base,
    ...mounts,
    "--",
    ...command,
  ];
}
