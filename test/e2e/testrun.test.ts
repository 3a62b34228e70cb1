/** The runner of the tests, `scripts/test.ts`: errors fail the test that they belong to, and nothing that a test leaves behind keeps a run from ending. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";

const runner = resolve(import.meta.dirname, "../../scripts/test.ts");

const files = {
  errors: `import { after, before, describe, test } from "node:test";
describe("a suite", () => {
  let number = 0;
  before(() => { number = 7; });
  after(() => console.log("after the suite"));
  test("of a timer", async () => { setTimeout(() => { throw new Error("thrown later"); }, 1); await new Promise(() => {}); });
  test("of a promise", async () => { Promise.reject(new Error("rejected")); await new Promise((done) => setTimeout(done, 20)); });
  test("of none", () => { if (number !== 7) throw new Error("the hook did not run"); });
});
`,
  handle: `import { createServer } from "node:net";
import { test } from "node:test";
test("leaves a server", () => new Promise((done) => createServer().listen(0, done)));
`,
  program: `import { spawn } from "node:child_process";
import { test } from "node:test";
test("leaves a program", () => {
  const left = spawn("sleep", ["300"], { stdio: "inherit", detached: true });
  left.unref();
  console.log("PID " + left.pid);
});
`,
};

describe("a run of tests", { concurrency: true }, () => {
  let folder = "";
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "brume-testrun-"));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, `${name}.test.mjs`), text);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  function run(name: keyof typeof files) {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const { status, stdout, stderr } = spawnSync(process.execPath, [runner, join(folder, `${name}.test.mjs`)], {
      env: { ...env, TEST_GRACE: "300" },
      encoding: "utf8",
      timeout: 120_000,
    });
    return { status, output: stdout + stderr };
  }

  test("an error that is thrown later fails its own test", () => {
    const { status, output } = run("errors");
    assert.equal(status, 1, output);
    assert.match(output, /^ {4}✖ of a timer/m);
    assert.match(output, /^ {4}✖ of a promise/m);
    assert.match(output, /^ {4}✔ of none/m);
    assert.match(output, /Error: thrown later[\s\S]*Error: rejected/);
    assert.match(output, /after the suite/);
  });

  test("an open handle ends it and names the file", () => {
    const { status, output } = run("handle");
    assert.equal(status, 1, output);
    assert.match(output, /^ {2}✔ leaves a server/m);
    assert.match(output, /open handles, perhaps of these files: \S*handle\.test\.mjs \(TCPServerWrap\)/);
  });

  test("a program that keeps its output open ends it and is named", () => {
    const { status, output } = run("program");
    process.kill(Number(/PID (\d+)/.exec(output)?.[1]), "SIGKILL");
    assert.equal(status, 1, output);
    assert.match(output, /keep the output open: sleep 300/);
  });
});
