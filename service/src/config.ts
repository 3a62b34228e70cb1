/**
 * Reads the settings from the environment into one validated, frozen object. Every setting has a default that works on a new host. An
 * invalid value stops the start; the error names the setting, the expected form and the value.
 */
import { isIP, isIPv4, isIPv6 } from "node:net";
import { isAbsolute, resolve } from "node:path";

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** A TSIG key for zone transfers (RFC 8945). */
export interface TransferKey {
  readonly name: string;
  readonly algorithm: string;
  /** Base64. */
  readonly secret: string;
  /** Zones that the key may transfer: by name, and by project; null: all. */
  readonly only: { readonly zones: readonly string[]; readonly groups: readonly number[] } | null;
}

export interface Config {
  readonly listen: Endpoint;
  /** Paths of PEM files; null: HTTP without TLS. */
  readonly tls: { readonly certificate: string; readonly key: string } | null;
  /** Accepts malformed HTTP/1.1 requests of old clients. */
  readonly lenientHttp: boolean;
  readonly dataFolder: string;
  /** `postgres://…`, or null for SQLite in the data folder. */
  readonly databaseUrl: string | null;
  /** Value of token 1; null: the file `token` in the data folder, created if it is missing. */
  readonly token: string | null;
  /** Sealing key, 64 hexadecimal characters; null: the file `key` in the data folder. */
  readonly key: string | null;
  readonly logLevel: LogLevel;
  readonly dns: {
    readonly listen: Endpoint;
    /** Names in the automatic NS set, ASCII, lower case, no final dot. */
    readonly names: readonly string[];
    /** Responses per second to one network; 0: no limit. */
    readonly rateLimit: number;
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
  };
  /** Titles of the locations; the first is the default. */
  readonly locations: readonly string[];
  readonly network: {
    /** IPv4 blocks from which public networks and their edges are allocated. */
    readonly publicPools: readonly string[];
    /** IPv6 block of /56 or larger, from which each public network and the shared network gets a /64; null: no IPv6. */
    readonly publicPool6: string | null;
    /** IPv4 block of each location's shared network. */
    readonly sharedPools: readonly string[];
    /** When addresses of networks are translated (NAT). */
    readonly nat: (typeof natModes)[number];
    /** IPv4 address at which the host is reached from outside; null: its own. */
    readonly publicAddress: string | null;
    /** UDP port of the first edge with WireGuard; each further edge uses the next port. */
    readonly wireguardPort: number;
    /** Name servers to which edges forward queries of servers; empty: edges do not serve DNS. */
    readonly forwarders: readonly string[];
    /** All blocks by setting, to detect conflicts with addresses and routes of the host. */
    readonly pools: readonly {
      readonly setting: string;
      readonly blocks: readonly string[];
      readonly isChosen: boolean;
    }[];
    /** Addresses and blocks of the host, or link-local, that servers may reach. */
    readonly opened: readonly string[];
    /** Most connections of a network and of a server, and most packets per second that a server sends. */
    readonly limits: { readonly network: number; readonly server: number; readonly packets: number };
  };
  /** Addresses and blocks that webhooks may call although they are not public. */
  readonly webhookAllow: readonly string[];
  /** Folder of daily backups, which must exist; null: the folder of images. */
  readonly backupFolder: string | null;
  /** vCPUs that may be allocated per core of the host. */
  readonly cpuOvercommit: number;
  /** Limits of one server's disk: operations and MB (10^6 bytes) per second; 0: no limit. */
  readonly disk: {
    readonly operations: number;
    readonly bandwidth: number;
  };
  /** Free MB on the data disk below which the service warns. */
  readonly diskLow: number;
  readonly keep: Keep;
  /** Simulates servers and networks instead of creating them on the host. */
  readonly simulate: boolean;
  /** Variables that start with `BRUME_` and are not settings. */
  readonly unknown: readonly string[];
}

export const logLevels = ["error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof logLevels)[number];
const natModes = ["never", "outside-private", "always"] as const;

/** A setting has an invalid value. Its message is a sentence for the operator. */
export class ConfigError extends Error {
  constructor(name: string, expected: string, actual: string) {
    super(`${name} must be ${expected}, not "${actual}".`);
    this.name = "ConfigError";
  }
}

/** Retention of each table that grows with use. `BRUME_KEEP` changes it. */
export const defaultKeep = {
  event: { days: 30, count: 1_000_000 },
  audit: { days: 365, count: 1_000_000 },
  refusal: { days: 90, count: 100_000 },
  key: { days: 1, count: 1_000_000 },
  task: { days: 90, count: 100_000 },
  version: { days: 90, count: 10_000 },
  zone: { days: 1, count: 1_000_000 },
  claim: { days: 90, count: 10_000 },
  withdrawn: { days: 365, count: 10_000 },
  delivery: { days: 30, count: 100_000 },
  deleted: { days: 3650, count: 100_000 },
} as const satisfies Record<string, { readonly days: number; readonly count: number }>;

export type Keep = Readonly<Record<keyof typeof defaultKeep, { readonly days: number; readonly count: number }>>;

function parseKeep(value: string): Keep {
  const keep: Record<string, Keep[keyof Keep]> = { ...defaultKeep };
  for (const item of parseList(value)) {
    const [, name = "", days, count] = /^([a-z]+):([1-9]\d{0,4})\/([1-9]\d{0,8})$/.exec(item) ?? [];
    if (!Object.hasOwn(defaultKeep, name))
      throw new ConfigError(
        "BRUME_KEEP",
        `NAME:DAYS/COUNT with commas, NAME one of ${Object.keys(defaultKeep).join(", ")}`,
        item,
      );
    keep[name] = { days: Number(days), count: Number(count) };
  }
  return keep as unknown as Keep;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Parses `host:port`, `[v6]:port`, or a port alone, which means 127.0.0.1. */
function parseEndpoint(name: string, value: string, defaultPort?: number): Endpoint {
  const found = /^(?:(?:\[([0-9a-f:.]+)\]|([^:[\]]+)):)?(\d{1,5})$/i.exec(value);
  const port = Number(found?.[3]);
  if (found && port <= 65_535) return { host: found[1] ?? found[2] ?? "127.0.0.1", port };
  if (defaultPort !== undefined && /^[^:\s]+$/.test(value)) return { host: value, port: defaultPort };
  throw new ConfigError(name, "an address and a port such as 127.0.0.1:8080", value);
}

const parseList = (value: string): string[] =>
  value
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");

/** Parses an address with an optional port, default 53. */
function parseAddress(name: string, value: string): Endpoint {
  const endpoint = isIP(value) ? { host: value, port: 53 } : parseEndpoint(name, value, 53);
  if (isIP(endpoint.host)) return endpoint;
  throw new ConfigError(name, "addresses such as 192.0.2.54 or 192.0.2.54:5353, with commas", value);
}

function checkBlock(name: string, value: string): string {
  const [address = "", bits, ...rest] = value.split("/");
  const most = isIPv6(address) ? 128 : 32;
  if (isIP(address) && rest.length === 0 && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most)))
    return value;
  throw new ConfigError(name, "addresses or blocks such as 192.0.2.0/24, with commas", value);
}

/** Returns a domain name in lower case without the final dot, or null if it is not an ASCII domain name. */
function readName(value: string): string | null {
  const name = value.toLowerCase().replace(/\.$/, "");
  const good = /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
  return good.test(name) ? name : null;
}

const keyName = (value: string): string => value.toLowerCase().replace(/\.$/, "");

/**
 * Parses a key as in `kdig -y`, `hmac-sha256:transfer.brume:c2VjcmV0`, with an optional fourth part that restricts it to zones and
 * projects: `example.com+example.org+project/7`.
 */
function parseKey(setting: string, value: string): TransferKey {
  const [algorithm, name, secret, scope, ...rest] = value.split(":");
  const items = scope?.split("+") ?? [];
  const groups = items.flatMap((item) => /^project\/([1-9]\d{0,8})$/.exec(item)?.[1] ?? []).map(Number);
  const zones = items.filter((item) => !item.includes("/")).flatMap((item) => readName(item) ?? []);
  const isKey = algorithm && name && secret && /^hmac-sha(1|256|384|512)$/.test(algorithm) && rest.length === 0;
  if (!isKey || zones.length + groups.length < items.length)
    throw new ConfigError(
      setting,
      "hmac-sha256:NAME:BASE64, or hmac-sha256:NAME:BASE64:example.com+project/7 for some zones only, several with commas",
      "(not shown)",
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

/** Returns the first and last address of an IPv4 block, as numbers. */
function ends(block: string): readonly [first: number, last: number] {
  const [address = "", bits = "32"] = block.split("/");
  const first = address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
  return [first, first + 2 ** (32 - Number(bits)) - 1];
}

/** Returns 10.63.0.0/16, and for further locations the next /16 blocks outside of the public pools. */
function defaultShared(count: number, publicPools: readonly string[]): string[] {
  const blocks = Array.from({ length: 256 }, (_, index) => `10.${(index + 63) % 256}.0.0/16`);
  const [first = "", ...others] = blocks;
  const isPublic = (block: string) => {
    const [start, end] = ends(block);
    return publicPools.map(ends).some(([from, to]) => start <= to && from <= end);
  };
  const free = others.filter((block) => !isPublic(block));
  return [first, ...free, ...others.filter(isPublic)].slice(0, count);
}

/** Reads all settings. Throws `ConfigError` for the first invalid one. */
export function loadConfig(environment: Environment): Config {
  const used = new Set<string>();
  const read = (name: string): string | undefined => {
    used.add(name);
    const value = environment[name]?.trim();
    return value === "" ? undefined : value;
  };
  const readInteger = (name: string, otherwise: number, maximum: number, minimum = 0): number => {
    const value = read(name);
    if (value === undefined) return otherwise;
    if (!/^\d{1,9}$/.test(value) || Number(value) > maximum || Number(value) < minimum)
      throw new ConfigError(name, `an integer from ${minimum} to ${maximum}`, value);
    return Number(value);
  };
  const readHex = (name: string): string | null => {
    const value = read(name);
    if (value === undefined) return null;
    if (!/^[0-9a-f]{64}$/.test(value))
      throw new ConfigError(name, "64 lower-case hexadecimal characters", "(not shown)");
    return value;
  };
  const readNames = (): string[] => {
    const value = read("BRUME_DNS_NAMES") ?? "ns1.brume.internal";
    const names = parseList(value).map(readName);
    const good = names.filter((name) => name !== null);
    if (names.length === 0 || names.length > 13 || good.length < names.length)
      throw new ConfigError("BRUME_DNS_NAMES", "one to 13 host names with commas", value);
    return good;
  };
  const keys = parseList(read("BRUME_DNS_TRANSFER_KEYS") ?? "").map((item) =>
    parseKey("BRUME_DNS_TRANSFER_KEYS", item),
  );
  const readCatalog = (): string | null => {
    const value = read("BRUME_DNS_CATALOG");
    const name = value === undefined ? null : readName(value);
    if (value !== undefined && name === null)
      throw new ConfigError("BRUME_DNS_CATALOG", "a name of a zone such as catalog.brume.invalid", value);
    return name;
  };

  const readPool = (name: string, item: string, family: 4 | 6, longest: number): string => {
    const [address = "", bits = "", ...rest] = item.split("/");
    const length = /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
    if (isIP(address) !== family || rest.length > 0 || !(length >= 8 && length <= longest))
      throw new ConfigError(name, `IPv${family} blocks of /8 to /${longest}, with commas`, item);
    return item;
  };
  const readLocations = (): string[] => {
    const value = read("BRUME_LOCATIONS") ?? "Local";
    const names = parseList(value);
    const folded = new Set(names.map((name) => name.toLowerCase()));
    if (names.length === 0 || folded.size < names.length || !names.every((name) => /^[^\p{Cc}<>]{1,64}$/u.test(name)))
      throw new ConfigError("BRUME_LOCATIONS", "different names of 1 to 64 characters, with commas", value);
    return names;
  };
  const locations = readLocations();
  const publicChoice = read("BRUME_PUBLIC_POOL");
  const publicPools = parseList(publicChoice ?? "10.64.0.0/16").map((item) =>
    readPool("BRUME_PUBLIC_POOL", item, 4, 28),
  );
  const sharedChoice = read("BRUME_SHARED_POOL");
  const sharedPools =
    sharedChoice === undefined
      ? defaultShared(locations.length, publicPools)
      : parseList(sharedChoice).map((item) => readPool("BRUME_SHARED_POOL", item, 4, 29));
  if (sharedPools.length < locations.length)
    throw new ConfigError(
      "BRUME_SHARED_POOL",
      `one block for each of the ${locations.length} locations, with commas`,
      sharedPools.join(","),
    );
  const choice6 = read("BRUME_PUBLIC_POOL6");
  const publicPool6 = choice6 === undefined ? null : readPool("BRUME_PUBLIC_POOL6", choice6, 6, 56);

  const natText = read("BRUME_NAT") ?? "always";
  const nat = natModes.find((mode) => mode === natText);
  if (nat === undefined) throw new ConfigError("BRUME_NAT", `one of ${natModes.join(", ")}`, natText);
  const publicAddress = read("BRUME_PUBLIC_ADDRESS") ?? null;
  if (publicAddress !== null && !isIPv4(publicAddress))
    throw new ConfigError("BRUME_PUBLIC_ADDRESS", "an IPv4 address such as 203.0.113.9", publicAddress);

  const level = read("BRUME_LOG") ?? "info";
  if (!(logLevels as readonly string[]).includes(level))
    throw new ConfigError("BRUME_LOG", `one of ${logLevels.join(", ")}`, level);
  const data = read("BRUME_DATA") ?? "data";
  const database = read("BRUME_DATABASE") ?? null;
  if (database !== null && !/^postgres(ql)?:\/\//.test(database))
    throw new ConfigError("BRUME_DATABASE", "postgres://USER:PASSWORD@HOST/NAME", "(not shown)");
  const certificate = read("BRUME_TLS_CERT");
  const tlsKey = read("BRUME_TLS_KEY");
  if ((certificate === undefined) !== (tlsKey === undefined))
    throw new ConfigError("BRUME_TLS_CERT and BRUME_TLS_KEY", "both files or neither", certificate ?? tlsKey ?? "");
  const resolvers = read("BRUME_DNS_RESOLVERS");

  const config: Config = {
    listen: parseEndpoint("BRUME_LISTEN", read("BRUME_LISTEN") ?? "127.0.0.1:8080"),
    tls: certificate !== undefined && tlsKey !== undefined ? { certificate, key: tlsKey } : null,
    lenientHttp: readInteger("BRUME_LENIENT_HTTP", 0, 1) === 1,
    dataFolder: isAbsolute(data) ? data : resolve(data),
    databaseUrl: database,
    token: readHex("BRUME_TOKEN"),
    key: readHex("BRUME_KEY"),
    logLevel: level as LogLevel,
    dns: {
      listen: parseEndpoint("BRUME_DNS_LISTEN", read("BRUME_DNS_LISTEN") ?? "127.0.0.1:5353"),
      names: readNames(),
      rateLimit: readInteger("BRUME_DNS_RATE_LIMIT", 200, 1_000_000),
      transfer: {
        addresses: parseList(read("BRUME_DNS_TRANSFER") ?? "").map((item) => checkBlock("BRUME_DNS_TRANSFER", item)),
        keys,
        notify: parseList(read("BRUME_DNS_NOTIFY") ?? "").map((item) => parseSecondary("BRUME_DNS_NOTIFY", item, keys)),
        catalog: readCatalog(),
      },
      resolvers:
        resolvers === undefined
          ? null
          : parseList(resolvers).map((item) => {
              const { host, port } = parseAddress("BRUME_DNS_RESOLVERS", item);
              return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
            }),
    },
    locations,
    network: {
      publicPools,
      publicPool6,
      sharedPools,
      pools: [
        { setting: "BRUME_PUBLIC_POOL", blocks: publicPools, isChosen: publicChoice !== undefined },
        { setting: "BRUME_SHARED_POOL", blocks: sharedPools, isChosen: sharedChoice !== undefined },
        { setting: "BRUME_PUBLIC_POOL6", blocks: publicPool6 === null ? [] : [publicPool6], isChosen: true },
      ],
      nat,
      publicAddress,
      wireguardPort: readInteger("BRUME_WIREGUARD_PORT", 51_820, 65_535, 1024),
      forwarders: parseList(read("BRUME_GUEST_DNS") ?? "").map((item) => {
        if (isIP(item)) return item;
        throw new ConfigError("BRUME_GUEST_DNS", "addresses of name servers with commas", item);
      }),
      limits: {
        network: readInteger("BRUME_NETWORK_CONNECTIONS", 65_536, 10_000_000, 100),
        server: readInteger("BRUME_SERVER_CONNECTIONS", 16_384, 10_000_000, 100),
        packets: readInteger("BRUME_SERVER_PACKETS", 200_000, 100_000_000, 100),
      },
      opened: parseList(read("BRUME_GUEST_REACH") ?? "").map((item) => checkBlock("BRUME_GUEST_REACH", item)),
    },
    webhookAllow: parseList(read("BRUME_WEBHOOK_ALLOW") ?? "").map((item) => checkBlock("BRUME_WEBHOOK_ALLOW", item)),
    backupFolder: read("BRUME_BACKUPS") ?? null,
    cpuOvercommit: readInteger("BRUME_CPU_OVERCOMMIT", 8, 64, 1),
    disk: {
      operations: readInteger("BRUME_DISK_IOPS", 20_000, 100_000_000),
      bandwidth: readInteger("BRUME_DISK_BANDWIDTH", 1000, 1_000_000),
    },
    diskLow: readInteger("BRUME_DISK_LOW", 1000, 100_000_000),
    keep: parseKeep(read("BRUME_KEEP") ?? ""),
    simulate: readInteger("BRUME_SIMULATE", 0, 1) === 1,
    unknown: Object.keys(environment).filter((name) => name.startsWith("BRUME_") && !used.has(name)),
  };
  return Object.freeze(config);
}
