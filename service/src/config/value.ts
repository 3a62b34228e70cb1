/** Reading of single settings: texts, integers, and values that several settings share, such as endpoints and blocks of addresses. */
import { isIP, isIPv6 } from "node:net";
import { type DefaultName, type IntegerName, type SettingName, settings } from "./settings.ts";

/** Host name or address, and port. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** A setting has an invalid value. Its message is a sentence for the operator. */
export class ConfigError extends Error {
  /** Name of its variable. */
  readonly setting: string;

  /** `actual`: the value; null: it is secret and not printed. */
  constructor(name: string, expected: string, actual: string | null) {
    super(
      `${name} must be ${expected}${actual === null ? ". Its value is secret and not shown here" : `, not "${actual}"`}.`,
    );
    this.name = "ConfigError";
    this.setting = name;
  }

  /** Returns an error about settings that exclude or need each other. `name`: the setting whose line is named. */
  static conflict(name: string, sentence: string): ConfigError {
    const error = new ConfigError(name, "", null);
    error.message = sentence;
    return error;
  }
}

/** Reads settings by name from the environment. */
export interface Settings {
  /** Returns the trimmed value, or the default of the setting; undefined: it has neither. */
  read(name: DefaultName): string;
  read(name: SettingName): string | undefined;
  /** Returns an integer in the range of the setting. */
  readInteger(name: IntegerName): number;
  /** Returns whether the setting has a value that is not its default. */
  isSet(name: SettingName): boolean;
  /** Returns the names of the environment that start with `BRUME_` and are no settings. */
  unread(): string[];
}

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Creates a reader of the settings in the environment. `readInteger` throws `ConfigError` for other values. */
export function createSettings(environment: Environment): Settings {
  const given = (name: SettingName): string => environment[name]?.trim() ?? "";
  const read = (name: SettingName): string | undefined => given(name) || settings[name].value;
  return {
    read: read as Settings["read"],
    isSet: (name) => given(name) !== "",
    readInteger(name) {
      const value = read(name) ?? "";
      const { range: [least, most] = [0, 0] } = settings[name];
      if (!/^\d{1,9}$/.test(value) || Number(value) > most || Number(value) < least)
        throw new ConfigError(name, `an integer from ${least} to ${most}`, value);
      return Number(value);
    },
    unread: () => Object.keys(environment).filter((name) => name.startsWith("BRUME_") && !(name in settings)),
  };
}

/** Parses `host:port`, `[v6]:port`, or a port alone, which means 127.0.0.1. With `defaultPort` a host alone is enough. */
export function parseEndpoint(name: string, value: string, defaultPort?: number): Endpoint {
  const found = /^(?:(?:\[([0-9a-f:.]+)\]|([^:[\]]+)):)?(\d{1,5})$/i.exec(value);
  const port = Number(found?.[3]);
  if (found && port <= 65_535) return { host: found[1] ?? found[2] ?? "127.0.0.1", port };
  if (defaultPort !== undefined && /^[^:\s]+$/.test(value)) return { host: value, port: defaultPort };
  throw new ConfigError(name, "an address and a port such as 127.0.0.1:8080", value);
}

/** Splits a list with commas; empty items are dropped. */
export const parseList = (value: string): string[] =>
  value
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");

/** Returns the address or block `value` unchanged. Throws `ConfigError` if it is neither. */
export function checkBlock(name: string, value: string): string {
  const [address = "", bits, ...rest] = value.split("/");
  const most = isIPv6(address) ? 128 : 32;
  if (isIP(address) && rest.length === 0 && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most)))
    return value;
  throw new ConfigError(name, "addresses or blocks such as 192.0.2.0/24, with commas", value);
}
