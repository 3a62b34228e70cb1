/** Finds the domain of a full name. */
import type { Client } from "@brume/api/client.ts";
import type { DnsRecord, Domain } from "@brume/api/dns.ts";
import { asciiName } from "./idna.ts";
import { NotFound } from "./resolve.ts";

/** A full name, divided into its domain and the owner in it. */
export interface Located {
  /** Without records. */
  readonly domain: Domain;
  /** Relative to the domain, in ASCII and lower case; `@`: the domain itself. */
  readonly owner: string;
}

/** Returns the full name of a record in ASCII, in lower case and without the final dot. */
export const nameOf = ({ PunyName }: DnsRecord, { NamePunyCode }: Domain): string =>
  PunyName === "@" ? NamePunyCode : PunyName.replace(/\.$/, "").toLowerCase();

/** Returns all domains that the token sees, without records. */
export async function listDomains(client: Client, signal: AbortSignal): Promise<Domain[]> {
  const domains: Domain[] = [];
  const query = { records: false, limit: 1000 };
  for await (const domain of client.items("listDomains", { query }, { signal })) domains.push(domain);
  return domains;
}

/** Divides a full name by the longest domain that contains it; undefined: none does. */
export function divideName(domains: readonly Domain[], name: string): Located | undefined {
  const full = asciiName(name);
  const domain = domains
    .filter(({ NamePunyCode }) => full === NamePunyCode || full.endsWith(`.${NamePunyCode}`))
    .toSorted((a, b) => b.NamePunyCode.length - a.NamePunyCode.length)[0];
  if (domain === undefined) return undefined;
  return { domain, owner: full === domain.NamePunyCode ? "@" : full.slice(0, -domain.NamePunyCode.length - 1) };
}

/** Finds the domain of a full name among those that the token sees. Throws `NotFound`. */
export async function findDomain(client: Client, name: string, signal: AbortSignal): Promise<Located> {
  const found = divideName(await listDomains(client, signal), name);
  if (found === undefined) throw new NotFound(`No domain that the token may see contains the name "${name}".`);
  return found;
}
