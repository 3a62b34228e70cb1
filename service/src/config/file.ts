/**
 * The settings file `brume.toml`. Its keys are the names of the variables without `BRUME_`, in lower case; a table is the beginning of the
 * names in it, so `[dns]` with `listen` is `dns_listen`. A variable wins over the file.
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parse, TomlError, type TomlTable, type TomlValue } from "smol-toml";
import { nearest } from "./nearest.ts";
import { keyOf, type SettingName, settingNames } from "./settings.ts";
import type { Environment } from "./value.ts";

/** Where a file is looked for if `BRUME_CONFIG` is not set; the first that exists is read. */
const defaultFiles = ["brume.toml", "/etc/brume/brume.toml"];

/** Settings of variables and file together. */
export interface Sources {
  /** All settings as variables, without `BRUME_CONFIG`. */
  readonly environment: Environment;
  /** For each setting of the file that no variable replaces: `brume.toml:3`. */
  readonly places: ReadonlyMap<string, string>;
  /** Path of the file; null: there is none. */
  readonly file: string | null;
}

/** Returns the value as the text of a variable; null: it has no such form. */
function textOf(value: TomlValue): string | null {
  if (typeof value === "boolean") return value ? "1" : "0";
  if (typeof value === "string" || typeof value === "number" || typeof value === "bigint") return String(value);
  if (!Array.isArray(value)) return null;
  const texts = value.map((one) => (Array.isArray(one) ? null : textOf(one)));
  return texts.every((text) => text !== null) ? texts.join(",") : null;
}

/** Returns all values with their complete keys: tables joined by `_`. */
function flatten(table: Readonly<Record<string, TomlValue>>, before = ""): [key: string, value: TomlValue][] {
  return Object.entries(table).flatMap(([name, value]): [string, TomlValue][] => {
    const key = `${before}${name}`;
    const isTable = typeof value === "object" && !Array.isArray(value) && !(value instanceof Date);
    return isTable ? flatten(value as Record<string, TomlValue>, `${key}_`) : [[key, value]];
  });
}

/** Returns the number of the line that sets each key. */
function linesOf(text: string): Map<string, number> {
  const lines = new Map<string, number>();
  let table = "";
  const join = (name: string) => name.replaceAll(/[\s"']/g, "").replaceAll(".", "_");
  for (const [index, line] of text.split("\n").entries()) {
    const header = /^\s*\[([^[\]]+)\]\s*(?:#.*)?$/.exec(line)?.[1];
    if (header !== undefined) table = `${join(header)}_`;
    const name = /^\s*([\w."' -]+?)\s*=/.exec(line)?.[1];
    if (name !== undefined && !lines.has(table + join(name))) lines.set(table + join(name), index + 1);
  }
  return lines;
}

/** Returns the settings of a file by the names of their variables. Throws an error that names the line. */
export function readToml(
  text: string,
  path: string,
): Map<SettingName, { readonly value: string; readonly place: string }> {
  let table: TomlTable;
  try {
    table = parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const reason = error.message.split("\n")[0]?.replace("Invalid TOML document: ", "") ?? "";
    throw new Error(`${path}:${error.line}:${error.column}: ${reason}`, { cause: error });
  }
  const lines = linesOf(text);
  const names = new Map(settingNames.map((name) => [keyOf(name), name]));
  const found = new Map<SettingName, { value: string; place: string }>();
  for (const [key, one] of flatten(table)) {
    const place = `${path}:${lines.get(key) ?? 1}`;
    const name = names.get(key);
    if (name === undefined) {
      const near = nearest(key, [...names.keys()]);
      throw new Error(`${place}: there is no setting "${key}".${near === null ? "" : ` Did you mean ${near}?`}`);
    }
    if (found.has(name)) throw new Error(`${place}: ${key} is set twice.`);
    const value = textOf(one);
    if (value === null) throw new Error(`${place}: ${key} must be a text, a number, true, false, or a list of texts.`);
    found.set(name, { value, place });
  }
  return found;
}

const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === "ENOENT";

/** Reads the first of these files that exists. */
function readFirst(paths: readonly string[]): { readonly path: string; readonly text: string } | null {
  for (const path of paths)
    try {
      return { path, text: readFileSync(path, "utf8") };
    } catch (error) {
      if (!isMissing(error)) throw new Error(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
    }
  return null;
}

/** Reads the settings file. `BRUME_CONFIG` names it; if it is set to an empty text, no file is read. */
export function readSources(environment: Environment, defaults: readonly string[] = defaultFiles): Sources {
  const { BRUME_CONFIG: chosen, ...variables } = environment;
  const paths = chosen === undefined ? defaults : [chosen].filter((path) => path !== "");
  const file = readFirst(paths);
  if (file === null && chosen !== undefined && chosen !== "")
    throw new Error(`The settings file ${resolve(chosen)} does not exist.`);
  const found = file === null ? [] : [...readToml(file.text, file.path)];
  const used = found.filter(([name]) => (variables[name] ?? "").trim() === "");
  return {
    environment: { ...variables, ...Object.fromEntries(used.map(([name, { value }]) => [name, value])) },
    places: new Map(used.map(([name, { place }]) => [name, place])),
    file: file?.path ?? null,
  };
}
