/** What the routes of networks share: finding, changing and settling one. */
import { isDeepStrictEqual } from "node:util";
import type { Quota } from "@brume/api/account.ts";
import type { PublicNetwork } from "@brume/api/network.ts";
import { grants } from "@brume/api/operation.ts";
import { requireQuota } from "../account/model/rules.ts";
import { findProject } from "../account/table.ts";
import type { Range } from "../base/address.ts";
import type { Clock } from "../base/clock.ts";
import { ApiError, fieldError, invalidFields } from "../base/error.ts";
import type { Sealer } from "../base/secret.ts";
import type { NetworkSpec, NetworkStatus, Translated } from "../drivers/router/interface.ts";
import type { Reconciler } from "../engine/flow.ts";
import { type Ended, endedWithin, type ReconcileRequest } from "../engine/task.ts";
import type { Caller, ChangeResult, Request, ResourceChange } from "../http/handler.ts";
import type { Reader, Store, Tx } from "../store/db.ts";
import { type NetworkAggregate, readAggregate, specsOf } from "./aggregate.ts";
import { raiseGeneration } from "./change.ts";
import { createFirewallParser, firewallOf } from "./model/firewall/firewall.ts";
import type { Locate } from "./model/outside.ts";
import { showForEvent, showPublicNetwork } from "./model/show.ts";
import type { NetworkStatusCache } from "./statuscache.ts";
import * as table from "./table.ts";

export interface NetworkContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly live: NetworkStatusCache;
  /** Titles; the first is the default. */
  readonly locations: readonly string[];
  readonly pools: { readonly public: readonly Range[]; readonly public6: Range | null };
  /** Which tunnels the router can make. */
  readonly offers: { readonly ipsec: boolean; readonly wireguard: boolean };
  /** Random bytes, of keys. */
  readonly random: (bytes: number) => Uint8Array;
  /** What the router is to make of a network. */
  readonly render: (whole: NetworkAggregate) => NetworkSpec;
  /** Where the peers of these tunnels meet the network's edge, as it is stored. */
  readonly locate: Locate;
  readonly nat: Translated;
  /** UDP port of the first edge with WireGuard. */
  readonly wireguardPort: number;
  readonly apply: Reconciler;
  /** Takes back a firewall that nobody confirms. */
  readonly confirm: Reconciler;
  readonly ended: Ended;
}

export const publicTag = (row: Pick<table.NetworkRow, "id" | "version">): string =>
  `publicnetwork-${row.id}-${row.version}`;
export const privateTag = (row: Pick<table.NetworkRow, "id" | "version">): string => `network-${row.id}-${row.version}`;

/** Throws `public_network_not_found`. */
export async function getPublic(db: Reader, caller: Caller, id: number): Promise<table.NetworkRow> {
  const row = await table.findNetworkOf(db, caller.projectId, "public", id);
  if (row === undefined)
    throw new ApiError("public_network_not_found", `There is no public network ${id} in this project.`);
  return row;
}

export async function getAggregate(db: Reader, row: table.NetworkRow): Promise<NetworkAggregate> {
  const whole = await readAggregate(db, row);
  if (whole === undefined) throw new ApiError("public_network_not_found", `Network ${row.id} was deleted just now.`);
  return whole;
}

/** Shared keys are shown to those who may change them. */
export const sealerFor = ({ sealer }: NetworkContext, caller: Caller): Sealer | null =>
  grants(caller.scopes, "network:write") ? sealer : null;

/** What the machine counts of the network's rules; null where there are none, and nothing to be asked. */
export const countsOf = (
  { live }: NetworkContext,
  { network }: NetworkAggregate,
  parse = firewallOf,
): Promise<Pick<NetworkStatus, "rules"> | null> | null =>
  parse(network).Rules.length === 0 ? null : live.of(network.id);

/** The network as it stands on the machine now, for one who may see it so. */
export async function showNow(
  tools: NetworkContext,
  caller: Caller,
  whole: NetworkAggregate,
  parse = createFirewallParser(),
  live = countsOf(tools, whole, parse),
): Promise<PublicNetwork> {
  return showPublicNetwork(whole, { live: await live, secrets: sealerFor(tools, caller) }, parse);
}

/** Of rules that came into force a moment ago: nothing has met them yet, and nobody need ask. */
const uncounted = Promise.resolve({ rules: [] });

/** Resolves when the reconciler has done what the nudge asked for, or `ms` are over. */
export const waitFor = ({ ended }: NetworkContext, requested: ReconcileRequest, ms: number): Promise<void> =>
  endedWithin(ended, [requested], ms);

/** Throws `quota_exceeded`. The caller holds `lockProject` where the quota counts over the project. */
export async function requireProjectQuota(
  tx: Tx,
  caller: Caller,
  quota: Quota,
  used: number,
  wanted: number,
): Promise<void> {
  const project = await findProject.first(tx, { id: caller.projectId });
  if (project === undefined) throw new ApiError("token_invalid", "The token's project is gone.");
  requireQuota(project.quotas, quota, used, wanted);
}

/** Fields that packets do not obey: changing them raises no generation. */
const idle: ReadonlySet<string> = new Set(["labels", "fallback", "confirm_by", "outside"]);

/** What a change makes of a network: fields of the row besides what it wrote into other tables, or null where all stays as it is. */
export type NetworkChange = (whole: NetworkAggregate, tx: Tx) => Promise<Partial<table.NetworkRow> | null>;

/**
 * Changes a public network: `change` says what; then it has a new version and, where packets obey what differs, a new generation,
 * its reconciler is nudged, and the answer waits for packets to obey. Throws `action_not_allowed` while it is being deleted.
 */
export async function changePublic(
  tools: NetworkContext,
  request: Pick<Request, "caller" | "expect" | "dryRun"> & { readonly params: { readonly id: number } },
  tx: Tx,
  change: NetworkChange,
): Promise<ChangeResult<PublicNetwork>> {
  const { caller, params } = request;
  await table.lockNetwork(tx, params.id);
  const row = await getPublic(tx, caller, params.id);
  request.expect(publicTag(row));
  if (row.state === "Deleting")
    throw new ApiError("action_not_allowed", `Public network ${row.id} is Deleting, and nothing of it can be changed.`);
  const before = await getAggregate(tx, row);
  const secrets = sealerFor(tools, caller);
  const parse = createFirewallParser();
  const wanted = await change(before, tx);
  const settled = async (ms: number): Promise<PublicNetwork | undefined> => {
    // Who does not wait for the machine does not wait for its counters.
    if (ms <= 0) return undefined;
    const now = await readAggregate(tools.store.read, await table.findNetwork(tools.store.read, row.id));
    const isNew = wanted?.firewall !== undefined && wanted.firewall !== before.network.firewall;
    return now && showNow(tools, caller, now, parse, isNew ? uncounted : undefined);
  };
  if (wanted === null)
    return {
      answer: showPublicNetwork(before, { live: null, secrets }, parse),
      tag: publicTag(row),
      changes: [],
      refresh: settled,
    };

  const tunnels = await table.listTunnels(tx, row.id);
  const moves =
    Object.keys(wanted).some((key) => !idle.has(key)) ||
    !isDeepStrictEqual(specsOf({ ...before, tunnels }, tools.sealer), specsOf(before, tools.sealer));
  const fields = { ...wanted, version: row.version + 1 };
  const raised = moves ? await raiseGeneration(tx, tools.apply, before.network, fields, { by: "request" }) : null;
  if (raised === null) await table.updateNetwork(tx, row.id, fields);
  const stored = { ...before, network: raised?.network ?? { ...before.network, ...fields }, tunnels };
  const after = request.dryRun ? withoutNewIds(before, stored) : stored;
  return {
    answer: showPublicNetwork(after, { live: null, secrets }, parse),
    tag: publicTag(after.network),
    changes: [networkChanged("publicnetwork.changed", before, after, parse)],
    async refresh(ms) {
      if (raised !== null) await waitFor(tools, raised.task, ms);
      return settled(ms);
    },
  };
}

/** As a dry run shows it: what came has no id yet. */
function withoutNewIds(before: NetworkAggregate, after: NetworkAggregate): NetworkAggregate {
  const known = new Set(before.tunnels.map(({ id }) => id));
  return { ...after, tunnels: after.tunnels.map((row) => (known.has(row.id) ? row : { ...row, id: 0 })) };
}

/** Told and kept without secrets. */
export function networkChanged(
  type: ResourceChange["type"],
  before: NetworkAggregate | null,
  after: NetworkAggregate | null,
  parse = createFirewallParser(),
): ResourceChange {
  const id = (after ?? before)?.network.id ?? 0;
  const show = (whole: NetworkAggregate | null, other: NetworkAggregate | null): unknown =>
    whole === null ? null : showForEvent(whole, other?.network ?? null, parse).data;
  return { type, id, parent: null, before: show(before, after), after: show(after, before) };
}

/** Which of the locations is meant, in any letter case, the first if none is named. Throws `validation_failed`. */
export function chooseLocation(locations: readonly string[], wanted: string | undefined): string {
  const found = wanted ? locations.find((name) => name.toLowerCase() === wanted.toLowerCase()) : locations[0];
  if (found !== undefined) return found;
  const detail = `DCLocation must be one of ${locations.join(", ")}, not ${JSON.stringify(wanted)}.`;
  throw invalidFields([fieldError("/DCLocation", "unknown_reference", detail)]);
}

/** Of a list's filter: names with commas, any letter case. */
export function inLocation(wanted: string | undefined): (row: table.NetworkRow) => boolean {
  if (wanted === undefined) return () => true;
  const names = wanted.split(",").map((name) => name.trim().toLowerCase());
  return (row) => names.includes(row.location.toLowerCase());
}
