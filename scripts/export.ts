/** `npm run export -- FILE`: all rows of a database as a portable file, for `npm run import` into SQLite or PostgreSQL. */
import { exportFile } from "../service/src/store/export.ts";
import { callOf, locate, openSnapshot, print, run, show } from "./database.ts";

const usage = `${callOf("export")} FILE [--from DATABASE] [--replace]
  FILE        path of the export; an existing file is kept unless --replace is given
  --from      a database file or a postgresql:// URL; default: the one of BRUME_DATABASE or BRUME_DATA`;

await run(usage, { from: { type: "string" }, replace: { type: "boolean" } }, async (file, { from, replace }) => {
  const location = locate(from as string | undefined);
  const snapshot = await openSnapshot(location);
  try {
    const rows = await exportFile(snapshot, file, {
      replace: replace === true,
      onProgress: (table, done, total) => show(`${table}: ${done} of ${total}`),
    });
    show("");
    print(`Exported ${rows} rows of ${location.shown} to ${file}.`);
    print(
      `Next: ${callOf("import")} FILE --to DATABASE. Copy the key of the secrets (file key of BRUME_DATA) yourself.`,
    );
  } finally {
    await snapshot.close();
  }
});
