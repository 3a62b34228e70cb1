/**
 * Starts the router driver: tests what the host supports, and creates the Linux driver with the available engines, or the simulated driver
 * with the reason. It also returns lines for the terminal, one per engine.
 */

import { randomBytes } from "node:crypto";
import { lookup } from "node:dns/promises";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../../base/log.ts";
import { architectures } from "../../../base/systemcalls.ts";
import { type Exec, searchPath } from "../../exec.ts";
import { filterPrograms } from "../../privateroot.ts";
import type { Router } from "../interface.ts";
import { createIpsec } from "../ipsec/ipsec.ts";
import { tagOf } from "../model/name.ts";
import type { Limits } from "../nft/connectionlimits.ts";
import { createSim } from "../sim/sim.ts";
import { chooseHolder } from "../wireguard/device.ts";
import { createWireguard } from "../wireguard/wireguard.ts";
import { permitsPrivateRoots } from "./confine.ts";
import { describeObstacle, detect } from "./detect.ts";
import { createHostLookup } from "./hostlookup.ts";
import { claimHost, type Pool } from "./installations.ts";
import { createLinux } from "./linux.ts";
import { describeMissing, describeNetworks, needed } from "./startlines.ts";
import { confineTools } from "./toolroot.ts";
import { ipsecTunnels, wireguardTunnels } from "./tunnels.ts";

/** The driver and what it supports. */
export interface RouterStart {
  readonly router: Router;
  readonly kind: "host" | "sim";
  /** Folder for files of running programs, empty after a reboot; "" with `sim`. */
  readonly runFolder: string;
  /** Types of tunnels that it supports. */
  readonly offers: { readonly ipsec: boolean; readonly wireguard: boolean };
  /** Adds a device to a simulated router; null for the Linux driver, which finds devices itself. */
  readonly plug: ((device: string) => void) | null;
  /** For `/readyz`: `host: nftables, strongSwan, wireguard`. */
  readonly detail: string;
  /** Lines for the terminal: the engines, or the reason for simulation. */
  readonly lines: readonly string[];
}

/** What the drivers of networks need to know of this host and its settings. */
export interface RouterStartOptions {
  readonly exec: Exec;
  readonly dataFolder: string;
  /** Whether the operator requested simulation. */
  readonly simulate: boolean;
  /** Addresses and blocks of the host that guests may reach. */
  readonly opened: readonly string[];
  /** Address pools of this service; null: networks are only removed, none is created. */
  readonly pools: readonly Pool[] | null;
  readonly limits: Limits;
  /** PID of the process that lives as long as the service; this one by default. */
  readonly owner?: number;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const isInstalled = (program: string): boolean =>
  searchPath.split(":").some((folder) => existsSync(join(folder, program)));

/** Starts the driver. Rejects when names or blocks conflict with another installation. */
export async function startRouter(options: RouterStartOptions): Promise<RouterStart> {
  const { dataFolder, simulate, opened, pools, limits, owner = process.pid, log, now } = options;
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
  if (process.getuid?.() !== 0) return simulated("only root can create networks");
  const missing = needed.filter((program) => !isInstalled(program));
  if (missing.length > 0) return simulated(describeMissing(missing));

  const tag = tagOf(dataFolder);
  const capabilities = await detect(options.exec, `brume-${tag}_try`, options.log);
  if (!capabilities.router) {
    return simulated(describeObstacle(capabilities.trials));
  }
  const [{ exec, rights }, hasPrivateRoots] = await Promise.all([
    confineTools(options.exec),
    permitsPrivateRoots(options.exec),
    pools !== null && claimHost({ exec: options.exec, tag, dataFolder, pools, owner }),
  ]);
  const runFolder = `/run/brume-${tag}`;
  const shared = {
    exec,
    runFolder,
    now,
    log,
    lookup: createHostLookup(async (host) => (await lookup(host, { family: 4 })).address),
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
  const hasFilter = architectures[process.arch] === undefined ? null : filterPrograms().length > 0;
  const engines = ["nftables", ...(offers.ipsec ? ["strongSwan"] : []), ...(offers.wireguard ? ["wireguard"] : [])];
  return {
    router,
    kind: "host",
    plug: null,
    runFolder,
    offers,
    detail: `host: ${engines.join(", ")}${hasFilter === true ? "" : ", without a filter of system calls"}`,
    lines: describeNetworks({
      capabilities,
      hasIpsec: offers.ipsec,
      wireguard: holder,
      hasPrivateRoots,
      hasFilter,
      rights,
    }),
  };
}

/**
 * Adapts the limits to the host's connection table. One network gets at most a quarter of it, one server a quarter of that. Ended
 * connections count for the network only, so a server can use up to three times its limit and still leaves space for its neighbours.
 */
function within({ network, server, packets }: Limits): Limits {
  const table = "/proc/sys/net/netfilter/nf_conntrack_max";
  // 0: without limit.
  const rows = (existsSync(table) && Number(readFileSync(table, "utf8"))) || Number.POSITIVE_INFINITY;
  const perNetwork = Math.floor(Math.min(network, Math.max(rows / 4, 100)));
  return { network: perNetwork, server: Math.min(server, Math.ceil(perNetwork / 4)), packets };
}
