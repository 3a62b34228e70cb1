import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import type { Start } from "./children.ts";
import { searchPath } from "./exec.ts";
import { loadQuickStart } from "./quickstart.ts";

const spawn = { env: { PATH: searchPath, GIVEN: "a b" }, cwd: undefined, uid: undefined, gid: undefined };
const passed: (readonly string[])[] = [];
/** Records what is passed to Node, and fails. */
const byNode: Start = (argv) => {
  passed.push(argv);
  throw new Error("passed");
};
const start = await loadQuickStart(byNode);

async function run(argv: readonly string[], stdin = "") {
  const child = start(argv, spawn);
  assert.ok(child.stdin && child.stdout && child.stderr);
  child.stdin.end(stdin);
  const [out, err, end] = await Promise.all([text(child.stdout), text(child.stderr), child.closed]);
  return { out, err, ...end, pid: child.pid };
}

test("a child gets its input, arguments and environment, and nothing else", async () => {
  const found = await run(["sh", "-c", 'cat; echo "$1" "$GIVEN" >&2; exit 3', "sh", "two words"], "input");
  assert.deepEqual([found.out, found.err, found.code, found.signal], ["input", "two words a b\n", 3, null]);
  assert.equal((await run(["env"])).out, `PATH=${searchPath}\nGIVEN=a b\n`);
  const files = ["ls", "/proc/self/fd"];
  assert.equal((await run(files)).out, spawnSync("ls", files.slice(1), { encoding: "utf8" }).stdout);
});

test("a child leads its process group and session, and ignores and blocks no signal", async () => {
  const { out, pid } = await run(["cut", "-d", " ", "-f", "5,6", "/proc/self/stat"]);
  assert.equal(out, `${pid} ${pid}\n`);
  // The program itself, not a shell: a shell blocks signals while it starts a program.
  const signals = await run(["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"]);
  assert.equal(signals.out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
});

test("a signal that ended a child is reported by its name", async () => {
  const { code, signal } = await run(["sh", "-c", "kill -TERM $$"]);
  assert.deepEqual([code, signal], [null, "SIGTERM"]);
});

test("output is read to its end, also from a descendant that lives longer", async () => {
  const { out } = await run(["sh", "-c", "(sleep 0.05; echo late) & head -c 300000 /dev/zero"]);
  assert.equal(out.length, 300_005);
});

test("each of many children has its own exit code", async () => {
  const codes = Array.from({ length: 20 }, (_, index) => index);
  const ends = await Promise.all(codes.map((code) => run(["sh", "-c", `exit ${code}`])));
  assert.deepEqual(
    ends.map(({ code }) => code),
    codes,
  );
});

test("users, folders, missing programs and arguments with a zero byte are left to Node", () => {
  const calls = [
    [["true"], { ...spawn, uid: 1 }],
    [["true"], { ...spawn, gid: 1 }],
    [["true"], { ...spawn, cwd: "/" }],
    [["brume-no-such-program"], spawn],
    [["/etc/passwd"], spawn],
    [["true", "a\0b"], spawn],
    [["true"], { ...spawn, env: { ...spawn.env, GIVEN: "a\0b" } }],
  ] as const;
  for (const [argv, options] of calls) assert.throws(() => start(argv, options), /passed/);
  assert.deepEqual(
    passed,
    calls.map(([argv]) => argv),
  );
});
