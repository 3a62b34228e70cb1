/** `npm run backup -- FILE`: a copy of the running service's SQLite database; with `--with-disks` of disks and images too. */
import { backup } from "../service/src/store/backup.ts";
import { backUpAll } from "./backup-disks.ts";
import { locate, megabytes, requireFile, run, say, show } from "./database.ts";

const usage = `npm run backup -- FILE [--from DATABASE] [--replace]
npm run backup -- FOLDER --with-disks
  FILE        where the copy goes; one that is there is kept unless --replace is given
  --from      the database file; default: that of BRUME_DATA
  --with-disks  images and disks too, in a new folder in FOLDER; what is unchanged since the last one is not copied again`;

const options = { from: { type: "string" }, replace: { type: "boolean" }, "with-disks": { type: "boolean" } } as const;

await run(usage, options, async (file, { from, replace, "with-disks": withDisks }) => {
  if (withDisks === true) {
    if (from !== undefined || replace !== undefined)
      throw new Error(
        "--with-disks backs up the installation of BRUME_DATA into a new folder: leave --from and --replace out",
      );
    return backUpAll(file);
  }
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
