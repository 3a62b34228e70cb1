/**
 * The drift check: a reconciler that observes all networks on the host every 5 s. It reports drift and requests its repair, removes
 * networks that the database does not contain, and publishes events for tunnels and for reached connection limits.
 */
import { type Clock, since } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { readPages, turn } from "../base/turn.ts";
import type { NetworkStatus, Router, Translated, TunnelStatus } from "../drivers/router/interface.ts";
import { append } from "../engine/event.ts";
import { defineReconciler, type Reconciler } from "../engine/flow.ts";
import { requestReconcile } from "../engine/task.ts";
import type { Store, Tx } from "../store/db.ts";
import { listNetworkStates } from "./aggregate.ts";
import { emitNetworkEvent } from "./change.ts";
import { showStatus } from "./model/vpn/status.ts";
import { readTunnel } from "./model/vpn/tunnel.ts";
import type { NetworkReconciler } from "./portchanges.ts";
import { recordError } from "./reconciler.ts";
import type { NetworkStatusCache } from "./statuscache.ts";
import * as table from "./table.ts";
import { readReach } from "./tunnelreach.ts";

export interface DriftOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly router: Router;
  readonly live: NetworkStatusCache;
  /** The reconciler that applies one network. */
  readonly apply: NetworkReconciler;
  readonly nat: Translated;
}

/** Milliseconds between two checks. */
const period = 5000;
/** Milliseconds between two reports of a connection limit that stays reached. */
const limitReportPause = 600_000;

/** Creates the reconciler of the drift check. */
export function driftReconciler({ store, clock, log, router, live, apply, nat }: DriftOptions): Reconciler {
  /** Compares rows with the host. `rows` were read before the host was observed, so any difference is drift. */
  async function compare(rows: readonly table.NetworkStateRow[], networks: readonly NetworkStatus[]): Promise<void> {
    const statusOf = new Map(networks.map((status) => [status.id, status]));
    for (const row of rows) {
      if (turn.isOver()) await turn.next();
      const status = statusOf.get(row.id);
      statusOf.delete(row.id);
      if (row.state === "Deleting" || row.applied === 0) continue;
      // A start applies each network: until then, a difference is no drift.
      if (!apply.changes.isApplied(row.id)) continue;
      const drift = describeDrift(row, status);
      if (drift !== null) await store.write((tx) => repair(tx, row, status, drift));
    }
    for (const id of statusOf.keys()) {
      // It may have been created after the rows were read.
      if ((await table.findNetwork(store.read, id)) !== undefined) continue;
      log("warn", `Removing orphaned network ${id}: the database does not contain it.`, { network: id });
      // One that cannot be removed must not end the check of all others. The next check tries again.
      await router
        .remove(id)
        .catch((error: unknown) => log("warn", `Could not remove orphaned network ${id}.`, { network: id, error }));
    }
  }

  async function repair(
    tx: Tx,
    { id, applied }: table.NetworkStateRow,
    status: NetworkStatus | undefined,
    drift: string,
  ) {
    await table.lockNetwork(tx, id);
    const row = await table.findNetwork(tx, id);
    // A network that has changed since, or is being applied now, is not drift: the reconciler is working on it.
    if (row === undefined || row.state === "Deleting" || row.applied !== applied || row.generation !== applied) return;
    // The reconciler retries already and has reported the error.
    if (row.error !== null) return;
    await table.updateNetwork(tx, id, { applied: Math.min(applied, status?.generation ?? 0) });
    await recordError(tx, id, `${drift} Repairing.`, clock.now());
    apply.changes.forget(id);
    await requestReconcile(tx, apply, id);
  }

  /** By network: packets refused by the connection limit at the last check, and the time (ms) of the last report. */
  const refusals = new Map<number, { readonly packets: number; readonly reported: number }>();

  /** Reports networks whose connection limit is reached: once, and again after `limitReportPause` if it still is. */
  async function noteConnectionLimits(networks: readonly NetworkStatus[]): Promise<void> {
    for (const { id, overLimit } of networks) {
      if (turn.isOver()) await turn.next();
      const before = refusals.get(id);
      const now = clock.now();
      const isDue =
        before !== undefined && overLimit.packets > before.packets && since(before.reported, now) >= limitReportPause;
      const reported = isDue ? now : (before?.reported ?? now - limitReportPause);
      refusals.set(id, { packets: overLimit.packets, reported });
      if (!isDue) continue;
      log("warn", `Network ${id} reached its connection limit; new connections are refused.`, { network: id });
      await store.write(async (tx) => {
        const row = await table.findNetwork(tx, id);
        if (row !== undefined && row.state !== "Deleting" && row.kind === "public")
          await emitNetworkEvent(tx, row, "limited", now);
      });
    }
    const present = new Set(networks.map(({ id }) => id));
    for (const id of refusals.keys()) if (!present.has(id)) refusals.delete(id);
  }

  /** Publishes `tunnel.up` and `tunnel.down` for tunnels whose state differs from the stored one. */
  async function noteTunnels(networks: readonly NetworkStatus[]): Promise<void> {
    if (networks.every(({ tunnels }) => tunnels.length === 0)) return;
    const limit = table.tunnelsPerPage;
    const rows = new Map<number, { readonly is_up: number }>();
    for await (const page of readPages(limit, (after) => table.pageTunnelStates.all(store.read, { after, limit })))
      for (const row of page) rows.set(row.id, row);
    for (const network of networks) {
      if (turn.isOver()) await turn.next();
      for (const status of network.tunnels) {
        const row = rows.get(status.id);
        const isUp = status.state === "up";
        if (row === undefined || status.state === "unknown" || (row.is_up === 1) === isUp) continue;
        await store.write((tx) => noteTunnel(tx, status, isUp, network.occupiedPorts));
      }
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
      const rows = await listNetworkStates(store.read);
      const { ready, networks } = await live.observe();
      if (!ready) return;
      await compare(rows, networks);
      await noteTunnels(networks);
      await noteConnectionLimits(networks);
    },
  });
}

/** Returns how the network on the host differs from its row, as a sentence; null: it does not. */
function describeDrift(row: table.NetworkStateRow, status: NetworkStatus | undefined): string | null {
  if (status === undefined) return `Network ${row.id} is missing on the host.`;
  if (!status.complete) return `Drift in network ${row.id}: missing ${status.missing.join(", ")}.`;
  if (status.generation < row.applied)
    return `Drift in network ${row.id}: the host has generation ${status.generation}, expected ${row.applied}.`;
  return null;
}
