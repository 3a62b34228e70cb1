/**
 * Confines the daemons of networks, which read packets of any sender. They run in the network's namespace and cannot enter another one. They
 * see only their program, its libraries, some devices and the paths that they are given, and no file of the host. They have only the
 * capabilities that they need there, cannot get others, and have a filter of system calls. Charon and wireguard-go, whose user is root,
 * have a process namespace of their own, so they can send signals to no other process. Dnsmasq has a user id of its own.
 */
import type { Exec } from "../../exec.ts";
import {
  dropRights,
  enterRoot,
  filterCalls,
  filterPrograms,
  findNeeds,
  keepRights,
  type PrivateRoot,
} from "../../privateroot.ts";

/** Returns the command line of the confined program. `folder`: the folder that it may write. */
export type Confine = (args: readonly string[], folder: string) => Promise<readonly string[]>;

/** Finds what a program needs, and tries the private root once; null where the host, such as some containers, does not permit it. */
function findRoot(exec: Exec, programs: readonly string[], data: readonly string[], enter: Enter) {
  let found: Promise<readonly string[]> | undefined;
  async function tryRoot(): Promise<readonly string[]> {
    const needs = await findNeeds(exec, [...programs, ...filterPrograms()], data);
    await exec.run(enter(needs, [], ["setpriv", "--version"]), { rights: "all" });
    return needs;
  }
  return async (): Promise<readonly string[] | null> => {
    found ??= tryRoot();
    const needs = await found.catch(() => null);
    // A failure may be temporary, so the next start tries again.
    if (needs === null) found = undefined;
    return needs;
  };
}

type Enter = (needs: readonly string[], mounts: PrivateRoot["mounts"], command: readonly string[]) => readonly string[];

const vpnRights = keepRights(["net_admin", "net_bind_service"]);
const vpnRoot: Enter = (needs, mounts, command) =>
  enterRoot(
    { base: "/sys", devices: "vpn", folder: "/", needs, mounts },
    ["--pid", "--fork", "--kill-child"],
    command,
    false,
  );

/** Creates the function for one daemon of tunnels; `data`: more files that it reads. Without a private root it sees the files of the host. */
export function createConfine(exec: Exec, program: string, data: readonly string[] = []): Confine {
  const root = findRoot(exec, [program], data, vpnRoot);
  return async (args, folder) => {
    const command = [...vpnRights, ...filterCalls("vpn"), program, ...args];
    const needs = await root();
    return needs === null ? command : vpnRoot(needs, [["rw", folder, folder]], command);
  };
}

/** Rights and files of one dnsmasq. */
export interface DhcpProcess {
  readonly uid: number;
  /** Mode and path of each file that it may open. */
  readonly files: readonly (readonly ["ro" | "rw", string])[];
}

/** Returns the command line of a confined dnsmasq. */
export type ConfineDhcp = (args: readonly string[], process: DhcpProcess) => Promise<readonly string[]>;

/** Bytes of its lease file, and of its memory; number of its processes, one for each TCP connection. */
const dhcpLimits = ["prlimit", "--fsize=16777216", "--as=536870912", "--nproc=64", "--core=0"];
const dhcpRoot: Enter = (needs, mounts, command) =>
  enterRoot({ base: "/sys", devices: "random", folder: "/", needs, mounts }, [], command, false);

/**
 * Creates the function for dnsmasq. It does not start without `net_admin`, and needs `net_raw` to bind its socket to a bridge that was created
 * again. Its filter permits neither a change of a firewall nor raw packets.
 */
export function createDhcpConfine(exec: Exec): ConfineDhcp {
  const root = findRoot(exec, ["dnsmasq", "prlimit"], [], dhcpRoot);
  return async (args, { uid, files }) => {
    const rights = dropRights(uid, uid, ["net_admin", "net_bind_service", "net_raw"]);
    const command = [...dhcpLimits, ...rights, ...filterCalls("dhcp"), "dnsmasq", ...args];
    const needs = await root();
    const mounts = files.map(([mode, path]) => [mode, path, path] as const);
    return needs === null ? command : dhcpRoot(needs, mounts, command);
  };
}

/** Returns whether this host permits private roots. Without them, the daemons see the files of the host. */
export const permitsPrivateRoots = async (exec: Exec): Promise<boolean> =>
  (await findRoot(exec, ["setpriv"], [], dhcpRoot)()) !== null;
