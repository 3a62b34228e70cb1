/**
 * How a network changes: a new generation for what packets obey, the request to apply it and the event belong together, so only this
 * module raises a generation. Beside it stands the event of a change that packets do not obey.
 */
import { append } from "../engine/event.ts";
import type { Reconciler } from "../engine/flow.ts";
import { type ReconcileRequest, requestReconcile } from "../engine/task.ts";
import type { Tx } from "../store/db.ts";
import { readAggregate } from "./aggregate.ts";
import { showForEvent } from "./model/show.ts";
import * as table from "./table.ts";

/** Who changes the network, which decides who publishes the event. */
export type Origin =
  /** A request. Its transaction publishes the event, which names the caller's token, and writes the audit. */
  | { readonly by: "request" }
  /** A flow, a reconciler or the start of the service. The event is published here; `before` is the row before, where its firewall changed. */
  | { readonly by: "service"; readonly now: number; readonly before?: table.NetworkRow };

export interface Raised {
  readonly network: table.NetworkRow;
  /** To wait for until packets obey. */
  readonly task: ReconcileRequest;
}

/** The generation that the next change gets. */
export const nextGeneration = ({ generation }: Pick<table.NetworkRow, "generation">): number => generation + 1;

/** Stores what packets obey from now on, in `fields` or in other tables already, and has it applied. The caller holds `lockNetwork`. */
export async function raiseGeneration(
  tx: Tx,
  apply: Reconciler,
  row: table.NetworkRow,
  fields: Partial<table.NetworkRow>,
  origin: Origin,
): Promise<Raised> {
  const change = { ...fields, generation: nextGeneration(row) };
  await table.updateNetwork(tx, row.id, change);
  const network = { ...row, ...change };
  const task = await requestReconcile(tx, apply, row.id);
  if (origin.by === "service") await tell(tx, network, "changed", origin.now, origin.before);
  return { network, task };
}

/**
 * Raises the generation above one that the router has already: the database is an older one that was brought back. Only for the
 * reconciler, which applies it at once and publishes that it is applied. The caller holds `lockNetwork`.
 */
export async function raiseAbove(tx: Tx, row: table.NetworkRow, applied: number): Promise<void> {
  if (row.generation > applied) return;
  await table.updateNetwork(tx, row.id, { generation: nextGeneration({ generation: applied }) });
}

/** Tells of a network as `row` has it now; `before` is what it was where its firewall changed. Nobody hears of shared ones, since they are nobody's. */
export async function tell(
  tx: Tx,
  row: table.NetworkRow,
  what: "changed" | "applied" | "limited",
  now: number,
  before?: table.NetworkRow,
): Promise<void> {
  // Not read as a whole for nothing: all servers without a network of their own are in it.
  if (row.project_id === null) return;
  const whole = await readAggregate(tx, row);
  if (whole === undefined) return;
  const { resource, data } = showForEvent(whole, before ?? whole.network);
  const type = `${resource}.${resource === "network" ? "changed" : what}`;
  await append(tx, [{ type, date: now, project: row.project_id, resource, id: row.id, data: JSON.stringify(data) }]);
}
