/** The release of this program. */
import { readFileSync } from "node:fs";

/** Version in package.json. */
export const { version: release } = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
) as { readonly version: string };

/** Hash of all sources, set by the bundler. */
declare const BRUME_BUILD: string | undefined;

/** Identifies the code of this program; null if it runs from the sources. */
export const build: string | null = typeof BRUME_BUILD === "undefined" ? null : BRUME_BUILD;
