/** The output of `brume config`, and of the operation that lists settings: each with its value and source. */
import { basename } from "node:path";
import type { Sources } from "./file.ts";
import { describeSetting, keyOf, type SettingName, settingNames, settings } from "./settings.ts";
import type { Environment } from "./value.ts";

/** A setting with its source: `default`, `variable`, or the line of the file. */
export interface SettingReport {
  readonly Setting: string;
  readonly Variable: string;
  readonly Value: string | null;
  readonly Source: string;
}

/** Returns all settings; values of secrets, and passwords in URLs, are hidden. */
export function reportSettings({ environment, places }: Sources): SettingReport[] {
  return settingNames.map((name) => {
    const given = environment[name]?.trim() || undefined;
    const value = given ?? settings[name].value ?? null;
    return {
      Setting: keyOf(name),
      Variable: name,
      Value: value !== null && settings[name].secret ? "(hidden)" : value,
      Source: given === undefined ? "default" : (places.get(name) ?? "variable"),
    };
  });
}

/** Where each setting that is set comes from: a line such as `brume.toml:3`; empty: a variable. */
export type SetPlaces = Readonly<Partial<Record<SettingName, string>>>;

/** Returns the settings that are set, with their places. Folders of the file are left out. */
export const placesOf = ({ environment, places }: Sources): SetPlaces =>
  Object.fromEntries(
    settingNames
      .filter((name) => (environment[name] ?? "").trim() !== "")
      .map((name) => [name, basename(places.get(name) ?? "")]),
  );

/** A setting as clients of the API see it. The fields are those of the contract. */
export interface ShownSetting {
  readonly ID: number;
  readonly Name: string;
  readonly Variable: string;
  readonly Value: string | null;
  readonly IsSet: boolean;
  readonly IsHidden: boolean;
  readonly Default: string | null;
  readonly Unit: string;
  readonly Source: "Default" | "File" | "Variable";
  readonly Place: string | null;
  readonly NeedsRestart: boolean;
  readonly Description: string;
}

/**
 * Returns a text of the reference, `docs/operate.md`, without links and emphasis: a link becomes the file, or the title of a section and the
 * file. Code keeps its marks, as in the contract.
 */
const plain = (text: string): string =>
  text
    .replaceAll(/\[[^\]]+\]\(([a-z]+\.md)[^)]*\)/g, "docs/$1")
    .replaceAll(/\[([^\]]+)\]\(#[^)]*\)/g, '"$1" in docs/operate.md')
    .replaceAll("**", "");

/** Returns all settings. Values of secrets, and paths of the host, are hidden. The service reads every setting when it starts. */
export function showSettings(environment: Environment, places: SetPlaces): ShownSetting[] {
  return settingNames.map((name, index) => {
    const { value = null, absent = null, secret = false, path = false, unit = "" } = settings[name];
    const place = places[name];
    const isSet = place !== undefined;
    const IsHidden = isSet && (secret || path);
    return {
      ID: index + 1,
      Name: keyOf(name),
      Variable: name,
      Value: IsHidden ? null : isSet ? (environment[name]?.trim() ?? null) : value,
      IsSet: isSet,
      IsHidden,
      Default: value ?? (absent === null ? null : plain(absent).replaceAll("`", "")),
      Unit: unit,
      Source: isSet ? (place === "" ? "Variable" : "File") : "Default",
      Place: place || null,
      NeedsRestart: true,
      Description: plain(describeSetting(name)),
    };
  });
}
