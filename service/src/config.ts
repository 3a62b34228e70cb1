/**
 * The environment as one checked, frozen object: the only reader of `process.env`. Every setting has a default that works on a
 * fresh machine; a value that cannot be used stops the start with the name of the setting, what was expected and what came.
 */
import { isIP, isIPv4, isIPv6 } from "node:net";
import { isAbsolute, resolve } from "node:path";

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

export interface TransferKey {
  readonly name: string;
  readonly algorithm: string;
  /** Base64. */
  readonly secret: string;
  /** Zones that it is good for: of these names, and of these projects; null: all. */
  readonly only: { readonly zones: readonly string[]; readonly groups: readonly number[] } | null;
}

export interface Config {
  readonly listen: Endpoint;
  readonly tls: { readonly certificate: string; readonly key: string } | null;
  readonly lenientHttp: boolean;
  readonly dataFolder: string;
  /** `postgres://…`, or null for SQLite in the data folder. */
  readonly databaseUrl: string | null;
  /** First token, when the database has none; null: one is made and kept in `token` of the data folder. */
  readonly token: string | null;
  /** 64 hexadecimal characters; null: `key` of the data folder. */
  readonly key: string | null;
  readonly logLevel: LogLevel;
  readonly dns: {
    readonly listen: Endpoint;
    /** Names in the automatic NS set, ASCII, lower case, no final dot. */
    readonly names: readonly string[];
    /** Answers per second to one network; 0: no limit. */
    readonly rateLimit: number;
    readonly transfer: {
      readonly addresses: readonly string[];
      readonly keys: readonly TransferKey[];
      /** `key`: name of the one that signs what is sent there. */
      readonly notify: readonly (Endpoint & { readonly key?: string })[];
      /** Name of the catalog of zones (RFC 9432); null: there is none. */
      readonly catalog: string | null;
    };
    /** Servers to ask about delegation; null: the machine's own. */
    readonly resolvers: readonly string[] | null;
  };
  /** Titles of the locations; the first is the default. */
  readonly locations: readonly string[];
  readonly network: {
    /** Blocks from which public networks and their edges get theirs. */
    readonly publicPools: readonly string[];
    /** A block of /56 or larger from which each of them gets a /64; null: no IPv6. */
    readonly publicPool6: string | null;
    /** The block of each location's shared network. */
    readonly sharedPools: readonly string[];
    /** What is translated of networks that the world does not route. */
    readonly nat: (typeof natModes)[number];
    /** The IPv4 address under which the world sees this machine; null: its own. */
    readonly publicAddress: string | null;
    /** UDP port of the first edge with WireGuard; the next edge takes the next. */
    readonly wireguardPort: number;
    /** Name servers that edges ask for their servers; empty: edges answer no questions. */
    readonly forwarders: readonly string[];
    /** All blocks by their settings, for the comparison with what the host has. */
    readonly pools: readonly {
      readonly setting: string;
      readonly blocks: readonly string[];
      readonly isChosen: boolean;
    }[];
    /** Addresses and blocks of the host, or link-local, that servers may reach. */
    readonly opened: readonly string[];
    /** Connections of a network and of a server, and packets a second that a server sends. */
    readonly limits: { readonly network: number; readonly server: number; readonly packets: number };
  };
  /** Addresses and blocks that webhooks may call though they are not public. */
  readonly webhookAllow: readonly string[];
  /** Of daily backups, which must be there; null: with the other images. */
  readonly backupFolder: string | null;
  /** Processors of servers that one core of the host is counted for. */
  readonly cpuOvercommit: number;
  /** Of one server's disk, per second; 0: no limit. */
  readonly disk: {
    readonly operations: number;
    /** MB of 10^6 bytes. */
    readonly bandwidth: number;
  };
  /** MB that are to be free on the disk of the data. */
  readonly diskLow: number;
  /** How much is kept of what grows with use. */
  readonly keep: Keep;
  /** No machine runs and no packet flows, on purpose. */
  readonly simulate: boolean;
  /** Settings that start with `BRUME_` and that nobody reads. */
  readonly unknown: readonly string[];
}

export const logLevels = ["error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof logLevels)[number];

const natModes = ["never", "outside-private", "always"] as const;

export class ConfigError extends Error {
  constructor(name: string, expected: string, came: string) {
    super(`${name} must be ${expected}, not "${came}".`);
    this.name = "ConfigError";
  }
}

/** What is kept of each thing that grows with use, unless `BRUME_KEEP` says otherwise. */
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

/** `host:port`, `[v6]:port`, or a port alone on loopback. */
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

/** An address, with or without port 53 said otherwise. */
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

/** ASCII, in lower case, without the final dot; null: it is no name. */
function readName(value: string): string | null {
  const name = value.toLowerCase().replace(/\.$/, "");
  const good = /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
  return good.test(name) ? name : null;
}

const keyName = (value: string): string => value.toLowerCase().replace(/\.$/, "");

/**
 * As in `kdig -y`: `hmac-sha256:transfer.brume:c2VjcmV0`, and behind one more colon what it is good for if that is not everything:
 * zones and projects, `example.com+example.org+project/7`.
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

/** `192.0.2.54`, `192.0.2.54:5353`, `transfer@192.0.2.54`. */
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

/** First and last address of an IPv4 block, as numbers. */
function ends(block: string): readonly [first: number, last: number] {
  const [address = "", bits = "32"] = block.split("/");
  const first = address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
  return [first, first + 2 ** (32 - Number(bits)) - 1];
}

/** 10.63.0.0/16, and for further locations the next such blocks that are in no public pool. */
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
