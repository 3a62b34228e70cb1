/**
 * Runs one dnsmasq per network that needs DHCP or DNS forwarding. Leases are fixed, in a file that dnsmasq reads on SIGHUP; a watched
 * folder would use one of the few inotify watches that Linux allows a user. Unknown clients get no address. dnsmasq receives packets from
 * servers, so it is confined (`confine.ts`): it sees its lease files and no other file of the host. It continues to run when the service
 * ends; a state file with its process and the digests of its input identifies it at the next start. It keeps no log: any server could fill
 * the disk with it.
 */
import { createHash } from "node:crypto";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseAddress, parseAddresses, prefixLength } from "../../../base/address.ts";
import type { Child, Exec } from "../../exec.ts";
import type { NetworkSpec } from "../interface.ts";
import { BRIDGE, NEXT_HOP } from "../model/name.ts";
import { createDhcpConfine } from "./confine.ts";
import { findDaemons, stopDaemons } from "./daemon.ts";

/** Returns the netmask of a block as dotted text. */
function mask(cidr: string): string {
  const length = prefixLength(cidr);
  const bits = length === 0 ? 0 : (-1 << (32 - length)) >>> 0;
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join(".");
}

const checked = (address: string): string => {
  parseAddress(address);
  return address;
};

/** Returns dnsmasq's arguments, null when the network does not need it. Throws for an invalid address. */
export function dnsmasqArguments(spec: NetworkSpec, folder: string): string[] | null {
  const forwards = spec.dnsForwarders.length > 0 && spec.edgeAddress !== null;
  if (!spec.dhcp.enabled && !forwards) return null;
  const block = spec.v4.cidr.split("/")[0] ?? "";
  const servers = forwards ? [spec.v4.gateway ?? ""] : spec.dhcp.dns;
  const option = (name: string, value: string) => `--dhcp-option=option:${name}${value === "" ? "" : `,${value}`}`;
  parseAddresses(spec.v4.cidr);
  return [
    "--conf-file=/dev/null",
    "--no-hosts",
    "--no-resolv",
    // It never has another user, never offers an address that may be in use, and finds its process by no file.
    "--user=",
    "--group=",
    "--no-ping",
    "--pid-file=",
    `--interface=${BRIDGE}`,
    "--except-interface=lo",
    "--bind-dynamic",
    "--log-facility=/dev/null",
    forwards ? "--port=53" : "--port=0",
    // One server may have 1200 pending queries (see `connectionlimits.ts`): the rest is for the others.
    ...(forwards
      ? ["--dns-forward-max=2000", ...spec.dnsForwarders.map((server) => `--server=${checked(server)}`)]
      : []),
    ...(spec.dhcp.enabled
      ? [
          `--dhcp-range=${block},static,${mask(spec.v4.cidr)},1h`,
          // dnsmasq's own address is outside of the block there.
          ...(spec.edgeAddress === null ? [`--shared-network=${NEXT_HOP},${block}`] : []),
          `--dhcp-hostsfile=${join(folder, "ports")}`,
          `--dhcp-leasefile=${join(folder, "leases")}`,
          // Each address of the block, instead of a thousand: a lease of a server never ends.
          `--dhcp-lease-max=${2 ** (32 - prefixLength(spec.v4.cidr))}`,
          option("router", spec.dhcp.router === null ? "" : checked(spec.dhcp.router)),
          ...(servers.length > 0 ? [option("dns-server", servers.map(checked).join(","))] : []),
          option("mtu", String(spec.mtu)),
          "--dhcp-authoritative",
        ]
      : []),
  ];
}

/** Renders the lease file: `MAC,address,name,infinite`, one line per port. */
export function hostLines(spec: NetworkSpec): string[] {
  return spec.ports.flatMap(({ mac, addresses, name }) => {
    const address = addresses.find((text) => parseAddress(text).family === 4);
    const host = /^[a-z0-9-]{1,63}$/i.test(name) ? `,${name}` : "";
    return address === undefined ? [] : [`${mac},${address}${host},infinite`];
  });
}

/** Returns dnsmasq's lease database (`expiry MAC address name id`, one lease a line) without the leases of removed ports. */
export function filterLeases(text: string, hosts: readonly string[]): string {
  const held = new Set(hosts.map((host) => host.split(",", 2).join()));
  const isHeld = (line: string): boolean => {
    const [, mac, address] = line.split(" ");
    return held.has(`${mac},${address}`);
  };
  return text
    .split("\n")
    .filter((line) => line === "" || isHeld(line))
    .join("\n");
}

/** The state file of a running dnsmasq. Earlier releases wrote it too, so its keys never change. */
interface Started {
  readonly child: Child;
  readonly digest: string;
  /** Digest of the lease file that it read last. */
  readonly told: string;
}

const digestOf = (lines: readonly string[]): string => createHash("sha256").update(lines.join("\n")).digest("hex");

function read(path: string): Started | null {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Started;
  } catch {
    return null;
  }
}

/** Returns the user id of a network's dnsmasq, without an entry in /etc/passwd: below those of servers, so networks share no rights. */
const uidOf = (network: number): number => 600_000 + (network % 90_000);

/** The DHCP and DNS services of all networks. */
export interface Dhcp {
  /**
   * Starts, updates or stops dnsmasq according to the spec. A dnsmasq whose input did not change keeps running. Rejects when it does not
   * start.
   */
  ensure(spec: NetworkSpec, namespace: string): Promise<void>;
  /** Returns whether dnsmasq runs, or is not needed. */
  isRunning(spec: NetworkSpec): boolean;
  /** Stops dnsmasq and removes the network's folder. */
  stop(network: number): Promise<void>;
}

/** Creates the service. `folderOf` returns the folder of a network. */
export function createDhcp(exec: Exec, folderOf: (network: number) => string): Dhcp {
  const confine = createDhcpConfine(exec);
  const stateOf = (network: number) => join(folderOf(network), "dnsmasq.json");

  async function end(network: number): Promise<void> {
    const started = read(stateOf(network));
    if (started === null) return;
    exec.signal(started.child, "SIGTERM");
    for (let tries = 0; exec.isAlive(started.child); tries++) {
      if (tries === 50) exec.signal(started.child, "SIGKILL");
      if (tries === 250) throw new Error(`dnsmasq of network ${network} did not end within 2 s of SIGKILL`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    rmSync(stateOf(network), { force: true });
  }

  return {
    async ensure(spec, namespace) {
      const folder = folderOf(spec.id);
      const args = dnsmasqArguments(spec, folder);
      if (args === null) return end(spec.id);
      mkdirSync(folder, { recursive: true });
      chmodSync(folder, 0o711);
      const lines = hostLines(spec);
      const [digest, told] = [digestOf(args), digestOf(lines)];
      const writeState = (child: Child) =>
        writeFileSync(stateOf(spec.id), JSON.stringify({ child, digest, told } satisfies Started));
      // dnsmasq assigns an address to no other client before its lease ends, and never drops a lease early. So it is restarted.
      const leases = join(folder, "leases");
      const remembered = existsSync(leases) ? readFileSync(leases, "utf8") : "";
      const held = filterLeases(remembered, lines);
      const started = read(stateOf(spec.id));
      const isCurrent = started?.digest === digest && exec.isAlive(started.child) && held === remembered;
      if (isCurrent && started.told === told) return;
      const ports = join(folder, "ports");
      writeFileSync(ports, lines.map((line) => `${line}\n`).join(""));
      chmodSync(ports, 0o644);
      if (isCurrent) {
        exec.signal(started.child, "SIGHUP");
        return writeState(started.child);
      }
      // A process that was started before a crash but not written to the state file would run beside the new one.
      await stopDaemons(exec, namespace, "dnsmasq", folder, "SIGTERM");
      writeFileSync(leases, held, { mode: 0o600 });
      const uid = uidOf(spec.id);
      chownSync(leases, uid, uid);
      const command = await confine(args, {
        uid,
        files: [
          ["ro", ports],
          ["rw", leases],
        ],
      });
      // The command returns when dnsmasq serves, and fails with its error message when it cannot.
      await exec.run(["nsenter", `--net=/run/netns/${namespace}`, ...command], {
        // Identifies it in a namespace that has lost its name.
        environment: { BRUME_FOLDER: folder },
        rights: "all",
      });
      const [child] = await findDaemons(exec, namespace, "dnsmasq");
      if (child === undefined) throw new Error(`dnsmasq of network ${spec.id} ended immediately after its start`);
      writeState(child);
    },
    isRunning(spec) {
      if (dnsmasqArguments(spec, folderOf(spec.id)) === null) return true;
      const started = read(stateOf(spec.id));
      return started !== null && exec.isAlive(started.child);
    },
    async stop(network) {
      await end(network);
      if (existsSync(folderOf(network))) rmSync(folderOf(network), { recursive: true, force: true });
    },
  };
}
