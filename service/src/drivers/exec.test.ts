import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { CommandError, createExec, exec, hasPrintedTooMuch } from "./exec.ts";

const failure = (promise: Promise<unknown>): Promise<CommandError> =>
  promise.then(
    () => assert.fail("it worked"),
    (error: unknown) => {
      assert.ok(error instanceof CommandError);
      return error;
    },
  );

test("input and output are text", async () => {
  const text = "é".repeat(200_000);
  assert.equal(await exec.run(["cat"], { stdin: text }), text);
});

test("arguments are not interpreted by a shell", async () => {
  assert.equal(await exec.run(["printf", "%s", "$(id); `id` > /dev/null"]), "$(id); `id` > /dev/null");
});

test("an error contains the output of the child and its exit code", async () => {
  const error = await failure(exec.run(["sh", "-c", "echo broken >&2; exit 3"]));
  assert.equal(error.code, 3);
  assert.match(error.message, /^sh -c .*: broken$/);
});

test("an error does not contain the secret input of the child", async () => {
  const error = await failure(exec.run(["sh", "-c", "cat >/dev/null; exit 1"], { stdin: "secret" }));
  assert.doesNotMatch(error.message + error.stderr, /secret/);
});

test("a missing program is an error like others", async () => {
  const error = await failure(exec.run(["brume-no-such-program"]));
  assert.equal(error.code, null);
  assert.match(error.message, /ENOENT/);
  const folder = mkdtempSync(join(tmpdir(), "brume-exec-"));
  await failure(exec.startDetached(["brume-no-such-program"], { output: join(folder, "log") }));
  rmSync(folder, { recursive: true });
});

test("a child that never reads its input does no harm", async () => {
  assert.equal(await exec.run(["true"], { stdin: "x".repeat(1_000_000) }), "");
});

test("a child may start before its input exists", async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const echoing = exec.run(["sh", "-c", "echo $$; exec cat"], { stdin: promise });
  resolve("late");
  assert.match(await echoing, /^\d+\nlate$/);
  assert.equal(await exec.run(["true"], { stdin: new Promise(() => {}) }), "", "it need not listen");
  const never = exec.run(["cat"], { stdin: Promise.reject(new Error("no")) });
  await assert.rejects(never, { code: null, message: "cat: got no input" });
  const slow = exec.run(["cat"], { stdin: new Promise(() => {}), timeout: 100 });
  await assert.rejects(slow, { code: null, message: "cat: took longer than 100 ms" });
});

test("a child that takes too long is killed with its children", async () => {
  const error = await failure(exec.run(["sh", "-c", "sleep 60 & echo $!; wait"], { timeout: 100 }));
  assert.match(error.message, /longer than 100 ms/);
});

test("a descendant that has left the process group delays no deadline", async () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-exec-"));
  const pidFile = join(folder, "pid");
  const script = `setsid sh -c 'echo $$ >"$0"; exec sleep 60' "$0" & wait`;
  const error = await failure(exec.run(["sh", "-c", script, pidFile], { timeout: 1000 }));
  assert.match(error.message, /longer than 1000 ms/);
  const descendant = exec.find(Number(readFileSync(pidFile, "utf8")));
  assert.ok(descendant !== null && exec.signal(descendant, "SIGKILL"), "it still runs");
  rmSync(folder, { recursive: true });
});

test("a child that prints without end is killed, and others continue", async () => {
  const other = exec.run(["sh", "-c", "read line; echo $line"], { stdin: sleep(300, "on\n") });
  for (const script of ["exec yes", "exec yes >&2"]) {
    const error = await failure(exec.run(["sh", "-c", script], { most: 1_000_000 }));
    assert.match(error.message, /: printed more than 1000000 bytes$/);
    assert.ok(hasPrintedTooMuch(error));
  }
  assert.equal(await other, "on\n");
  assert.equal((await exec.run(["head", "-c", "1000", "/dev/zero"], { most: 1000 })).length, 1000);
});

test("without free file descriptors only the calls that need one fail", async () => {
  const few = createExec((command) => ["sh", "-c", 'ulimit -n 40; exec "$@"', "sh", ...command]);
  const first = few.run(["sh", "-c", "read line; echo $line"], { stdin: sleep(500, "on\n") });
  const many = await Promise.allSettled(Array.from({ length: 30 }, () => few.run(["sleep", "0.2"])));
  assert.match(String(many.map((one) => (one.status === "rejected" ? String(one.reason) : ""))), /EMFILE/);
  assert.equal(await first, "on\n");
  assert.equal(await few.run(["echo", "on"]), "on\n");
});

test("a cancelled child is killed, also before its start", async () => {
  const off = new AbortController();
  const running = failure(exec.run(["sleep", "60"], { signal: off.signal }));
  off.abort();
  assert.match((await running).message, /was aborted/);
  assert.match((await failure(exec.run(["sleep", "60"], { signal: AbortSignal.abort() }))).message, /was aborted/);
});

test("a child does not inherit the environment", async () => {
  process.env["BRUME_SECRET"] = "1";
  const seen = await exec.run(["env"], { environment: { WANTED: randomUUID() } });
  delete process.env["BRUME_SECRET"];
  assert.deepEqual(seen.match(/^\w+(?==)/gm)?.sort(), ["LC_ALL", "PATH", "WANTED"]);
});

test("after the starter process is killed, running calls fail, detached children live, and a new starter is started", async () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-exec-"));
  const lasting = await exec.startDetached(["sleep", "60"], { output: join(folder, "log") });
  const starter = exec.find(Number(await exec.run(["sh", "-c", "echo $PPID"])));
  assert.ok(starter && starter.pid !== process.pid);
  const waiting = failure(exec.run(["sleep", "60"]));
  exec.signal(starter, "SIGKILL");
  assert.match((await waiting).message, /has ended/);
  assert.equal(await exec.run(["echo", "on"]), "on\n");
  assert.ok(exec.signal(lasting, "SIGKILL"));
  rmSync(folder, { recursive: true });
});

test("neither side waits for the other to end, and nothing remains", async () => {
  const script = `const { exec } = await import(process.argv[1]); console.log(await exec.run(["sh", "-c", "echo $PPID"]))`;
  const argv = [process.execPath, "--input-type=module", "-e", script, import.meta.resolve("./exec.ts")];
  const pid = Number(await exec.run(argv));
  assert.ok(pid > 1);
  while (exec.find(pid) !== null) await sleep(5);
});

test("children of a killed service end with it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-exec-"));
  const output = join(folder, "log");
  const script = `const { exec } = await import(process.argv[1]);
    await exec.run(["sh", "-c", 'echo $$ >"$0"; exec sleep 60', process.argv[2]]);`;
  const argv = [process.execPath, "--input-type=module", "-e", script, import.meta.resolve("./exec.ts")];
  const pidFile = join(folder, "pid");
  const service = await exec.startDetached([...argv, pidFile], { output });
  let child: ReturnType<typeof exec.find> = null;
  while (child === null) {
    await sleep(5);
    if (existsSync(pidFile)) child = exec.find(Number(readFileSync(pidFile, "utf8")));
  }
  assert.ok(exec.signal(service, "SIGKILL"));
  while (exec.isAlive(child)) await sleep(5);
  rmSync(folder, { recursive: true });
});

test("a detached child is identified by its start time, so no other process is ended", async () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-exec-"));
  const output = join(folder, "log");
  const child = await exec.startDetached(["sh", "-c", "echo up; exec sleep 60"], { output });
  assert.ok(exec.isAlive(child));
  assert.deepEqual(exec.find(child.pid), child);
  assert.equal(exec.signal({ ...child, born: child.born + 1 }, "SIGKILL"), false);
  assert.ok(exec.isAlive(child));
  while (readFileSync(output, "utf8") !== "up\n") await sleep(5);
  assert.equal(statSync(output).mode & 0o777, 0o600);
  assert.ok(exec.signal(child, "SIGKILL"));
  while (exec.isAlive(child)) await sleep(5);
  assert.equal(exec.signal(child, "SIGKILL"), false);
  rmSync(folder, { recursive: true });
});

test("a child enters its folder before it drops its privileges", {
  skip: process.getuid?.() === 0 ? false : "not root",
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-exec-"));
  const inner = join(folder, "inner");
  mkdirSync(inner);
  writeFileSync(join(inner, "file"), "reached");
  chmodSync(folder, 0o700);
  const spec = { cwd: inner, uid: 699_001, gid: 699_001 };
  assert.equal(await exec.run(["cat", "file"], spec), "reached");
  assert.equal((await exec.run(["id", "-G"], spec)).trim(), "699001");
  await failure(exec.run(["cat", join(inner, "file")], spec));
  rmSync(folder, { recursive: true });
});
