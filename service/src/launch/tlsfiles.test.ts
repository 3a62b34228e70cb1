import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { stampOf, watchFiles } from "./tlsfiles.ts";

/** Watches two new files. `ticks` passes so many periods. */
function watch(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "brume-tls-"));
  t.after(() => rmSync(folder, { recursive: true }));
  t.mock.timers.enable({ apis: ["setInterval"] });
  const paths = { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") };
  for (const path of Object.values(paths)) writeFileSync(path, "first");
  const taken: string[] = [];
  const failures: string[] = [];
  const begin = (stamp: string) =>
    watchFiles(
      paths,
      stamp,
      ({ certificate }) => taken.push(certificate),
      (reason) => failures.push(reason),
    );
  const ticks = (count: number) => t.mock.timers.tick(1000 * count);
  return { paths, taken, failures, begin, ticks };
}

test("a file that no call can read is reported once, and its successor is used", (t) => {
  const { paths, taken, failures, begin, ticks } = watch(t);
  begin(stampOf(paths));
  rmSync(paths.certificate);
  symlinkSync(paths.certificate, paths.certificate);
  ticks(4);
  assert.equal(failures.length, 1);
  assert.match(failures.join(), /ELOOP/);
  rmSync(paths.certificate);
  writeFileSync(paths.certificate, "second");
  ticks(4);
  assert.deepEqual([taken, failures.length], [["second"], 1]);
});

test("files that changed after the stamp, before the watch begins, are used", (t) => {
  const { paths, taken, begin, ticks } = watch(t);
  const stamp = stampOf(paths);
  writeFileSync(paths.certificate, "changed");
  begin(stamp);
  ticks(4);
  assert.deepEqual(taken, ["changed"]);
});

test("files are read again after a change of permissions alone", (t) => {
  const { paths, taken, begin, ticks } = watch(t);
  begin(stampOf(paths));
  const { ctimeMs } = statSync(paths.key);
  while (statSync(paths.key).ctimeMs === ctimeMs) chmodSync(paths.key, 0o600);
  ticks(4);
  assert.deepEqual(taken, ["first"]);
});
