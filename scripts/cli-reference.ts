/** Writes docs/cli.md, the reference of the command brume. Run it after a change of a command; a test compares the page. */
import { writeFileSync } from "node:fs";
import { renderPage } from "../cli/src/reference.ts";
import { allCommands } from "../cli/src/run.ts";

writeFileSync(new URL("../docs/cli.md", import.meta.url), renderPage(allCommands()));
