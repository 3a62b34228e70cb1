/** Links of servers to networks: references by name, and the differences. */
import type { Server } from "@brume/api/server.ts";
import type { Path } from "../model/cloud/check.ts";
import type { Cloud, Entry } from "../model/cloud/document.ts";
import { type FieldChange, type Planning, unknownName, type Work } from "./change.ts";
import { type AnyNetwork, networksOf } from "./state.ts";

/** Name of the shared network of a location. */
export const sharedName = "shared";

/** A network that a server refers to. `id` is null until it is created; for the shared network it is found when it is needed. */
export interface Target {
  readonly kind: "Shared" | AnyNetwork["kind"];
  readonly name: string;
  readonly id: number | null;
}

/** A link of the file. */
export interface WantedLink {
  readonly target: Target;
  readonly IP?: string;
  readonly Bandwidth?: number;
}

/** Finds networks by name: those of the file, then those of the installation, then by id. */
export function createFinder(planning: Planning, cloud: Cloud): (name: string, path: Path) => Target | null {
  const existing = networksOf(planning.found);
  const planned: Omit<AnyNetwork, "id">[] = [
    ...(cloud.PublicNetworks ?? []).map(({ Name }) => ({ kind: "PublicNetworks" as const, name: Name })),
    ...(cloud.Networks ?? []).map(({ Name }) => ({ kind: "Networks" as const, name: Name })),
  ];
  const idOf = (one: Omit<AnyNetwork, "id">) =>
    existing.find(({ kind, name }) => kind === one.kind && name === one.name)?.id ?? null;
  return (name, path) => {
    if (name === sharedName) return { kind: "Shared", name, id: null };
    const own = planned.filter((one) => one.name === name);
    const found =
      own.length > 0 ? own.map((one) => ({ ...one, id: idOf(one) })) : existing.filter((one) => one.name === name);
    const byId = existing.filter(({ id }) => String(id) === name);
    const candidates = found.length > 0 ? found : byId;
    if (candidates.length === 1) return candidates[0] ?? null;
    const names = [...planned, ...existing].map((one) => one.name);
    const message =
      candidates.length > 1
        ? `${candidates.length} networks have the name "${name}". Rename all but one, or give the id of one.`
        : unknownName("network", name, [...new Set([...names, sharedName])]);
    planning.problems.push({ path, message });
    return null;
  };
}

/** Returns the links of a server of the file; undefined: it does not list them. */
export function linksOf(entry: Entry, path: Path, find: ReturnType<typeof createFinder>): WantedLink[] | undefined {
  const given = entry["Networks"] as (string | { Network: string; IP?: string; Bandwidth?: number })[] | undefined;
  return given?.flatMap((one, index) => {
    const { Network, ...more } = typeof one === "string" ? { Network: one } : one;
    const at = [...path, "Networks", index, ...(typeof one === "string" ? [] : ["Network"])];
    const target = find(Network, at);
    return target === null ? [] : [{ target, ...more }];
  });
}

type Link = Server["LinkedNetworks"][number];

/** What changes at the links of a server. */
export interface LinkPlan {
  readonly add: readonly WantedLink[];
  readonly remove: readonly Link[];
  readonly bandwidth: readonly { readonly link: Link; readonly wanted: number }[];
}

const fits = ({ target }: WantedLink, link: Link) =>
  target.kind === "Shared" ? link.NetworkType === "PublicShared" : target.id === link.NetworkID;

/** Returns the difference of links. A link with another address is removed and added. */
export function diffLinks(wanted: readonly WantedLink[], current: readonly Link[]): LinkPlan {
  const known = (one: WantedLink) =>
    current.find((link) => fits(one, link) && (one.IP === undefined || one.IP === link.IP || one.IP === link.IP6));
  const kept = new Set(wanted.map(known));
  return {
    add: wanted.filter((one) => known(one) === undefined),
    remove: current.filter((link) => !kept.has(link)),
    bandwidth: wanted.flatMap((one) => {
      const link = known(one);
      if (link === undefined || one.Bandwidth === undefined || one.Bandwidth === link.Bandwidth) return [];
      return [{ link, wanted: one.Bandwidth }];
    }),
  };
}

const text = ({ target, IP, Bandwidth }: WantedLink) =>
  [target.name, IP, Bandwidth !== undefined && `${Bandwidth} Mbit/s`].filter(Boolean).join(" ");
const nameOf = ({ NetworkType, NetworkName }: Link) => (NetworkType === "PublicShared" ? sharedName : NetworkName);

/** Returns the difference for people. */
export const describeLinks = ({ add, remove, bandwidth }: LinkPlan): FieldChange[] => [
  ...remove.map((link) => ({ field: "Network", before: `${nameOf(link)} ${link.IP}`, after: null })),
  ...add.map((link) => ({ field: "Network", before: null, after: text(link) })),
  ...bandwidth.map(({ link, wanted }) => ({
    field: `Network ${nameOf(link)} Bandwidth`,
    before: link.Bandwidth,
    after: wanted,
  })),
];

/** Returns the id of a network; the shared network of a location is found by a dry run, because no list contains it. */
export async function networkId(
  { client, signal, created }: Work,
  { kind, name, id }: Target,
  location: string,
): Promise<number> {
  if (kind !== "Shared") return id ?? created.get(`${kind}/${name}`) ?? 0;
  const key = `Shared/${location}`;
  const known = created.get(key);
  if (known !== undefined) return known;
  const body = { Name: sharedName, DCLocation: location };
  const { LinkedNetworks } = await client.createServer({ body }, { dryRun: true, signal });
  const found = LinkedNetworks[0]?.NetworkID ?? 0;
  created.set(key, found);
  return found;
}
