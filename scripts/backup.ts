/** `npm run backup -- FILE`: a copy of the running service's SQLite database; with `--with-disks` of disks and images too. */
import { backup } from "../service/src/store/backup.ts";
import { backUpAll } from "./backup-disks.ts";
import { callOf, locate, megabytes, print, requireFile, run, show } from "./database.ts";

const usage = `${callOf("backup")} FILE [--from DATABASE] [--replace]
${callOf("backup")} FOLDER --with-disks
  FILE        path of the copy; an existing file is kept unless --replace is given
  --from      the database file; default: the one in BRUME_DATA
  --with-disks  also images and disks, in a new folder in FOLDER; files that did not change since the last backup are hard links`;

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
      `${location.shown} is PostgreSQL, which has its own backup: pg_dump --format=custom --file=FILE URL`,
    );
  }
  requireFile(location);
  const size = await backup(location.address, file, {
    replace: replace === true,
    onProgress: ({ stage, bytes, total }) =>
      show(stage === "copy" ? `copied ${megabytes(bytes)} of about ${megabytes(total)}` : "checking the copy"),
  });
  show("");
  print(`Backed up ${location.shown} to ${file} (${megabytes(size)}), checked.`);
  print(
    "The backup does not contain the key of the secrets: keep the file key of BRUME_DATA (or BRUME_KEY) in another place.",
  );
  print(`To restore: stop the service, delete ${location.shown} and its -wal and -shm, and copy the backup there.`);
});
