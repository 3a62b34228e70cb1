/**
 * Confines the programs that configure networks: `ip`, `nft`, `tc`, `sysctl`, `conntrack`. They are children of a starter process of their own
 * and inherit its rights, so a call costs nothing more. They run as root with two capabilities: CAP_NET_ADMIN, and CAP_SYS_ADMIN to enter a
 * namespace. A filter of system calls leaves the second one no other use. Their root is read-only, with the host's programs and libraries and
 * the names of its network namespaces. They see no process of the host.
 */
import { existsSync, statSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Confinement, createExec, type Exec, starterFile } from "../../exec.ts";
import { fieldOf, filterCalls, keepRights } from "../../privateroot.ts";

/**
 * Run by `sh` as root in new mount and pid namespaces. The text is constant; arguments: lists of folders and files to create, the mounts as
 * fstab(5), COMMAND…. It starts few programs, since each start of the service runs it. The mounts are slaves of the host's, so namespaces that
 * are added later appear. Settings of the kernel are read-only, except those of networks. Only without a filter `ip netns exec` mounts
 * something at /sys. It has two files, which the C library reads before it uses huge pages: without them nft takes twice the time for thousands
 * of rules.
 */
const enter = `set -ef
ulimit -c 0
folders=$1 files=$2 table=$3
shift 3
pages=/sys/kernel/mm/transparent_hugepage
enabled=$(cat "$pages/enabled" 2>/dev/null || :)
size=$(cat "$pages/hpage_pmd_size" 2>/dev/null || :)
mount -t tmpfs -o mode=755,size=1m,nosuid,nodev root /sys
cd /sys
IFS='
'
mkdir -p dev old proc run/netns ".$pages" $folders
for file in $files; do : >"$file"; done
printf '%s\\n' "$enabled" >".$pages/enabled"
printf '%s\\n' "$size" >".$pages/hpage_pmd_size"
unset IFS
printf '%s\n' "$table" >dev/null
mount -a -T ./dev/null
mount --rbind /run/netns run/netns
mount -o remount,bind,ro run/netns
mount -t proc -o nosuid,nodev,noexec proc proc
mount -o bind,ro,nosuid,nodev,noexec proc/sys proc/sys
mount -o bind,nosuid,nodev,noexec /proc/sys/net proc/sys/net
mount -o remount,ro .
pivot_root . old
cd /
umount -n -l /old
exec "$@"
`;

/** Programs and libraries of the host, and the names of protocols in listings. */
const shared = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/iproute2", "/etc/protocols", "/etc/services"];

/** Returns the nearest folder above the file that has a package.json, which Node reads too. */
function packageOf(file: string): string {
  let folder = dirname(file);
  while (!existsSync(join(folder, "package.json")) && folder !== "/") folder = dirname(folder);
  return folder;
}

/** Returns the folders of koffi, with which the starter process starts its children; empty without it. */
function findKoffi(): readonly string[] {
  try {
    const folder = packageOf(fileURLToPath(import.meta.resolve("koffi")));
    return [folder, join(dirname(folder), "@koromix")];
  } catch {
    return [];
  }
}

const rights = (): readonly string[] => [...keepRights(["net_admin", "sys_admin"]), ...filterCalls("network")];

function privateRoot(command: readonly string[]): readonly string[] {
  const cache = getCompileCacheDir();
  const caches = cache === undefined ? [] : [dirname(cache)];
  const own = [packageOf(starterFile), ...findKoffi(), dirname(process.execPath), ...caches];
  const paths = [...shared, ...own.filter((path) => !path.startsWith("/usr/"))].filter((path) => existsSync(path));
  const isFolder = (path: string): boolean => statSync(path).isDirectory();
  const [folders, files] = [paths.filter(isFolder), paths.filter((path) => !isFolder(path))];
  const table = [
    ...paths.map((path) => `${fieldOf(path)} ${fieldOf(`/sys${path}`)} none bind,ro,nosuid,nodev 0 0`),
    // The last mount, because the file in its place contains this table until then.
    "/dev/null /sys/dev/null none bind,ro,nosuid,noexec 0 0",
  ];
  const lists = [
    [...folders, ...files.map((file) => dirname(file))].map((path) => `.${path}`),
    files.map((file) => `.${file}`),
    table,
  ];
  const spaces = ["--mount", "--ipc", "--uts", "--propagation", "slave", "--pid", "--fork", "--kill-child"];
  return [
    "unshare",
    ...spaces,
    "sh",
    "-c",
    enter,
    "sh",
    ...lists.map((list) => list.join("\n")),
    ...rights(),
    ...command,
  ];
}

/** How far the programs are confined. `root`: as described. `rights`: the host permits no private root, so they see its files. */
export type ToolRights = "root" | "rights" | "all";

/**
 * Returns an `Exec` that runs confined what does not require all rights, and passes everything else to `exec`. /run/netns must be a mount
 * point, as after the first `ip netns add`.
 */
export async function confineTools(exec: Exec): Promise<{ readonly exec: Exec; readonly rights: ToolRights }> {
  const attempt = async (confinement: Confinement): Promise<Exec> => {
    const confined = createExec(confinement);
    await confined.run(["ip", "-V"]);
    return {
      ...exec,
      run: (argv, options) => (options?.rights === "all" ? exec : confined).run(argv, options),
    };
  };
  try {
    return { exec: await attempt(privateRoot), rights: "root" };
  } catch {
    return attempt((command) => [...rights(), ...command]).then(
      (confined) => ({ exec: confined, rights: "rights" }),
      () => ({ exec, rights: "all" }),
    );
  }
}
