/** Writes the table of settings in docs/operate.md. Run it after a change of a setting; a test compares the page. */
import { readFileSync, writeFileSync } from "node:fs";
import { renderSettings } from "../service/src/config/settings.ts";

const page = new URL("../docs/operate.md", import.meta.url);
const text = readFileSync(page, "utf8");
writeFileSync(
  page,
  text.replace(/\| setting \| default \| meaning \|\n(?:\|.*\n)+/, () => `${renderSettings()}\n`),
);
