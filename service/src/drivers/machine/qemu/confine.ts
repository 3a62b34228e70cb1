/**
 * Confines the process of a server to a private root (see privateroot.ts) with QEMU, its firmware, its device files, and parts of the
 * server's folder. It dumps no core, which would contain the guest's memory.
 *
 *     /usr/bin/…  /lib/…  /usr/share/…     read-only, from the host
 *     /dev/null /dev/net/tun /dev/kvm      kvm only with hardware virtualization
 *     /server/run  /server/disk-<n>        the server's own, writable
 *     /server/seed.img                     read-only
 */
import { dirname, resolve } from "node:path";
import type { Exec } from "../../exec.ts";
import { dropRights, enterRoot, findNeeds, type PrivateRoot } from "../../privateroot.ts";
import { firmware } from "./arguments.ts";
import { diskName, type Folder } from "./folder.ts";

const qemu = "qemu-system-x86_64";

/** Returns what QEMU needs of the host: programs, libraries, firmware, and data for its devices. */
export async function findQemuNeeds(exec: Exec): Promise<readonly string[]> {
  const data = (await exec.run([qemu, "-L", "help"])).split("\n").filter((line) => line.startsWith("/"));
  return findNeeds(exec, [qemu], [...data.map((path) => resolve(path)), dirname(firmware), firmware]);
}

/**
 * How processes of servers are confined. `needs`: each has a private root with these paths of the host. `tun`, on a host that does not
 * permit private roots: they see the host's file system and open /dev/net/tun, whose devices only their owners can open. `open`: the host's
 * device file is open to all users, as the kernel recommends. `private`: a device file that only they see.
 */
export type Confinement = { readonly needs: readonly string[] } | { readonly tun: "open" | "private" };

/** Constant text; the shell only executes its arguments. */
const privateTun = 'mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200 && exec "$0" "$@"';

/** Mounts and rights of a confined process of a server. `base` is an empty folder. */
export interface ConfinedProcess extends Pick<PrivateRoot, "base" | "mounts"> {
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
    const root: PrivateRoot = { base, devices: kvm ? "kvm" : "tun", folder: "/server/run", needs: how.needs, mounts };
    return enterRoot(root, [], command, false);
  }
  if (how.tun === "open") return command;
  return ["unshare", "--mount", "--propagation", "slave", "sh", "-c", privateTun, ...command];
}
