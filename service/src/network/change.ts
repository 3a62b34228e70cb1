/**
 * Changes of a network that affect packets: the new generation, the request to apply it and the event belong together, so only this
 * module raises a generation. It also publishes the events of all other changes of a network by the service.
 */
import { append } from "../engine/event.ts";
import { type ReconcileRequest, requestReconcile, sendReconcile } from "../engine/task.ts";
import type { Tx } from "../store/db.ts";
import { readAggregate } from "./aggregate.ts";
import type { FirewallParser } from "./model/firewall/firewall.ts";
import { showForEvent } from "./model/show.ts";
import type { NetworkReconciler } from "./portchanges.ts";
import * as table from "./table.ts";

/** Who changes the network; it decides who publishes the event. */
export type Origin =
  /** An API request: its transaction publishes the event, with the caller's token, and writes the audit log. */
  | { readonly by: "request" }
  /** A flow, a reconciler or the start of the service: the event is published here. `before`: the old row, if its firewall changed. */
  | { readonly by: "service"; readonly now: number; readonly before?: table.NetworkRow };

/** Result of `raiseGeneration`. */
export interface RaisedGeneration {
  /** The row with the new generation. */
  readonly network: table.NetworkRow;
  /** The reconcile request; when it has ended, the generation is applied. */
  readonly task: ReconcileRequest;
}

/** Returns the generation of the next change. */
export const nextGeneration = ({ generation }: Pick<table.NetworkRow, "generation">): number => generation + 1;

/**
 * Stores `fields` with a new generation and requests its reconcile. Changes of links and tunnels are in their tables already.
 * `links`: the only links that differ from the generation before; null: anything may differ. The caller holds `lockNetwork`.
 */
export async function raiseGeneration(
  tx: Tx,
  apply: NetworkReconciler,
  row: table.NetworkRow,
  fields: Partial<table.NetworkRow>,
  origin: Origin,
  links: readonly number[] | null = null,
): Promise<RaisedGeneration> {
  const change = { ...fields, generation: nextGeneration(row) };
  apply.changes.note(row.id, change.generation, links);
  const [task] = await Promise.all([requestReconcile(tx, apply, row.id), table.updateNetwork(tx, row.id, change)]);
  const network = { ...row, ...change };
  if (origin.by === "service") await emitNetworkEvent(tx, network, "changed", origin.now, { before: origin.before });
  return { network, task };
}

/** As `raiseGeneration`, for a change of links by the service: for a shared network it awaits no result. Resolves to the changed row. */
export async function raiseForLinks(
  tx: Tx,
  apply: NetworkReconciler,
  row: table.NetworkRow,
  now: number,
  links: readonly number[],
): Promise<table.NetworkRow> {
  const generation = nextGeneration(row);
  apply.changes.note(row.id, generation, links);
  table.setGeneration.send(tx, { id: row.id, generation });
  sendReconcile(tx, apply, row.id);
  const network = { ...row, generation };
  await emitNetworkEvent(tx, network, "changed", now);
  return network;
}

/**
 * Raises the generation above `applied`, the one that the router has, after an older database was restored. Only for the
 * reconciler, which applies the result at once and publishes that it is applied. The caller holds `lockNetwork`.
 */
export async function raiseAbove(tx: Tx, row: table.NetworkRow, applied: number): Promise<void> {
  if (row.generation > applied) return;
  await table.updateNetwork(tx, row.id, { generation: nextGeneration({ generation: applied }) });
}

/**
 * Publishes an event with the network as in `row`; `before` is its old row, if its firewall changed. `firewalls` parses the rules. Shared
 * networks have no project, so they have no events.
 */
export async function emitNetworkEvent(
  tx: Tx,
  row: table.NetworkRow,
  kind: "changed" | "applied" | "limited",
  now: number,
  options: { readonly before?: table.NetworkRow | undefined; readonly firewalls?: FirewallParser | undefined } = {},
): Promise<void> {
  // Return before the aggregate is read: a shared network may have the links of most servers.
  if (row.project_id === null) return;
  const aggregate = await readAggregate(tx, row);
  if (aggregate === undefined) return;
  const { resource, data } = showForEvent(aggregate, options.before ?? aggregate.network, options.firewalls);
  const type = `${resource}.${resource === "network" ? "changed" : kind}`;
  await append(tx, [{ type, date: now, project: row.project_id, resource, id: row.id, data: JSON.stringify(data) }]);
}
