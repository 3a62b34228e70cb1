/** The output of `brume config`: whether the settings are valid, and each with its value and source. */

import type { Sources } from "./file.ts";
import { keyOf, settingNames, settings } from "./settings.ts";

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
