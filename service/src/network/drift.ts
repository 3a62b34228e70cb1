/**
 * Looks at all networks at once every few seconds: what was changed behind our back is told and repaired, what no row owns is
 * taken away, and tunnels that come up or go down make events.
 */
import { type Clock, since } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { NetworkStatus, Router, Translated, TunnelStatus } from "../drivers/router/interface.ts";
import { append } from "../engine/event.ts";
import { defineReconciler, type Reconciler } from "../engine/flow.ts";
import { requestReconcile } from "../engine/task.ts";
import type { Store, Tx } from "../store/db.ts";
import { tell } from "./change.ts";
import { showStatus } from "./model/vpn/status.ts";
import { readTunnel } from "./model/vpn/tunnel.ts";
import { recordError } from "./reconciler.ts";
import type { NetworkStatusCache } from "./statuscache.ts";
import * as table from "./table.ts";
import { readReach } from "./tunnelreach.ts";

export interface WatchOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly router: Router;
  readonly live: NetworkStatusCache;
  /** Applies one network. */
  readonly apply: Reconciler;
  readonly nat: Translated;
}

/** Milliseconds between looks. */
const period = 5000;
/** Milliseconds in which a limit that is reached is told of once. */
const crowdPause = 600_000;

export function driftReconciler({ store, clock, log, router, live, apply, nat }: WatchOptions): Reconciler {
  /** `before` was read before the look, so what is in it and not on the machine has been lost. */
  async function compare(before: readonly table.NetworkRow[], networks: readonly NetworkStatus[]): Promise<void> {
    const statusOf = new Map(networks.map((status) => [status.id, status]));
    for (const row of before) {
      const status = statusOf.get(row.id);
      statusOf.delete(row.id);
      if (row.state === "Deleting" || row.applied === 0) continue;
      const lost = lossOf(row, status);
      if (lost !== null) await store.write((tx) => repair(tx, row, status, lost));
    }
    for (const id of statusOf.keys()) {
      // Made since the rows were read?
      if ((await table.findNetwork(store.read, id)) !== undefined) continue;
      log("warn", "A network that nothing wishes is on the machine and is removed.", { network: id });
      await router.remove(id);
    }
  }

  async function repair(tx: Tx, { id, applied }: table.NetworkRow, status: NetworkStatus | undefined, lost: string) {
    await table.lockNetwork(tx, id);
    const row = await table.findNetwork(tx, id);
    // What changed meanwhile, or is just being changed, is not lost: it is applied anyway, and half done while it is.
    if (row === undefined || row.state === "Deleting" || row.applied !== applied || row.generation !== applied) return;
    // Its reconciler tries already, and has said what hinders it.
    if (row.error !== null) return;
    await table.updateNetwork(tx, id, { applied: Math.min(applied, status?.generation ?? 0) });
    await recordError(tx, id, `${lost} Brume did not do that and repairs it.`, clock.now());
    await requestReconcile(tx, apply, id);
  }

  /** Of each network how many connections were refused at the last look, and when that was told. */
  const crowds = new Map<number, { readonly packets: number; readonly told: number }>();

  /** A network whose limit of connections is reached is told of once, and again when it still is after a while. */
  async function noteCrowds(networks: readonly NetworkStatus[]): Promise<void> {
    for (const { id, overLimit } of networks) {
      const before = crowds.get(id);
      const now = clock.now();
      const isDue = before !== undefined && overLimit.packets > before.packets && since(before.told, now) >= crowdPause;
      crowds.set(id, { packets: overLimit.packets, told: isDue ? now : (before?.told ?? now - crowdPause) });
      if (!isDue) continue;
      log("warn", "A network reached its limit of connections; further ones are refused.", { network: id });
      await store.write(async (tx) => {
        const row = await table.findNetwork(tx, id);
        if (row !== undefined && row.state !== "Deleting" && row.kind === "public") await tell(tx, row, "limited", now);
      });
    }
    for (const id of crowds.keys()) if (!networks.some((network) => network.id === id)) crowds.delete(id);
  }

  async function noteTunnels(networks: readonly NetworkStatus[]): Promise<void> {
    const rows = new Map((await table.listAllTunnels(store.read)).map((row) => [row.id, row]));
    for (const network of networks)
      for (const status of network.tunnels) {
        const row = rows.get(status.id);
        const isUp = status.state === "up";
        if (row === undefined || status.state === "unknown" || (row.is_up === 1) === isUp) continue;
        await store.write((tx) => noteTunnel(tx, status, isUp, network.occupiedPorts));
      }
  }

  async function noteTunnel(tx: Tx, status: TunnelStatus, isUp: boolean, held: readonly number[]): Promise<void> {
    const row = await table.findTunnel(tx, status.id);
    if (row === undefined || (row.is_up === 1) === isUp) return;
    const network = await table.findNetwork(tx, row.network_id);
    if (network === undefined || network.project_id === null) return;
    await table.updateTunnel(tx, row.id, { is_up: Number(isUp) });
    const tunnel = readTunnel(row);
    const reach = await readReach(tx, network, [tunnel], { nat, held });
    await append(tx, [
      {
        type: isUp ? "tunnel.up" : "tunnel.down",
        date: clock.now(),
        project: network.project_id,
        resource: "tunnel",
        id: row.id,
        parent: network.id,
        data: JSON.stringify(showStatus(tunnel, status, reach(tunnel))),
      },
    ]);
  }

  return defineReconciler({
    name: "network.watch",
    subject: "networks",
    single: true,
    period,
    pause: { first: period, factor: 1, most: period },
    async run() {
      const before = await table.listAllNetworks(store.read);
      const { ready, networks } = await live.look();
      if (!ready) return;
      await compare(before, networks);
      await noteTunnels(networks);
      await noteCrowds(networks);
    },
  });
}

/** What of the network is not there any more, as a sentence; null: nothing. */
function lossOf(row: table.NetworkRow, status: NetworkStatus | undefined): string | null {
  if (status === undefined) return `Network ${row.id} is not on the machine any more.`;
  if (!status.complete) return `Of network ${row.id} is missing: ${status.missing.join(", ")}.`;
  if (status.generation < row.applied)
    return `Network ${row.id} stands at generation ${status.generation} instead of ${row.applied}.`;
  return null;
}
