/** Dependencies and functions shared by the route handlers of networks: find, check, change and show a network. */
import { isDeepStrictEqual } from "node:util";
import type { Quota } from "@brume/api/account.ts";
import type { PublicNetwork } from "@brume/api/network.ts";
import { grants } from "@brume/api/operation.ts";
import { requireQuota } from "../account/model/rules.ts";
import { findProject } from "../account/table.ts";
import type { Clock } from "../base/clock.ts";
import { ApiError, fieldError, invalidFields } from "../base/error.ts";
import type { Sealer } from "../base/secret.ts";
import type { NetworkSpec, NetworkStatus, Translated } from "../drivers/router/interface.ts";
import type { Reconciler } from "../engine/flow.ts";
import { type Ended, endedWithin, type ReconcileRequest } from "../engine/task.ts";
import type { Caller, ChangeResult, Request, ResourceChange } from "../http/handler.ts";
import { type Reader, rest, type Store, type Tx } from "../store/db.ts";
import { type NetworkAggregate, readAggregate, specsOf } from "./aggregate.ts";
import { raiseGeneration } from "./change.ts";
import { createFirewallParser, type FirewallParser, showFirewall } from "./model/firewall/firewall.ts";
import type { Areas } from "./model/freeblocks.ts";
import type { Locate } from "./model/outside.ts";
import { showForEvent, showPublicNetwork, showWith } from "./model/show.ts";
import type { NetworkReconciler } from "./portchanges.ts";
import type { NetworkStatusCache } from "./statuscache.ts";
import * as table from "./table.ts";

/** Dependencies of the route handlers. */
export interface NetworkContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly live: NetworkStatusCache;
  /** Titles of the locations; the first is the default. */
  readonly locations: readonly string[];
  /** The pools of public IPv4 addresses, and of IPv6. */
  readonly areas: Areas;
  /** Types of tunnels that the router driver supports. */
  readonly offers: { readonly ipsec: boolean; readonly wireguard: boolean };
  /** Returns random bytes for keys. */
  readonly random: (bytes: number) => Uint8Array;
  /** Renders the complete spec of a network for the router driver. */
  readonly render: (aggregate: NetworkAggregate) => NetworkSpec;
  /** Parses firewalls, and keeps those of the latest change. */
  readonly firewalls: FirewallParser;
  /** Finds the addresses where these peers reach the edge; see `findOutside`. It calls the driver, so no transaction may await it. */
  readonly locate: Locate;
  /** NAT of networks with private addresses. */
  readonly nat: Translated;
  /** UDP port of the first edge with WireGuard. */
  readonly wireguardPort: number;
  /** The reconciler that applies one network. */
  readonly apply: NetworkReconciler;
  /** The reconciler that restores the previous firewall if a new one is not confirmed in time. */
  readonly confirm: Reconciler;
  readonly ended: Ended;
}

/** Returns the entity tag of a public network. */
export const publicTag = (row: Pick<table.NetworkRow, "id" | "version">): string =>
  `publicnetwork-${row.id}-${row.version}`;
/** Returns the entity tag of a private network. */
export const privateTag = (row: Pick<table.NetworkRow, "id" | "version">): string => `network-${row.id}-${row.version}`;

/** Returns a public network of the caller's project. Throws `public_network_not_found`. */
export async function getPublic(db: Reader, caller: Caller, id: number): Promise<table.NetworkRow> {
  const row = await table.findNetworkOf(db, caller.projectId, "public", id);
  if (row === undefined)
    throw new ApiError("public_network_not_found", `Public network ${id} does not exist in this project.`);
  return row;
}

/** Returns the aggregate of a network. Throws `public_network_not_found` if it was deleted after `row` was read. */
export async function getAggregate(db: Reader, row: table.NetworkRow): Promise<NetworkAggregate> {
  const aggregate = await readAggregate(db, row);
  if (aggregate === undefined)
    throw new ApiError("public_network_not_found", `Public network ${row.id} was deleted during the request.`);
  return aggregate;
}

/** Returns the sealer if the caller may see shared keys, which needs the scope `network:write`; else null. */
export const sealerFor = ({ sealer }: NetworkContext, caller: Caller): Sealer | null =>
  grants(caller.scopes, "network:write") ? sealer : null;

/** Returns the counters of the network's firewall rules; null: it has no rules, or the router driver does not respond. */
export async function countsOf(
  { live, firewalls }: NetworkContext,
  { network }: NetworkAggregate,
): Promise<Pick<NetworkStatus, "rules"> | null> {
  if (firewalls(network).Rules.length === 0) return null;
  const status = await live.of(network.id);
  return typeof status === "string" ? null : status;
}

/** Returns the network as a response body for this caller, with counters. */
export async function showNow(
  context: NetworkContext,
  caller: Caller,
  aggregate: NetworkAggregate,
  live = countsOf(context, aggregate),
): Promise<PublicNetwork> {
  return showPublicNetwork(aggregate, { live: await live, secrets: sealerFor(context, caller) }, context.firewalls);
}

/** Characters of a stored firewall whose text in a response takes milliseconds. */
const longFirewall = 65_536;

/** Counters of rules that were just applied: all 0, so the router driver need not be queried. */
const uncounted = Promise.resolve({ rules: [] });

/** Resolves when the reconcile request has ended, or after `ms` milliseconds. */
export const waitFor = ({ ended }: NetworkContext, requested: ReconcileRequest, ms: number): Promise<void> =>
  endedWithin(ended, [requested], ms);

/**
 * Throws `quota_exceeded` if `used` and `wanted` exceed the quota of the caller's project. If the quota counts objects of the whole
 * project, the caller holds `lockProject`.
 */
export async function requireProjectQuota(
  db: Reader,
  caller: Caller,
  quota: Quota,
  used: number,
  wanted: number,
): Promise<void> {
  const project = await findProject.first(db, { id: caller.projectId });
  if (project === undefined) throw new ApiError("token_invalid", "The project of this token was deleted.");
  requireQuota(project.quotas, quota, used, wanted);
}

/** Fields that do not affect packets: changing them raises no generation. */
const passiveFields: ReadonlySet<string> = new Set(["labels", "fallback", "confirm_by", "outside"]);

/** Changes a network in `tx`: writes other tables itself and returns the changed fields of the row; null: nothing changes. */
export type NetworkChange = (
  aggregate: NetworkAggregate,
  tx: Tx,
  parse: FirewallParser,
) => Promise<Partial<table.NetworkRow> | null>;

/**
 * Changes a public network with `change` and stores it with a new version. If the change affects packets, raises the generation and
 * requests its reconcile; `refresh` then waits until it is applied. Throws `action_not_allowed` while the network is being deleted.
 */
export async function changePublic(
  context: NetworkContext,
  request: Pick<Request, "caller" | "expect" | "dryRun"> & { readonly params: { readonly id: number } },
  tx: Tx,
  change: NetworkChange,
): Promise<ChangeResult<PublicNetwork>> {
  const { caller, params } = request;
  await table.lockNetwork(tx, params.id);
  const row = await getPublic(tx, caller, params.id);
  request.expect(publicTag(row));
  if (row.state === "Deleting")
    throw new ApiError("action_not_allowed", `Public network ${row.id} is being deleted and cannot be changed.`);
  const before = await getAggregate(tx, row);
  const secrets = sealerFor(context, caller);
  const parse = context.firewalls;
  const wanted = await change(before, tx, parse);
  // A firewall of thousands of rules is parsed, stored and shown in turns of their own.
  await rest(tx);
  const isNew = wanted?.firewall !== undefined && wanted.firewall !== before.network.firewall;
  let expected: ExpectedFirewall | undefined;
  const showUpdated = async (ms: number): Promise<PublicNetwork | undefined> => {
    // A request that does not wait for the host does not wait for its counters.
    if (ms <= 0) return undefined;
    const now = await readAggregate(context.store.read, await table.findNetwork(context.store.read, row.id));
    if (now === undefined) return undefined;
    if (expected?.isOf(now.network) === true) return showWith(expected.firewall, now, { live: null, secrets });
    return showNow(context, caller, now, isNew ? uncounted : undefined);
  };
  if (wanted === null)
    return {
      answer: showPublicNetwork(before, { live: null, secrets }, parse),
      tag: publicTag(row),
      changes: [],
      refresh: showUpdated,
    };

  const tunnels = await table.listTunnels(tx, row.id);
  const affectsPackets =
    Object.keys(wanted).some((key) => !passiveFields.has(key)) ||
    !isDeepStrictEqual(specsOf({ ...before, tunnels }, context.sealer), specsOf(before, context.sealer));
  const fields = { ...wanted, version: row.version + 1 };
  const raised = affectsPackets
    ? await raiseGeneration(tx, context.apply, before.network, fields, { by: "request" })
    : null;
  if (raised === null) await table.updateNetwork(tx, row.id, fields);
  await rest(tx);
  const stored = { ...before, network: raised?.network ?? { ...before.network, ...fields }, tunnels };
  const after = request.dryRun ? withoutNewIds(before, stored) : stored;
  parse(before.network);
  await rest(tx);
  const changes = [networkChanged("publicnetwork.changed", before, after, parse)];
  await rest(tx);
  if (isNew && raised !== null && !request.dryRun) expected = expectFirewall(after.network, parse);
  return {
    answer: showPublicNetwork(after, { live: null, secrets }, parse),
    tag: publicTag(after.network),
    changes,
    async refresh(ms) {
      if (raised !== null) await waitFor(context, raised.task, ms);
      return showUpdated(ms);
    },
    expected: expected?.firewall,
  };
}

/** The firewall of a response after its rules are applied. */
interface ExpectedFirewall {
  readonly firewall: PublicNetwork["Firewall"];
  /** Returns whether the network still has this firewall, and has applied it. */
  isOf(network: table.NetworkRow): boolean;
}

/** Returns the firewall that the network has after its generation is applied: all counters are 0. Undefined: it has few rules. */
function expectFirewall(network: table.NetworkRow, parse: FirewallParser): ExpectedFirewall | undefined {
  if (network.firewall.length < longFirewall) return undefined;
  return {
    firewall: showFirewall(parse(network), { confirmBy: network.confirm_by, counts: [] }),
    isOf: ({ applied, generation, firewall, confirm_by }) =>
      applied === generation && confirm_by === network.confirm_by && firewall === network.firewall,
  };
}

/** Returns the aggregate as a dry run shows it: new tunnels have the id 0. */
function withoutNewIds(before: NetworkAggregate, after: NetworkAggregate): NetworkAggregate {
  const known = new Set(before.tunnels.map(({ id }) => id));
  return { ...after, tunnels: after.tunnels.map((row) => (known.has(row.id) ? row : { ...row, id: 0 })) };
}

/** Returns the change for the event and the audit log, without secrets. `before` null: created; `after` null: deleted. */
export function networkChanged(
  type: ResourceChange["type"],
  before: NetworkAggregate | null,
  after: NetworkAggregate | null,
  parse = createFirewallParser(),
): ResourceChange {
  const id = (after ?? before)?.network.id ?? 0;
  const show = (aggregate: NetworkAggregate | null, other: NetworkAggregate | null): unknown =>
    aggregate === null ? null : showForEvent(aggregate, other?.network ?? null, parse).data;
  return { type, id, parent: null, before: show(before, after), after: show(after, before) };
}

/** Returns the location with this title in any letter case, or the first if `wanted` is absent or empty. Throws `validation_failed`. */
export function chooseLocation(locations: readonly string[], wanted: string | undefined): string {
  const found = wanted ? locations.find((name) => name.toLowerCase() === wanted.toLowerCase()) : locations[0];
  if (found !== undefined) return found;
  const detail = `DCLocation must be one of ${locations.join(", ")}, not ${JSON.stringify(wanted)}.`;
  throw invalidFields([fieldError("/DCLocation", "unknown_reference", detail)]);
}
