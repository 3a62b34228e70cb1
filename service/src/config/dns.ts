/** Settings of the name server: its address and names, zone transfers, and the resolvers of checks. */
import { isIP, isIPv6 } from "node:net";
import { ConfigError, checkBlock, type Endpoint, parseEndpoint, parseList, type Settings } from "./value.ts";

/** A TSIG key for zone transfers (RFC 8945). */
export interface TransferKey {
  readonly name: string;
  readonly algorithm: string;
  /** Base64. */
  readonly secret: string;
  /** Zones that the key may transfer: by name, and by project; null: all. */
  readonly only: { readonly zones: readonly string[]; readonly groups: readonly number[] } | null;
}

/** Settings of the name server and of DNS lookups. */
export interface DnsConfig {
  readonly listen: Endpoint;
  /** Names in the automatic NS set, ASCII, lower case, no final dot. */
  readonly names: readonly string[];
  /** Responses per second to one network; 0: no limit. */
  readonly rateLimit: number;
  /** Limit of all queries per second of one network over UDP; 0 for no limit. */
  readonly queryLimit: number;
  readonly transfer: {
    /** Addresses and blocks that may transfer zones without a key. */
    readonly addresses: readonly string[];
    readonly keys: readonly TransferKey[];
    /** Secondaries that receive NOTIFY. `key`: name of the key that signs it. */
    readonly notify: readonly (Endpoint & { readonly key?: string })[];
    /** Name of the catalog zone (RFC 9432); null: none. */
    readonly catalog: string | null;
  };
  /** Resolvers that check delegations; null: those of the host. */
  readonly resolvers: readonly string[] | null;
}

/** Parses an address with an optional port, default 53. */
function parseAddress(name: string, value: string): Endpoint {
  const endpoint = isIP(value) ? { host: value, port: 53 } : parseEndpoint(name, value, 53);
  if (isIP(endpoint.host)) return endpoint;
  throw new ConfigError(name, "addresses such as 192.0.2.54 or 192.0.2.54:5353, with commas", value);
}

/** Returns a domain name in lower case without the final dot, or null if it is not an ASCII domain name. */
function readName(value: string): string | null {
  const name = value.toLowerCase().replace(/\.$/, "");
  const good = /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
  return good.test(name) ? name : null;
}

const keyName = (value: string): string => value.toLowerCase().replace(/\.$/, "");

const algorithms: readonly string[] = ["hmac-sha1", "hmac-sha256", "hmac-sha384", "hmac-sha512"];

/**
 * Parses a key as in `kdig -y`, `hmac-sha256:transfer.brume:c2VjcmV0`, with an optional fourth part that restricts it to zones and
 * projects: `example.com+example.org+project/7`.
 */
function parseKey(setting: string, value: string): TransferKey {
  const [algorithm, name, secret, scope, ...rest] = value.split(":");
  const items = scope?.split("+") ?? [];
  const groups = items.flatMap((item) => /^project\/([1-9]\d{0,8})$/.exec(item)?.[1] ?? []).map(Number);
  const zones = items.filter((item) => !item.includes("/")).flatMap((item) => readName(item) ?? []);
  const isKey = algorithm && name && secret && algorithms.includes(algorithm) && rest.length === 0;
  if (!isKey || zones.length + groups.length < items.length)
    throw new ConfigError(
      setting,
      `ALGORITHM:NAME:BASE64 with ALGORITHM one of ${algorithms.join(", ")}, or ALGORITHM:NAME:BASE64:example.com+project/7 for some zones only, several with commas`,
      null,
    );
  return { algorithm, name: keyName(name), secret, only: scope === undefined ? null : { zones, groups } };
}

/** Parses `192.0.2.54`, `192.0.2.54:5353` or, with the name of a key, `transfer@192.0.2.54`. */
function parseSecondary(setting: string, value: string, keys: readonly TransferKey[]): Endpoint & { key?: string } {
  const at = value.indexOf("@");
  const endpoint = parseAddress(setting, value.slice(at + 1));
  if (at < 0) return endpoint;
  const key = keyName(value.slice(0, at));
  if (!keys.some(({ name }) => name === key))
    throw new ConfigError(
      setting,
      "addresses, each with the name of one of BRUME_DNS_TRANSFER_KEYS and @ before it or none",
      value,
    );
  return { ...endpoint, key };
}

/** Reads the settings of the name server. Throws `ConfigError` for the first invalid one. */
export function readDns({ read, readInteger }: Settings): DnsConfig {
  const nameText = read("BRUME_DNS_NAMES");
  const parsed = parseList(nameText).map(readName);
  const names = parsed.filter((name) => name !== null);
  if (parsed.length === 0 || parsed.length > 13 || names.length < parsed.length)
    throw new ConfigError("BRUME_DNS_NAMES", "one to 13 host names with commas", nameText);
  const keys = parseList(read("BRUME_DNS_TRANSFER_KEYS") ?? "").map((item) =>
    parseKey("BRUME_DNS_TRANSFER_KEYS", item),
  );
  const catalogText = read("BRUME_DNS_CATALOG");
  const catalog = catalogText === undefined ? null : readName(catalogText);
  if (catalogText !== undefined && catalog === null)
    throw new ConfigError("BRUME_DNS_CATALOG", "a name of a zone such as catalog.brume.invalid", catalogText);
  const resolvers = read("BRUME_DNS_RESOLVERS");

  return {
    listen: parseEndpoint("BRUME_DNS_LISTEN", read("BRUME_DNS_LISTEN")),
    names,
    rateLimit: readInteger("BRUME_DNS_RATE_LIMIT"),
    queryLimit: readInteger("BRUME_DNS_QUERY_LIMIT"),
    transfer: {
      addresses: parseList(read("BRUME_DNS_TRANSFER") ?? "").map((item) => checkBlock("BRUME_DNS_TRANSFER", item)),
      keys,
      notify: parseList(read("BRUME_DNS_NOTIFY") ?? "").map((item) => parseSecondary("BRUME_DNS_NOTIFY", item, keys)),
      catalog,
    },
    resolvers:
      resolvers === undefined
        ? null
        : parseList(resolvers).map((item) => {
            const { host, port } = parseAddress("BRUME_DNS_RESOLVERS", item);
            return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
          }),
  };
}
