/** Networks as a whole: their reconcilers, their routes, and what the service does with them at its start. */

import { firewallLimits } from "@brume/api/firewall.ts";
import type { Range } from "../base/address.ts";
import type { Clock } from "../base/clock.ts";
import { type ClockStep, dueBefore } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Sealer } from "../base/secret.ts";
import type { Router, Translated } from "../drivers/router/interface.ts";
import type { Reconciler } from "../engine/flow.ts";
import { type Ended, requestReconcile } from "../engine/task.ts";
import type { Store, Tx } from "../store/db.ts";
import { type NetworkAggregate, specsOf } from "./aggregate.ts";
import type { NetworkContext } from "./context.ts";
import { driftReconciler } from "./drift.ts";
import { firewallRoutes } from "./firewallroutes.ts";
import { ensureIpv6 } from "./ipv6.ts";
import { type NetworkEnvironment, renderNetworkSpec } from "./model/networkspec.ts";
import { findOutside } from "./model/outside.ts";
import { privateRoutes } from "./privateroutes.ts";
import { publicRoutes } from "./publicroutes.ts";
import { confirmReconciler, networkReconciler, rest } from "./reconciler.ts";
import { ensureShared } from "./shared.ts";
import { createNetworkStatusCache, type NetworkStatusCache } from "./statuscache.ts";
import * as table from "./table.ts";
import { vpnRoutes } from "./vpnroutes.ts";

/** What the operator says of networks. */
export interface NetworkSettings extends NetworkEnvironment {
  readonly locations: readonly string[];
  readonly publicPools: readonly Range[];
  /** What is translated of networks that the world does not route. */
  readonly nat: Translated;
  /** The IPv4 address under which the world sees this machine; null: its own. */
  readonly publicAddress: string | null;
  /** UDP port of the first edge with WireGuard; each has one of its own. */
  readonly wireguardPort: number;
  readonly publicPool6: Range | null;
  /** One for each location. */
  readonly sharedBlocks: readonly Range[];
  /** What the router is, for people. */
  readonly engines: string;
  /** Which tunnels the router can make. */
  readonly offers: { readonly ipsec: boolean; readonly wireguard: boolean };
}

export interface NetworkOptions {
  readonly store: Store;
  readonly router: Router;
  readonly clock: Clock;
  readonly log: Log;
  readonly sealer: Sealer;
  readonly random: (bytes: number) => Uint8Array;
  readonly ended: Ended;
  readonly settings: NetworkSettings;
}

export function createNetworks(options: NetworkOptions) {
  const { store, router, clock, log, sealer, random, ended, settings } = options;
  const live: NetworkStatusCache = createNetworkStatusCache(router);
  const render = (whole: NetworkAggregate) => {
    const { network, links } = whole;
    const privateKey = network.wireguard === null ? null : sealer.open(network.wireguard);
    return renderNetworkSpec(network, links, specsOf(whole, sealer), privateKey, settings);
  };
  const outside = { ...settings, pools: [...settings.publicPools, ...settings.sharedBlocks] };
  const locate = (network: table.NetworkRow, tunnels: readonly Pick<table.TunnelRow, "spec">[]) =>
    findOutside(network, tunnels, outside, router.sourceTo);
  const apply = networkReconciler({ store, clock, router, render, locate });
  const confirm = confirmReconciler({ store, clock, apply });
  const watch = driftReconciler({ store, clock, log, router, live, apply, nat: settings.nat });
  const { locations, publicPools, publicPool6, sharedBlocks, offers } = settings;
  const pools = { public: publicPools, public6: publicPool6 };
  const tools: NetworkContext = {
    store,
    clock,
    sealer,
    live,
    locations,
    pools,
    offers,
    random,
    render,
    locate,
    nat: settings.nat,
    wireguardPort: settings.wireguardPort,
    apply,
    confirm,
    ended,
  };

  return {
    live,
    /** Applies one network; nudged by whoever changes its links. */
    apply,
    reconcilers: [apply, confirm, watch] satisfies readonly Reconciler[],
    handlers: { ...publicRoutes(tools), ...firewallRoutes(tools), ...vpnRoutes(tools), ...privateRoutes(tools) },
    /** The clock was set. */
    moveTimes,
    /**
     * Makes what every installation has, and has each network looked at: what the machine kept going while no service ran, tunnels
     * above all, is known to the router only once it was applied.
     */
    async begin() {
      await store.write((tx) => bringBackTimes(tx, clock.now(), rest));
      await ensureShared({ store, log, locations, blocks: sharedBlocks, publicPools, apply }, clock.now());
      await ensureIpv6({ store, log, publicPool6, apply }, clock.now());
      await store.write(async (tx) => {
        for (const { id } of await table.listAllNetworks(tx)) await requestReconcile(tx, apply, id);
      });
    },
  };
}

/** The clock was set: what was to be confirmed in a minute still is. */
export async function moveTimes(tx: Tx, step: ClockStep): Promise<void> {
  const { from, to } = dueBefore(step);
  await tx
    .updateTable("network")
    .set((row) => ({ confirm_by: row("confirm_by", "+", step.by) }))
    .where("confirm_by", ">", from)
    .where("confirm_by", "<", to)
    .execute();
  await tx
    .updateTable("retired_block")
    .set((row) => ({ until: row("until", "+", step.by) }))
    .where("until", ">", from)
    .where("until", "<", to)
    .execute();
}

/** Brings back what lies beyond the longest interval. `rest`: milliseconds in which a block is not given out again. */
export async function bringBackTimes(tx: Tx, now: number, rest: number): Promise<void> {
  const latest = now + firewallLimits.confirmSeconds.maximum * 1000;
  await tx.updateTable("network").set({ confirm_by: latest }).where("confirm_by", ">", latest).execute();
  await tx
    .updateTable("retired_block")
    .set({ until: now + rest })
    .where("until", ">", now + rest)
    .execute();
}
