/**
 * Addresses handed out to those servers that ask, and their DNS questions carried on: one dnsmasq per network that wants either.
 * Leases are fixed, one file per port, read by dnsmasq as soon as it is written; unknown servers get nothing. It outlives the
 * service and is found again by the file that says which process it is and what it was started with.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseAddress, parseAddresses, prefixLength } from "../../base/address.ts";
import type { Child, Exec } from "../exec.ts";
import { BRIDGE, NEXT_HOP, portOf } from "./name.ts";
import type { Image } from "./port.ts";

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
export function dnsmasqArguments(image: Image, folder: string): string[] | null {
  const forwards = image.dnsForwarders.length > 0 && image.edgeAddress !== null;
  if (!image.dhcp.enabled && !forwards) return null;
  const block = image.v4.cidr.split("/")[0] ?? "";
  const servers = forwards ? [image.v4.gateway ?? ""] : image.dhcp.dns;
  const option = (name: string, value: string) => `--dhcp-option=option:${name}${value === "" ? "" : `,${value}`}`;
  parseAddresses(image.v4.cidr);
  return [
    "--keep-in-foreground",
    "--conf-file=/dev/null",
    "--no-hosts",
    "--no-resolv",
    `--interface=${BRIDGE}`,
    "--except-interface=lo",
    "--bind-dynamic",
    "--user=root",
    "--log-facility=-",
    "--pid-file",
    forwards ? "--port=53" : "--port=0",
    ...(forwards ? image.dnsForwarders.map((server) => `--server=${checked(server)}`) : []),
    ...(image.dhcp.enabled
      ? [
          `--dhcp-range=${block},static,${mask(image.v4.cidr)},1h`,
          // Its own address there lies outside of the block.
          ...(image.edgeAddress === null ? [`--shared-network=${NEXT_HOP},${block}`] : []),
          `--dhcp-hostsdir=${join(folder, "hosts")}`,
          `--dhcp-leasefile=${join(folder, "leases")}`,
          option("router", image.dhcp.router === null ? "" : checked(image.dhcp.router)),
          ...(servers.length > 0 ? [option("dns-server", servers.map(checked).join(","))] : []),
          option("mtu", String(image.mtu)),
          "--dhcp-authoritative",
        ]
      : []),
  ];
}

/** Text by file name, one per port. */
export function hostFiles(image: Image): Map<string, string> {
  const files = new Map<string, string>();
  for (const { id, mac, addresses, name } of image.ports) {
    const address = addresses.find((text) => parseAddress(text).family === 4);
    const host = /^[a-z0-9-]{1,63}$/i.test(name) ? `,${name}` : "";
    if (address !== undefined) files.set(portOf(id), `${mac},${address}${host},infinite\n`);
  }
  return files;
}

interface Started {
  readonly child: Child;
  readonly digest: string;
}

function read(path: string): Started | null {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Started;
  } catch {
    return null;
  }
}

export interface Dhcp {
  /** Makes dnsmasq run as the image wants, or not at all; one that is right already keeps running. */
  ensure(image: Image, namespace: string): Promise<void>;
  isRunning(image: Image): boolean;
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
    async ensure(image, namespace) {
      const folder = folderOf(image.id);
      const args = dnsmasqArguments(image, folder);
      if (args === null) return end(image.id);
      const hosts = join(folder, "hosts");
      mkdirSync(hosts, { recursive: true, mode: 0o700 });
      const wanted = hostFiles(image);
      const present = new Map(readdirSync(hosts).map((name) => [name, readFileSync(join(hosts, name), "utf8")]));
      // A file that is rewritten may leave what it said before; only a removal is unlearned, and only on SIGHUP.
      const stale = [...present].filter(([name, text]) => wanted.get(name) !== text).map(([name]) => name);
      for (const name of stale) rmSync(join(hosts, name));
      const started = read(stateOf(image.id));
      const digest = createHash("sha256").update(args.join("\n")).digest("hex");
      const right = started !== null && started.digest === digest && exec.isAlive(started.child);
      if (right && stale.length > 0) exec.signal(started.child, "SIGHUP");
      for (const [name, text] of wanted) if (present.get(name) !== text) writeFileSync(join(hosts, name), text);
      if (right) return;
      await end(image.id);
      // It would complain into its log only, where nobody waits for it.
      await exec.run(["dnsmasq", "--test", ...args]);
      const argv = ["ip", "netns", "exec", namespace, "dnsmasq", ...args];
      const child = await exec.startDetached(argv, { output: join(folder, "dnsmasq.log") });
      writeFileSync(stateOf(image.id), JSON.stringify({ child, digest } satisfies Started));
    },
    isRunning(image) {
      if (dnsmasqArguments(image, folderOf(image.id)) === null) return true;
      const started = read(stateOf(image.id));
      return started !== null && exec.isAlive(started.child);
    },
    async stop(network) {
      await end(network);
      if (existsSync(folderOf(network))) rmSync(folderOf(network), { recursive: true, force: true });
    },
  };
}
