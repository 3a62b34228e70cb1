/**
 * The router of this machine: tries what the machine can do, and gives the real driver with the engines that were found, or the
 * simulated one and why. What was found is said in lines for the terminal: one per engine, chosen or not.
 */

import { randomBytes } from "node:crypto";
import { lookup } from "node:dns/promises";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../../base/log.ts";
import { type Exec, searchPath } from "../../exec.ts";
import type { Router } from "../interface.ts";
import { createIpsec } from "../ipsec/ipsec.ts";
import { tagOf } from "../model/name.ts";
import type { Limits } from "../nft/connectionlimits.ts";
import { createSim } from "../sim/sim.ts";
import { chooseHolder, type Kind } from "../wireguard/device.ts";
import { createWireguard } from "../wireguard/wireguard.ts";
import { type Capabilities, detect } from "./detect.ts";
import { claimHost, type Pool } from "./installations.ts";
import { createLinux } from "./linux.ts";
import { ipsecTunnels, wireguardTunnels } from "./tunnels.ts";

export interface RouterStart {
  readonly router: Router;
  readonly kind: "host" | "sim";
  /** Where the driver keeps what lives as long as the machine runs; "" with `sim`. */
  readonly runFolder: string;
  /** Which tunnels it can make. */
  readonly offers: { readonly ipsec: boolean; readonly wireguard: boolean };
  /** Tells a simulated router that a device is there; a real one sees it by itself. */
  readonly plug: ((device: string) => void) | null;
  /** For `/readyz`: `host: nftables, strongSwan, wireguard`. */
  readonly detail: string;
  /** For the terminal: what packets go through, or why none do. */
  readonly lines: readonly string[];
}

export interface RouterStartOptions {
  readonly exec: Exec;
  readonly dataFolder: string;
  /** No packet is to flow, on purpose. */
  readonly simulate: boolean;
  /** Addresses and blocks of the host that guests may reach. */
  readonly opened: readonly string[];
  /** What this service is going to give out; null: nothing is made, networks are only taken away. */
  readonly pools: readonly Pool[] | null;
  readonly limits: Limits;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const isInstalled = (program: string): boolean =>
  searchPath.split(":").some((folder) => existsSync(join(folder, program)));

export async function startRouter(options: RouterStartOptions): Promise<RouterStart> {
  const { exec, dataFolder, simulate, opened, pools, limits, log, now } = options;
  const simulated = (why: string): RouterStart => {
    const router = createSim(now);
    return {
      router,
      kind: "sim",
      runFolder: "",
      offers: { ipsec: true, wireguard: true },
      plug: router.plug,
      detail: "sim: no packet flows",
      lines: [`networks  simulated, no packet flows: ${why}`],
    };
  };
  if (simulate) return simulated("BRUME_SIMULATE is set");
  if (process.platform !== "linux") return simulated("this is not Linux");
  if (process.getuid?.() !== 0) return simulated("only root may make networks");
  const missing = ["ip", "nft", "tc", "sysctl"].filter((program) => !isInstalled(program));
  if (missing.length > 0) return simulated(`not installed: ${missing.join(", ")}`);

  const tag = tagOf(dataFolder);
  const capabilities = await detect(exec, `brume-${tag}_try`);
  if (!capabilities.router) {
    const why = capabilities.trials.filter(({ works }) => !works).map(({ name, detail }) => `${name}: ${detail}`);
    return simulated(why[0] ?? "networks cannot be made here");
  }
  if (pools !== null) await claimHost({ exec, tag, dataFolder, pools });
  const runFolder = `/run/brume-${tag}`;
  const shared = {
    exec,
    runFolder,
    now,
    log,
    lookup: async (host: string) => (await lookup(host, { family: 4 })).address,
  };
  const holder = chooseHolder({
    kernel: capabilities.kernelWireguard,
    wg: isInstalled("wg"),
    wireguardGo: isInstalled("wireguard-go"),
  });
  const offers = { ipsec: isInstalled("charon-systemd"), wireguard: holder !== null };
  const ipsec = createIpsec({ ...shared, kernelEsp: capabilities.kernelEsp, random: randomBytes });
  const tunnels = [
    ipsecTunnels(ipsec),
    wireguardTunnels(createWireguard({ ...shared, holder: holder ?? "userspace" })),
  ];
  const router = createLinux({
    exec,
    tag,
    hostNamespace: null,
    runFolder,
    capabilities,
    tunnels,
    opened,
    limits: within(limits),
    now,
  });
  const engines = ["nftables", ...(offers.ipsec ? ["strongSwan"] : []), ...(offers.wireguard ? ["wireguard"] : [])];
  return {
    router,
    kind: "host",
    plug: null,
    runFolder,
    offers,
    detail: `host: ${engines.join(", ")}`,
    lines: describe(capabilities, offers, holder),
  };
}

/**
 * One network takes at most a quarter of the host's table of connections, one server a quarter of that: with what has ended, which counts
 * for the network alone, a server takes up to three times its limit, and leaves something to its neighbours.
 */
function within({ network, server, packets }: Limits): Limits {
  const table = "/proc/sys/net/netfilter/nf_conntrack_max";
  // 0: without limit.
  const rows = (existsSync(table) && Number(readFileSync(table, "utf8"))) || Number.POSITIVE_INFINITY;
  const whole = Math.floor(Math.min(network, Math.max(rows / 4, 100)));
  return { network: whole, server: Math.min(server, Math.ceil(whole / 4)), packets };
}

function describe(found: Capabilities, offers: RouterStart["offers"], holder: Kind | null): string[] {
  const lines = ["networks  one namespace each, nftables"];
  const not = (name: string): string => found.trials.find((trial) => trial.name.includes(name))?.detail ?? "";
  if (!found.bandwidth) lines.push("          without bandwidth limits: tc cannot do it here");
  if (!found.nat) lines.push(`          without address translation: ${not("translation")}`);
  if (!found.dhcp) lines.push("          without DHCP: dnsmasq is not installed");
  const esp = found.kernelEsp ? "ESP in the kernel" : "ESP in user space, since the kernel has none";
  lines.push(`IPsec     ${offers.ipsec ? `strongSwan, ${esp}` : "none: charon-systemd is not installed"}`);
  const wireguard = { kernel: "in the kernel", userspace: "wireguard-go, in user space" };
  lines.push(`WireGuard ${holder === null ? "none: wireguard-go is not installed" : wireguard[holder]}`);
  return lines;
}
