/** `npm run backup -- FOLDER --with-disks` as an operator runs it, twice, and the restore as docs/operate.md describes it. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { databases } from "../support/databases.ts";
import { until } from "../support/waituntil.ts";
import { createServerHost, hindrance } from "./serverhost.ts";

/** Hashes by the paths of all files below. */
const hashesOf = (folder: string): Record<string, string> =>
  Object.fromEntries(
    globSync("**", { cwd: folder, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
      .map((path) => [path.slice(folder.length), createHash("sha256").update(readFileSync(path)).digest("hex")]),
  );

for (const kind of databases)
  test(`a backup with disks brings a server back after its deletion (${kind})`, {
    skip: hindrance ?? false,
    timeout: 850_000,
  }, async (t) => {
    const host = await createServerHost({}, kind);
    const { folder } = host.brume;
    const backupFolder = mkdtempSync(join(tmpdir(), "brume-backup-"));
    t.after(async () => {
      await host.close();
      rmSync(backupFolder, { recursive: true, force: true });
    });
    const backups = join(backupFolder, "backups");
    const server = await host.create({ Name: "web" });
    await host.run(server.IP, "echo first >/root/file; sync");

    /** Resolves to the new folder, and the MB that were copied and that existed already. */
    const backUp = async (): Promise<{ path: string; copied: number; kept: number; output: string }> => {
      const { status, output } = await host.command("backup.ts", backups, "--with-disks");
      assert.equal(status, 0, output);
      const [, path, copied, kept] =
        /Backed up 1 servers and \d+ images to (\S+): copied ([\d.]+) MB, linked ([\d.]+) MB that did not change/.exec(
          output,
        ) ?? assert.fail(output);
      assert.equal(output.includes("pg_dump --format=custom"), kind === "postgres");
      assert.equal(existsSync(join(path ?? "", "brume.db")), kind === "sqlite");
      assert.deepEqual(
        readdirSync(join(folder, "servers")).filter((name) => name.endsWith(".copy")),
        [],
        "no copy is left in the data folder",
      );
      return { path: path ?? "", copied: Number(copied), kept: Number(kept), output };
    };
    const first = await backUp();
    await host.run(server.IP, "echo second >>/root/file; sync");
    const second = await backUp();
    assert.deepEqual(readdirSync(backups).length, 2);
    assert.ok(second.copied < first.copied && second.kept > 0, `${first.output}\n${second.output}`);
    const [image] = globSync("images/*/disk*", { cwd: first.path });
    const inodeOf = (path: string) => statSync(join(path, image ?? "")).ino;
    assert.equal(inodeOf(first.path), inodeOf(second.path), "an image that is unchanged is linked");
    const before = hashesOf(second.path);

    // Later than the backup: written to the guest, or all of the server deleted.
    if (kind === "sqlite") await host.delete(server.ID);
    else await host.run(server.IP, "echo lost >>/root/file; sync");
    cpSync(join(folder, "key"), join(backupFolder, "key"));
    assert.equal(await host.brume.end("SIGTERM"), 0);
    const down = await host.command("down.ts");
    assert.equal(down.status, 0, down.output);
    renameSync(folder, join(backupFolder, "old"));
    const restore = `mkdir -m 700 "$1" && cp -a "$2/." "$1/" && cp "$3" "$1/key" && chmod 600 "$1/key"`;
    await host.lab.run(host.lab.machine, ["sh", "-c", restore, "sh", folder, second.path, join(backupFolder, "key")]);
    await host.brume.start();

    const content = await until("the guest answers", () => host.ssh(server.IP, "cat /root/file"));
    assert.equal(content, "first\nsecond");
    assert.deepEqual(
      (await host.client.listServers()).map(({ ID, State }) => [ID, State]),
      [[server.ID, "Active"]],
    );
    assert.deepEqual(await host.client.listOrphans(), []);
    await host.run(server.IP, "echo third >>/root/file; sync");
    assert.deepEqual(hashesOf(second.path), before, "the guest does not write to the backup");
  });
