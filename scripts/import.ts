/** `npm run import -- FILE`: creates the tables of a new database and fills them from an export. */
import { existsSync } from "node:fs";
import { importFile } from "../service/src/store/import.ts";
import { migrate } from "../service/src/store/migrate.ts";
import { callOf, locate, openStore, print, run, show } from "./database.ts";

const usage = `${callOf("import")} FILE [--to DATABASE]
  FILE        a file from the command export of the same version of Brume
  --to        a database file or a postgresql:// URL, without rows; default: the one of BRUME_DATABASE or BRUME_DATA`;

await run(usage, { to: { type: "string" } }, async (file, { to }) => {
  if (!existsSync(file)) throw new Error(`file ${file} does not exist`);
  const location = locate(to as string | undefined);
  const store = await openStore(location);
  try {
    await migrate(store);
    const rows = await importFile(store, file, {
      onProgress: (table, done, total) => show(`${table}: ${done} of ${total}`),
    });
    show("");
    print(`Imported ${rows} rows into ${location.shown}.`);
    print("Next: copy the file key of the old BRUME_DATA into the new one, then start the service.");
  } finally {
    await store.close();
  }
});
