/**
 * Reads the settings from the environment into one validated, frozen object. Every setting has a default that works on a new host. An
 * invalid value stops the start; the error names the setting, the expected form and the value.
 * `config/` contains the settings of one subject each.
 */
import { isAbsolute, resolve } from "node:path";
import { type DnsConfig, readDns } from "./config/dns.ts";
import { readSources, type Sources } from "./config/file.ts";
import { type NetworkConfig, readNetwork } from "./config/network.ts";
import { type Keep, parseKeep } from "./config/retention.ts";
import { keyOf, type SettingName, settingNames } from "./config/settings.ts";
import { checkRedirect, readTlsSettings, type TlsConfig } from "./config/tls.ts";
import {
  ConfigError,
  checkBlock,
  createSettings,
  type Endpoint,
  type Environment,
  parseEndpoint,
  parseList,
} from "./config/value.ts";

/** All settings, validated. */
export interface Config extends TlsConfig {
  readonly listen: Endpoint;
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
  /** 2: as root, an agent that drives the host, and a control plane without its rights. 1: one process. */
  readonly processes: number;
  readonly dns: DnsConfig;
  /** Titles of the locations; the first is the default. */
  readonly locations: readonly string[];
  readonly network: NetworkConfig;
  /** Addresses and blocks that webhooks may call although they are not public. */
  readonly webhookAllow: readonly string[];
  /** Folder of daily backups, which must exist; null: the folder of images. */
  readonly backupFolder: string | null;
  /** Hours that an upload of an image waits for more content. */
  readonly uploadHours: number;
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
  /** Refuses to start with simulated servers or networks. */
  readonly requireEngines: boolean;
  /** Capacity of the simulated host: cores, MB of memory, GB of disk. */
  readonly simulatedHost: { readonly cores: number; readonly memory: number; readonly disk: number };
  /** Variables that start with `BRUME_` and are not settings. */
  readonly unknown: readonly string[];
}

/** Levels of the log, the most important first. */
const logLevels = ["error", "warn", "info", "debug"] as const;
/** A value of `logLevels`. */
export type LogLevel = (typeof logLevels)[number];

/** Parses `CORES/RAM/DISK`, with RAM and disk in GB. */
function parseHost(value: string): Config["simulatedHost"] {
  const [, cores, ram, disk] = /^([1-9]\d{0,5})\/([1-9]\d{0,7})\/([1-9]\d{0,8})$/.exec(value) ?? [];
  if (cores === undefined)
    throw new ConfigError(
      "BRUME_SIMULATED_HOST",
      "CORES/RAM/DISK with RAM and disk in GB, such as 64/1024/65536",
      value,
    );
  return { cores: Number(cores), memory: Number(ram) * 1024, disk: Number(disk) };
}

/** Reads all settings from variables and the settings file. Throws an error that names the line of an invalid one. */
export function loadSettings(environment: Environment, sources: Sources = readSources(environment)): Config {
  try {
    const config = loadConfig(sources.environment);
    checkRedirect(config);
    return config;
  } catch (error) {
    const place = error instanceof ConfigError ? sources.places.get(error.setting) : undefined;
    if (place === undefined || !(error instanceof ConfigError)) throw error;
    const text = error.message.replaceAll(/\bBRUME_[A-Z0-9_]+\b/g, (name) =>
      (settingNames as readonly string[]).includes(name) ? keyOf(name) : name,
    );
    throw new Error(`${place}: ${text}`, { cause: error });
  }
}

/** Reads all settings from variables. Throws `ConfigError` for the first invalid one. */
export function loadConfig(environment: Environment): Config {
  const settings = createSettings(environment);
  const { read, readInteger } = settings;
  const readHex = (name: SettingName): string | null => {
    const value = read(name);
    if (value === undefined) return null;
    if (!/^[0-9a-f]{64}$/.test(value)) throw new ConfigError(name, "64 lower-case hexadecimal characters", null);
    return value;
  };
  const readLocations = (): string[] => {
    const value = read("BRUME_LOCATIONS");
    const names = parseList(value);
    const folded = new Set(names.map((name) => name.toLowerCase()));
    if (names.length === 0 || folded.size < names.length || !names.every((name) => /^[^\p{Cc}<>]{1,64}$/u.test(name)))
      throw new ConfigError("BRUME_LOCATIONS", "different names of 1 to 64 characters, with commas", value);
    return names;
  };
  const locations = readLocations();
  const level = read("BRUME_LOG");
  if (!(logLevels as readonly string[]).includes(level))
    throw new ConfigError("BRUME_LOG", `one of ${logLevels.join(", ")}`, level);
  const data = read("BRUME_DATA");
  const database = read("BRUME_DATABASE") ?? null;
  if (database !== null && !/^postgres(ql)?:\/\//.test(database))
    throw new ConfigError("BRUME_DATABASE", "postgres://USER:PASSWORD@HOST/NAME", null);

  const config: Config = {
    listen: parseEndpoint("BRUME_LISTEN", read("BRUME_LISTEN")),
    ...readTlsSettings(settings),
    lenientHttp: readInteger("BRUME_LENIENT_HTTP") === 1,
    dataFolder: isAbsolute(data) ? data : resolve(data),
    databaseUrl: database,
    token: readHex("BRUME_TOKEN"),
    key: readHex("BRUME_KEY"),
    logLevel: level as LogLevel,
    processes: readInteger("BRUME_PROCESSES"),
    dns: readDns(settings),
    locations,
    network: readNetwork(settings, locations.length),
    webhookAllow: parseList(read("BRUME_WEBHOOK_ALLOW") ?? "").map((item) => checkBlock("BRUME_WEBHOOK_ALLOW", item)),
    backupFolder: read("BRUME_BACKUPS") ?? null,
    uploadHours: readInteger("BRUME_UPLOAD_HOURS"),
    cpuOvercommit: readInteger("BRUME_CPU_OVERCOMMIT"),
    disk: {
      operations: readInteger("BRUME_DISK_IOPS"),
      bandwidth: readInteger("BRUME_DISK_BANDWIDTH"),
    },
    diskLow: readInteger("BRUME_DISK_LOW"),
    keep: parseKeep(read("BRUME_KEEP") ?? ""),
    simulate: readInteger("BRUME_SIMULATE") === 1,
    requireEngines: readInteger("BRUME_REQUIRE_ENGINES") === 1,
    simulatedHost: parseHost(read("BRUME_SIMULATED_HOST")),
    unknown: settings.unread(),
  };
  return Object.freeze(config);
}
