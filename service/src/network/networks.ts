/** Assembles the network feature: its reconcilers, its route handlers, and its work at the start of the service. */
import { firewallLimits } from "@brume/api/firewall.ts";
import type { Range } from "../base/address.ts";
import type { Clock } from "../base/clock.ts";
import { type ClockStep, dueBefore } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Sealer } from "../base/secret.ts";
import { runAtOnce, runInTurns } from "../base/turn.ts";
import type { Router, Translated } from "../drivers/router/interface.ts";
import type { Reconciler } from "../engine/flow.ts";
import { type Ended, requestReconcileOfAll } from "../engine/task.ts";
import type { Store, Tx } from "../store/db.ts";
import { recountAddresses } from "./addresstable.ts";
import { type NetworkAggregate, specsOf } from "./aggregate.ts";
import type { NetworkContext } from "./context.ts";
import { driftReconciler } from "./drift.ts";
import { firewallRoutes } from "./firewallroutes.ts";
import { recountFree } from "./freetable.ts";
import { ensureIpv6 } from "./ipv6.ts";
import { createFirewallParser } from "./model/firewall/firewall.ts";
import { areasOf } from "./model/freeblocks.ts";
import { type NetworkEnvironment, renderInTurns } from "./model/networkspec.ts";
import { findOutside, type Locate } from "./model/outside.ts";
import { privateRoutes } from "./privateroutes.ts";
import { publicRoutes } from "./publicroutes.ts";
import { blockQuarantine, confirmReconciler, networkReconciler } from "./reconciler.ts";
import { ensureShared } from "./shared.ts";
import { createNetworkStatusCache, type NetworkStatusCache } from "./statuscache.ts";
import { vpnRoutes } from "./vpnroutes.ts";

/** Settings of the operator for networks. */
export interface NetworkSettings extends NetworkEnvironment {
  readonly locations: readonly string[];
  readonly publicPools: readonly Range[];
  /** NAT of networks with private addresses. */
  readonly nat: Translated;
  /** Public IPv4 address of this host, if a router before it translates; null: its own. */
  readonly publicAddress: string | null;
  /** UDP port of the first edge with WireGuard; each further edge has another port. */
  readonly wireguardPort: number;
  readonly publicPool6: Range | null;
  /** Blocks of the shared networks, one for each location. */
  readonly sharedBlocks: readonly Range[];
  /** Description of the router driver, for people. */
  readonly engines: string;
  /** Types of tunnels that the router driver supports. */
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

/** Creates the network feature for the composition root. */
export function createNetworks(options: NetworkOptions) {
  const { store, router, clock, log, sealer, random, ended, settings } = options;
  // A change of thousands of rules concerns two firewalls, in its request and then when it is applied.
  const firewalls = createFirewallParser(2);
  const live: NetworkStatusCache = createNetworkStatusCache(router);
  const renderSpec = (aggregate: NetworkAggregate) => {
    const { network, links } = aggregate;
    const privateKey = network.wireguard === null ? null : sealer.open(network.wireguard);
    return renderInTurns(network, links, specsOf(aggregate, sealer), privateKey, settings, firewalls);
  };
  const render = (aggregate: NetworkAggregate) => runAtOnce(renderSpec(aggregate));
  const outside = { ...settings, pools: [...settings.publicPools, ...settings.sharedBlocks] };
  const locate: Locate = (network, peers) => findOutside(network, peers, outside, router.sourceTo);
  const apply = networkReconciler({
    store,
    clock,
    router,
    render: (aggregate) => runInTurns(renderSpec(aggregate)),
    locate,
    firewalls,
  });
  const confirm = confirmReconciler({ store, clock, apply });
  const drift = driftReconciler({ store, clock, log, router, live, apply, nat: settings.nat });
  const { locations, publicPools, publicPool6, sharedBlocks, offers } = settings;
  const areas = areasOf(publicPools, publicPool6);
  const context: NetworkContext = {
    store,
    clock,
    sealer,
    live,
    locations,
    areas,
    offers,
    random,
    render,
    firewalls,
    locate,
    nat: settings.nat,
    wireguardPort: settings.wireguardPort,
    apply,
    confirm,
    ended,
  };

  /** Requests a reconcile of every network. A router driver that has restarted learns only by this of tunnels that stayed up. */
  const applyAll = (): Promise<void> =>
    store.write((tx) => requestReconcileOfAll(tx, apply, tx.selectFrom("network").select("id")));

  return {
    live,
    /** The reconciler that applies one network; request it after a change of the network's links. */
    apply,
    reconcilers: [apply, confirm, drift] satisfies readonly Reconciler[],
    handlers: {
      ...publicRoutes(context),
      ...firewallRoutes(context),
      ...vpnRoutes(context),
      ...privateRoutes(context),
    },
    /** Called when the system clock was set. */
    moveTimes: shiftTimes,
    /** Counts taken and free addresses again. To be called before the first request. */
    async recount() {
      await store.write(recountAddresses);
      await store.write((tx) => recountFree(tx, areas));
    },
    /** Runs once at the start of the service: creates the shared networks, assigns missing /64s, and applies all networks. */
    async begin() {
      await store.write((tx) => clampTimes(tx, clock.now(), blockQuarantine));
      await ensureShared({ store, log, locations, blocks: sharedBlocks, areas, apply }, clock.now());
      await ensureIpv6({ store, log, areas, apply }, clock.now());
      await applyAll();
    },
    applyAll,
  };
}

/** Shifts stored deadlines by the step of the system clock, so that the remaining time stays the same. */
async function shiftTimes(tx: Tx, step: ClockStep): Promise<void> {
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

/** Limits stored deadlines to the longest possible ones, in case the clock was ahead. `quarantine`: milliseconds, of retired blocks. */
async function clampTimes(tx: Tx, now: number, quarantine: number): Promise<void> {
  const latest = now + firewallLimits.confirmSeconds.maximum * 1000;
  await tx.updateTable("network").set({ confirm_by: latest }).where("confirm_by", ">", latest).execute();
  await tx
    .updateTable("retired_block")
    .set({ until: now + quarantine })
    .where("until", ">", now + quarantine)
    .execute();
}
