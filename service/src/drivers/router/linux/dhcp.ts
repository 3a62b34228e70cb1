/**
 * Addresses handed out to those servers that ask, and their DNS questions carried on: one dnsmasq per network that wants either.
 * Leases are fixed, in a file that dnsmasq reads when it is told to, since a folder that it watches costs one of the few watchers
 * that Linux gives a user; unknown servers get nothing. Since it listens to servers, it opens its sockets as root and goes on as the
 * user that the distribution has for it, who can read that file and change nothing. It outlives the service and is found again by the
 * file that says which process it is and what it was started with.
 */
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseAddress, parseAddresses, prefixLength } from "../../../base/address.ts";
import type { Child, Exec } from "../../exec.ts";
import type { NetworkSpec } from "../interface.ts";
import { BRIDGE, NEXT_HOP } from "../model/name.ts";
import { stopDaemons } from "./daemon.ts";

/** Dotted, as dnsmasq wants it. */
function mask(cidr: string): string {
  const length = prefixLength(cidr);
  const bits = length === 0 ? 0 : (-1 << (32 - length)) >>> 0;
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join(".");
}

const checked = (address: string): string => {
  parseAddress(address);
  return address;
};

/** dnsmasq's arguments, null when nothing is wanted of it. Throws on what is no address. */
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
    `--interface=${BRIDGE}`,
    "--except-interface=lo",
    "--bind-dynamic",
    `--log-facility=${join(folder, "dnsmasq.log")}`,
    `--pid-file=${join(folder, "dnsmasq.pid")}`,
    forwards ? "--port=53" : "--port=0",
    // One server may have 1200 that wait (see flows.ts): the rest is for the others.
    ...(forwards
      ? ["--dns-forward-max=2000", ...spec.dnsForwarders.map((server) => `--server=${checked(server)}`)]
      : []),
    ...(spec.dhcp.enabled
      ? [
          `--dhcp-range=${block},static,${mask(spec.v4.cidr)},1h`,
          // Its own address there lies outside of the block.
          ...(spec.edgeAddress === null ? [`--shared-network=${NEXT_HOP},${block}`] : []),
          `--dhcp-hostsfile=${join(folder, "ports")}`,
          `--dhcp-leasefile=${join(folder, "leases")}`,
          option("router", spec.dhcp.router === null ? "" : checked(spec.dhcp.router)),
          ...(servers.length > 0 ? [option("dns-server", servers.map(checked).join(","))] : []),
          option("mtu", String(spec.mtu)),
          "--dhcp-authoritative",
        ]
      : []),
  ];
}

/** `MAC,address,name,infinite`, one line per port. */
export function hostLines(spec: NetworkSpec): string[] {
  return spec.ports.flatMap(({ mac, addresses, name }) => {
    const address = addresses.find((text) => parseAddress(text).family === 4);
    const host = /^[a-z0-9-]{1,63}$/i.test(name) ? `,${name}` : "";
    return address === undefined ? [] : [`${mac},${address}${host},infinite`];
  });
}

/** What dnsmasq keeps of leases (`expiry MAC address name id`, one a line), without those of ports that are gone. */
export function filterLeases(text: string, hosts: readonly string[]): string {
  const isHeld = (line: string): boolean => {
    const [, mac, address] = line.split(" ");
    return hosts.some((host) => host.startsWith(`${mac},${address},`));
  };
  return text
    .split("\n")
    .filter((line) => line === "" || isHeld(line))
    .join("\n");
}

interface Started {
  readonly child: Child;
  readonly digest: string;
  /** Digest of the leases that it was told last. */
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

export interface Dhcp {
  /** Makes dnsmasq run as the image wants, or not at all; one that is right already keeps running. */
  ensure(spec: NetworkSpec, namespace: string): Promise<void>;
  isRunning(spec: NetworkSpec): boolean;
  /** The folder goes with it. */
  stop(network: number): Promise<void>;
}

/** `folderOf` names the folder of a network. */
export function createDhcp(exec: Exec, folderOf: (network: number) => string): Dhcp {
  const stateOf = (network: number) => join(folderOf(network), "dnsmasq.json");

  async function end(network: number): Promise<void> {
    const started = read(stateOf(network));
    if (started === null) return;
    exec.signal(started.child, "SIGTERM");
    for (let tries = 0; exec.isAlive(started.child); tries++) {
      if (tries === 50) exec.signal(started.child, "SIGKILL");
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
      const note = (child: Child) =>
        writeFileSync(stateOf(spec.id), JSON.stringify({ child, digest, told } satisfies Started));
      // An address that it remembers as another's it gives to nobody, and it forgets no lease before its time: then it starts anew.
      const leases = join(folder, "leases");
      const remembered = existsSync(leases) ? readFileSync(leases, "utf8") : "";
      const held = filterLeases(remembered, lines);
      const started = read(stateOf(spec.id));
      const right = started?.digest === digest && exec.isAlive(started.child) && held === remembered;
      if (right && started.told === told) return;
      writeFileSync(join(folder, "ports"), lines.map((line) => `${line}\n`).join(""));
      chmodSync(join(folder, "ports"), 0o644);
      if (right) {
        exec.signal(started.child, "SIGHUP");
        return note(started.child);
      }
      // One that was started and not noted would go on beside it.
      await stopDaemons(exec, namespace, "dnsmasq", folder, "SIGTERM");
      if (held !== remembered) writeFileSync(leases, held);
      // It goes into the background when it serves, and ends with its complaint when it cannot.
      await exec.run(["ip", "netns", "exec", namespace, "dnsmasq", ...args]);
      const child = exec.find(Number(readFileSync(join(folder, "dnsmasq.pid"), "utf8")));
      if (child === null) throw new Error(`dnsmasq of network ${spec.id} ended at once`);
      note(child);
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
