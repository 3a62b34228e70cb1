/** `npm run backup -- FILE`: a copy of the running service's SQLite database. */
import { backup } from "../service/src/store/backup.ts";
import { locate, megabytes, requireFile, run, say, show } from "./database.ts";

const usage = `npm run backup -- FILE [--from DATABASE] [--replace]
  FILE        where the copy goes; one that is there is kept unless --replace is given
  --from      the database file; default: that of BRUME_DATA`;

await run(usage, { from: { type: "string" }, replace: { type: "boolean" } }, async (file, { from, replace }) => {
  const location = locate(from as string | undefined);
  if (location.isPostgres) {
    throw new Error(
      `${location.shown} is PostgreSQL, which backs up by itself: pg_dump --format=custom --file=FILE URL`,
    );
  }
  requireFile(location);
  const size = await backup(location.address, file, {
    replace: replace === true,
    onProgress: ({ stage, bytes, total }) =>
      show(stage === "copy" ? `copied ${megabytes(bytes)} of about ${megabytes(total)}` : "checking the copy"),
  });
  show("");
  say(`Backed up ${location.shown} to ${file} (${megabytes(size)}), checked.`);
  say("The key of its secrets is not in it: keep the file key of BRUME_DATA (or BRUME_KEY) too, in another place.");
  say(`To restore: stop the service, delete ${location.shown} and its -wal and -shm, and copy the backup there.`);
});
