/** `brume adapter external-dns`: the webhook provider of ExternalDNS (kubernetes-sigs.github.io/external-dns, "webhook provider"). */
import type { Client } from "@brume/api/client.ts";
import type { DnsRecord, Domain } from "@brume/api/dns.ts";
import { type AdapterResponse, BadRequest, serve } from "../adapter.ts";
import { divideName, listDomains, nameOf } from "../dnsname.ts";
import { asciiName } from "../idna.ts";
import { entryOf, requestOf } from "../model/cloud/records.ts";
import { recordForms } from "../model/cloud/shape.ts";
import type { Run } from "../session.ts";

const mediaType = "application/external.dns.webhook+json;version=1";

/** The records of one name and type. */
interface Endpoint {
  readonly dnsName: string;
  readonly recordType: string;
  readonly targets: readonly string[];
  /** Seconds; absent or 0: the default. */
  readonly recordTTL?: number;
}

/** Types that are exchanged. The owner of an SRV record has parts that an endpoint does not divide. */
const types: readonly string[] = ["A", "AAAA", "CNAME", "MX", "NS", "TXT"];

const withoutDot = (name: string): string => name.replace(/\.$/, "");
/** Targets are compared without what may be written differently: the quotation marks of one text; case and final dot of a name. */
const plain = (type: string, target: string): string =>
  type === "TXT" ? target.replace(/^"([^"]*)"$/, "$1") : withoutDot(target.toLowerCase());

/** Names of the data of a type, in the order in which a target contains them. */
const dataOf = (type: string): string[] =>
  Object.keys(recordForms[type]?.fields ?? {}).filter((name) => name !== "Name");

/** Returns the data of a record as ExternalDNS writes it: `10 mail.example.com`. */
function targetOf(record: DnsRecord, { Name }: Domain): string {
  const entry = entryOf(record, Name);
  return dataOf(record.TypeRecord)
    .map((name) => (name === "Text" ? String(entry[name]) : withoutDot(String(entry[name]))))
    .join(" ");
}

/** Returns the change that creates a record. */
function creation(type: string, owner: string, target: string, ttl: number): object {
  const names = dataOf(type);
  const parts = names.length === 1 ? [target] : target.split(" ");
  if (parts.length !== names.length)
    throw new BadRequest(`A target of type ${type} is ${names.join(" and ")}, not "${target}".`);
  const data = Object.fromEntries(names.map((name, index) => [name, parts[index] ?? ""]));
  return { Op: "Create", ...requestOf({ Type: type, Name: owner, ...data, ...(ttl > 0 && { TTL: ttl }) }) };
}

/** Returns the records of a domain as endpoints. Types that are not exchanged are left out. */
function endpointsOf(domain: Domain): Endpoint[] {
  const groups = Map.groupBy(
    domain.LinkedRecords.filter(({ TypeRecord }) => types.includes(TypeRecord)),
    (record) => `${nameOf(record, domain)} ${record.TypeRecord}`,
  );
  return [...groups.values()].flatMap((records) => {
    const [first] = records;
    if (first === undefined) return [];
    const targets = records.map((record) => targetOf(record, domain));
    return [{ dnsName: nameOf(first, domain), recordType: first.TypeRecord, targets, recordTTL: first.TTL }];
  });
}

/** Returns the endpoints of a list. Throws `BadRequest`. */
function readEndpoints(value: unknown): Endpoint[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new BadRequest("A list of endpoints is expected.");
  return value.map((one) => {
    const { dnsName, recordType, targets, recordTTL } = one as Partial<Endpoint>;
    if (typeof dnsName !== "string" || typeof recordType !== "string" || !Array.isArray(targets))
      throw new BadRequest("An endpoint must have dnsName, recordType and targets.");
    return { dnsName, recordType, targets: targets.map(String), ...(typeof recordTTL === "number" && { recordTTL }) };
  });
}

/** Applies the changes, those of a domain in one changeset. */
async function applyChanges(client: Client, body: unknown, signal: AbortSignal): Promise<void> {
  // Versions of ExternalDNS differ in the case of these names.
  const lists = new Map(Object.entries(body ?? {}).map(([name, list]) => [name.toLowerCase(), list as unknown]));
  const removed = ["delete", "updateold"].flatMap((name) => readEndpoints(lists.get(name)));
  const added = ["create", "updatenew"].flatMap((name) => readEndpoints(lists.get(name)));
  const domains = await listDomains(client, signal);
  const changes = new Map<number, object[]>();
  const full = new Map<number, Domain>();
  const locate = async ({ dnsName, recordType }: Endpoint) => {
    if (!types.includes(recordType)) throw new BadRequest(`Records of type ${recordType} are not supported.`);
    const found = divideName(domains, dnsName);
    if (found === undefined) throw new BadRequest(`No domain that the token may see contains ${dnsName}.`);
    const id = found.domain.ID;
    if (!full.has(id)) full.set(id, await client.readDomain({ path: { id } }, { signal }));
    if (!changes.has(id)) changes.set(id, []);
    return { ...found, domain: full.get(id) ?? found.domain, list: changes.get(id) ?? [] };
  };
  for (const endpoint of removed) {
    const { domain, list } = await locate(endpoint);
    const targets = new Set(endpoint.targets.map((target) => plain(endpoint.recordType, target)));
    for (const record of domain.LinkedRecords)
      if (
        record.TypeRecord === endpoint.recordType &&
        nameOf(record, domain) === asciiName(endpoint.dnsName) &&
        targets.has(plain(record.TypeRecord, targetOf(record, domain)))
      )
        list.push({ Op: "Delete", ID: record.ID });
  }
  for (const endpoint of added) {
    const { owner, list } = await locate(endpoint);
    for (const target of endpoint.targets)
      list.push(creation(endpoint.recordType, owner, target, endpoint.recordTTL ?? 0));
  }
  for (const [id, Changes] of changes)
    if (Changes.length > 0)
      await client.changeRecords({ path: { id }, body: { Changes: Changes as never } }, { signal });
}

export const run: Run = (session) =>
  serve(session, mediaType, async ({ route, body, client }): Promise<AdapterResponse | null> => {
    const { signal } = session.host;
    switch (route) {
      case "GET /": {
        const filters = (await listDomains(client, signal)).map(({ NamePunyCode }) => NamePunyCode);
        return { status: 200, body: { filters } };
      }
      case "GET /healthz":
        await client.readHealth({}, { signal });
        return { status: 200, body: {} };
      case "GET /records": {
        const endpoints: Endpoint[] = [];
        for (const { ID } of await listDomains(client, signal))
          endpoints.push(...endpointsOf(await client.readDomain({ path: { id: ID } }, { signal })));
        return { status: 200, body: endpoints };
      }
      case "POST /adjustendpoints":
        return { status: 200, body: readEndpoints(body).length === 0 ? [] : body };
      case "POST /records":
        await applyChanges(client, body, signal);
        return { status: 204 };
      default:
        return null;
    }
  });
