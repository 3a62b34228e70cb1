/** The release of this program. */
import { readFileSync } from "node:fs";

/** Version in package.json. */
export const { version: release } = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
) as { readonly version: string };
