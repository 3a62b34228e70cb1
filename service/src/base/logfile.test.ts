import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { endOfLog, trimLog } from "./logfile.ts";

const root = mkdtempSync(join(tmpdir(), "brume-logfile-"));
after(() => rmSync(root, { recursive: true }));
const path = (name: string): string => join(root, name);

test("trims a long log to its beginning and end, and it continues to grow", () => {
  const file = path("long");
  writeFileSync(file, `first\n${"x".repeat(9 * 2 ** 20)}\nlast\n`);
  trimLog(file);
  appendFileSync(file, "next\n");
  const text = readFileSync(file, "latin1");
  assert.ok(statSync(file).size < 2 * 2 ** 20);
  assert.match(text, /^first\n/);
  assert.match(text, /\n\[\d+ bytes are left out here\]\n/);
  assert.match(text, /\nlast\nnext\n$/);
  const short = path("short");
  writeFileSync(short, "as it is");
  trimLog(short);
  trimLog(path("none"));
  assert.equal(readFileSync(short, "utf8"), "as it is");
  assert.deepEqual(
    [endOfLog(file, 9), endOfLog(short, 500), endOfLog(path("none"), 500)],
    ["last\nnext", "as it is", ""],
  );
});
