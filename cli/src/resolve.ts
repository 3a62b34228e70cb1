/** Converts names of objects to ids. A text of at most ten digits is an id, also if an object has it as its name. */
import type { Client } from "@brume/api/client.ts";
import { asciiName, unicodeName } from "./idna.ts";
import { closest } from "./model/closest.ts";
import { type Kind, type Listing, listHint, listings } from "./model/kinds.ts";
import { UsageError } from "./model/values.ts";

/** The client with operations by name, because names of operations come from the table of commands. */
export interface AnyClient {
  readonly raw: Readonly<
    Record<string, (input?: object, options?: object) => Promise<{ answer: unknown; headers: Headers }>>
  >;
  items(name: string, input?: object, options?: object): AsyncGenerator;
}

type Row = Readonly<Record<string, unknown>>;

/** Returns the client for operations that are known by name only. */
export const anyClient = (client: Client): AnyClient => client as unknown as AnyClient;

const lower = (text: string) => text.toLowerCase();

/** Finds the objects of a kind by a name that may contain `*`. */
async function find(client: AnyClient, listing: Listing, text: string): Promise<Row[]> {
  // Names of domains are stored and filtered in Unicode, without the final dot.
  const name = listing.isDomain === true ? unicodeName(text) : text;
  const plain = listing.isDomain === true ? asciiName : lower;
  // A filter of names exists in most lists; the comparison below decides.
  const query = { ...listing.query, ...(listing.name === "Name" || listing.name === "Title" ? { name } : {}) };
  const rows: Row[] = [];
  for await (const row of client.items(listing.operation, { query })) rows.push(row as Row);
  return rows.filter((row) => plain(String(row[listing.name])) === plain(name));
}

/** Returns all names of a kind, for completion and suggestions. */
export async function namesOf(client: AnyClient, kind: Kind): Promise<string[]> {
  if (kind === "any-network")
    return [...(await namesOf(client, "public-network")), ...(await namesOf(client, "network"))];
  if (kind === "project") return (await projects(client)).map(({ Name }) => String(Name));
  const listing = listings[kind];
  if (!listing) return [];
  const names: string[] = [];
  for await (const row of client.items(listing.operation, { query: { ...listing.query } }))
    names.push(String((row as Row)[listing.name]));
  return names;
}

async function projects(client: AnyClient): Promise<Row[]> {
  const account = (await client.raw["readAccount"]?.())?.answer as { Projects: Row[] };
  return account.Projects;
}

async function candidates(client: AnyClient, kind: Kind, name: string): Promise<number[]> {
  if (kind === "any-network")
    return [...(await candidates(client, "public-network", name)), ...(await candidates(client, "network", name))];
  if (kind === "project")
    return (await projects(client)).filter((one) => one["Name"] === name).map(({ ID }) => Number(ID));
  const listing = listings[kind];
  return listing ? (await find(client, listing, name)).map((row) => Number(row[listing.id])) : [];
}

/** Finds a record by `NAME/TYPE`, such as `www.example.com/A`. */
async function findRecord(client: AnyClient, text: string): Promise<number[]> {
  const [, name = "", type = ""] = /^(.+)\/([A-Za-z]+)$/.exec(text) ?? [];
  const full = asciiName(name);
  for await (const row of client.items("listDomains", { query: { records: false } })) {
    const { ID, NamePunyCode: zone } = row as { ID: number; NamePunyCode: string };
    if (full !== zone && !full.endsWith(`.${zone}`)) continue;
    const reply = await client.raw["readDomain"]?.({ path: { id: ID } });
    const domain = reply?.answer as { LinkedRecords: Row[] };
    const owner = full === zone ? "@" : `${full}.`;
    const rows = domain.LinkedRecords.filter(
      (one) => one["TypeRecord"] === type.toUpperCase() && [owner, `${full}.`].includes(String(one["PunyName"])),
    );
    if (rows.length > 0) return rows.map((one) => Number(one["ID"]));
  }
  return [];
}

async function findTunnel(client: AnyClient, network: number, name: string): Promise<number[]> {
  const reply = await client.raw["readPublicNetwork"]?.({ path: { id: network } });
  const found = reply?.answer as { Vpn: { Tunnels: Row[] } } | undefined;
  return (found?.Vpn.Tunnels ?? []).filter((one) => one["Name"] === name).map(({ Id }) => Number(Id));
}

const nounOf = (kind: Kind) => (kind === "any-network" ? "network" : kind.replaceAll("-", " "));

/** An object that does not exist under this name. */
export class NotFound extends UsageError {}

/**
 * Returns the id of an object. `parent`: the id before it in the path, for objects inside another one. Throws `NotFound` if there is no
 * such object, and `UsageError` if several have the name.
 */
export async function resolve(client: AnyClient, kind: Kind, text: string, parent?: number): Promise<number> {
  const isId = /^[1-9]\d{0,9}$/.test(text);
  if (kind === "id" || isId) {
    if (isId) return Number(text);
    throw new UsageError(`An id is a number, not "${text}".`);
  }
  let found: number[];
  if (kind === "record") found = await findRecord(client, text);
  else if (kind === "tunnel") found = await findTunnel(client, parent ?? 0, text);
  else found = await candidates(client, kind, text);
  const [first] = found;
  if (found.length > 1)
    throw new UsageError(
      `${found.length} ${nounOf(kind)}s have the name "${text}": ids ${found.join(", ")}.`,
      "Give the id instead of the name.",
    );
  if (first !== undefined) return first;
  const near = kind === "record" ? [] : closest(text, await namesOf(client, kind).catch(() => []));
  const form = kind === "record" ? "A record is given by its id or as NAME/TYPE, such as www.example.com/A." : "";
  throw new NotFound(
    `There is no ${nounOf(kind)} "${text}".`,
    near.length > 0 ? `Did you mean ${near.join(" or ")}?` : form || listHint(kind, parent),
  );
}
