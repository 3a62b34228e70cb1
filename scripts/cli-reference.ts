/** Writes docs/cli.md, the reference of the command brume, and docs/cloud.schema.json. Run it after a change of a command or of the contract; tests compare both. */
import { writeFileSync } from "node:fs";
import { cloudSchema } from "../cli/src/model/cloud/shape.ts";
import { renderPage } from "../cli/src/reference.ts";
import { allCommands } from "../cli/src/run.ts";

writeFileSync(new URL("../docs/cli.md", import.meta.url), renderPage(allCommands()));
writeFileSync(new URL("../docs/cloud.schema.json", import.meta.url), `${JSON.stringify(cloudSchema, null, 2)}\n`);
