/** The data folder of two processes: who owns what, the conversion of a folder of an earlier release, and what root puts there later. */
import assert from "node:assert/strict";
import fs, {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ensureSecretFile } from "../../service/src/base/secretfile.ts";
import { needsConversion, prepareFolder } from "../../service/src/launch/folder.ts";
import { connect } from "../../service/src/store/sqlite.ts";

/** Ids that no user has. */
const account = { uid: 60_123, gid: 60_124 };
const skip = process.getuid?.() !== 0 && "needs root";
const root = mkdtempSync(join(tmpdir(), "brume-folder-"));
after(() => rmSync(root, { recursive: true, force: true }));

let made = 0;
/** Creates a folder as an earlier release leaves it after `kill -9`: the last row is only in the WAL. */
function createOld(): string {
  const folder = join(root, `${++made}`, "data");
  mkdirSync(join(folder, "servers"), { recursive: true });
  const file = join(folder, "brume.db");
  const writer = connect(file, { readOnly: false });
  writer.script(
    "PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER); PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO t VALUES (1)",
  );
  const files = ["brume.db", "brume.db-wal", "brume.db-shm"].map(
    (name) => [name, readFileSync(join(folder, name))] as const,
  );
  writer.close();
  for (const [name, content] of files) writeFileSync(join(folder, name), content, { mode: 0o600 });
  writeFileSync(join(folder, "key"), `${"a".repeat(64)}\n`, { mode: 0o600 });
  writeFileSync(join(folder, "token"), `${"b".repeat(64)}\n`, { mode: 0o600 });
  writeFileSync(join(folder, "url"), "https://127.0.0.1:8080\n");
  writeFileSync(join(folder, "certificate.pem"), "of an earlier start\n");
  mkdirSync(join(folder, "acme"), { mode: 0o700 });
  writeFileSync(join(folder, "acme/certificate.pem"), "ordered\n", { mode: 0o600 });
  return folder;
}

function rowsIn(folder: string): number {
  const reader = connect(join(folder, "brume.db"), { readOnly: false });
  try {
    return Number(reader.first("SELECT count(*) AS n FROM t", [])?.["n"]);
  } finally {
    reader.close();
  }
}

function assertDivided(folder: string): void {
  assert.equal(statSync(folder).uid, 0);
  assert.equal(lstatSync(join(folder, "servers")).uid, 0);
  for (const name of ["brume.db", "key", "token"]) {
    assert.equal(readlinkSync(join(folder, name)), `control/${name}`);
    const { uid, gid, mode, nlink } = lstatSync(join(folder, "control", name));
    assert.deepEqual([uid, gid, mode & 0o777, nlink], [account.uid, account.gid, 0o600, 1], name);
  }
  for (const name of ["url", "certificate.pem", "acme"])
    assert.equal(readlinkSync(join(folder, name)), `control/${name}`);
  assert.equal(readFileSync(join(folder, "control/acme/certificate.pem"), "utf8"), "ordered\n");
  for (const name of ["acme", "acme/certificate.pem"])
    assert.equal(statSync(join(folder, "control", name)).uid, account.uid);
  const ownFolder = statSync(join(folder, "control"));
  assert.deepEqual([ownFolder.uid, ownFolder.mode & 0o777], [account.uid, 0o700]);
  for (const end of ["-wal", "-shm"]) assert.ok(!existsSync(join(folder, `brume.db${end}`)));
  assert.ok(!needsConversion(folder));
}

test("a folder of an earlier release is converted, with the rows of an interrupted run", { skip }, () => {
  const folder = createOld();
  assert.ok(needsConversion(folder));
  prepareFolder(folder, account);
  assertDivided(folder);
  assert.equal(rowsIn(folder), 1);
  prepareFolder(folder, account);
  assertDivided(folder);
});

test("a conversion that ends after any step is completed by the next start, and loses no row", { skip }, () => {
  const changes = ["mkdirSync", "linkSync", "symlinkSync", "renameSync", "rmSync", "fchmodSync", "fchownSync"] as const;
  let steps = 0;
  for (let last = 0; ; last++) {
    const folder = createOld();
    const kept = changes.map((name) => [name, fs[name]] as const);
    let count = 0;
    for (const [name, call] of kept)
      Object.assign(fs, {
        [name]: (...input: never[]) => {
          if (count++ === last) throw new Error("killed");
          return (call as (...input: never[]) => unknown)(...input);
        },
      });
    syncBuiltinESMExports();
    let isKilled = false;
    try {
      prepareFolder(folder, account);
    } catch (error) {
      assert.equal((error as Error).message, "killed");
      isKilled = true;
    } finally {
      for (const [name, call] of kept) Object.assign(fs, { [name]: call });
      syncBuiltinESMExports();
    }
    // A script, or the earlier release, may use the database in between.
    assert.equal(rowsIn(folder), 1, `after step ${last}`);
    prepareFolder(folder, account);
    assertDivided(folder);
    assert.equal(rowsIn(folder), 1, `after step ${last} and the next start`);
    steps = last;
    if (!isKilled) break;
  }
  assert.ok(steps > 15, `${steps} steps`);
});

test("a new folder is divided before it has files", { skip }, () => {
  const folder = join(root, "new", "data");
  prepareFolder(folder, account);
  assert.deepEqual([statSync(folder).uid, statSync(folder).mode & 0o777], [0, 0o700]);
  assert.equal(readlinkSync(join(folder, "token")), "control/token");
  // A service in one process creates its files through the links.
  const { value, isNew } = ensureSecretFile(folder, "token");
  assert.deepEqual([isNew, readFileSync(join(folder, "control/token"), "utf8")], [true, `${value}\n`]);
  assert.equal(readlinkSync(join(folder, "token")), "control/token");
});

test("files that root writes while the service runs in one process belong to the user later", { skip }, () => {
  const folder = createOld();
  prepareFolder(folder, account);
  const written = ["url", "certificate.pem", "acme/certificate.pem", "acme/attempt.json"];
  for (const name of written) {
    rmSync(join(folder, "control", name), { force: true });
    writeFileSync(join(folder, name), "new");
  }
  prepareFolder(folder, account);
  for (const name of written) {
    const { uid, mode } = lstatSync(join(folder, "control", name));
    assert.deepEqual([uid, mode & 0o777], [account.uid, 0o600], name);
    assert.equal(readFileSync(join(folder, "control", name), "utf8"), "new");
  }
});

test("a folder of certificates that the user replaced by a link is not followed", { skip }, () => {
  const folder = createOld();
  prepareFolder(folder, account);
  const outside = join(root, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "shadow"), "of root", { mode: 0o600 });
  rmSync(join(folder, "control/acme"), { recursive: true });
  symlinkSync(outside, join(folder, "control/acme"));
  prepareFolder(folder, account);
  assert.deepEqual([statSync(outside).uid, statSync(join(outside, "shadow")).uid], [0, 0]);
});

test("a restored database is taken only where it replaces nothing", { skip }, () => {
  const folder = createOld();
  prepareFolder(folder, account);
  unlinkSync(join(folder, "brume.db"));
  writeFileSync(join(folder, "brume.db"), "restored", { mode: 0o600 });
  assert.throws(() => prepareFolder(folder, account), /brume\.db and .*control\/brume\.db both exist/);
  for (const end of ["", "-wal", "-shm"]) rmSync(join(folder, "control", `brume.db${end}`), { force: true });
  prepareFolder(folder, account);
  assert.equal(readFileSync(join(folder, "control/brume.db"), "utf8"), "restored");
  assertDivided(folder);
});

test("a deleted token is deleted, also where only its link was", { skip }, () => {
  const folder = createOld();
  prepareFolder(folder, account);
  unlinkSync(join(folder, "token"));
  prepareFolder(folder, account);
  assert.ok(!existsSync(join(folder, "control/token")));
  assert.equal(readlinkSync(join(folder, "token")), "control/token");
});

test("files that root put there are given to the user; links and files of others never", { skip }, () => {
  const folder = createOld();
  prepareFolder(folder, account);
  const control = join(folder, "control");
  const outside = join(folder, "..", "outside");
  writeFileSync(outside, "of root");
  rmSync(join(control, "key"));
  symlinkSync(outside, join(control, "key"));
  rmSync(join(control, "token"));
  linkSync(outside, join(control, "token"));
  writeFileSync(join(control, "brume.db.lock"), "");
  prepareFolder(folder, account);
  assert.equal(statSync(outside).uid, 0);
  assert.equal(lstatSync(join(control, "brume.db.lock")).uid, account.uid);
});

test("a folder of another user is refused", { skip }, () => {
  const folder = join(root, "foreign");
  mkdirSync(folder);
  fs.chownSync(folder, account.uid, account.gid);
  assert.throws(() => prepareFolder(folder, account), /belongs to user 60123/);
});
