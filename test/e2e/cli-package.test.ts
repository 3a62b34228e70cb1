/** The built command: it starts on each Node of this host, finds the installation of its clone, and set-up links it without replacing others. */
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { whyNot } from "../support/hindrance.ts";
import { nodes } from "../support/nodes.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

const run = promisify(execFile);
const root = resolve(import.meta.dirname, "../..");
const clone = mkdtempSync(join(tmpdir(), "brume-clone-"));
const command = join(clone, "cli/bin/brume.js");
const env = { PATH: process.env["PATH"] ?? "", HOME: clone };

let brume: TestService;
before(async () => {
  for (const name of ["bin", "package.json"])
    cpSync(join(root, "cli", name), join(clone, "cli", name), { recursive: true });
  execFileSync(process.execPath, [join(root, "scripts/build-cli.ts"), join(clone, "cli/dist")]);
  brume = await createTestService("sqlite");
  for (const folder of ["data", "service/src"]) mkdirSync(join(clone, folder), { recursive: true });
  writeFileSync(join(clone, "service/src/main.ts"), "");
  writeFileSync(join(clone, "data/token"), `${brume.token}\n`, { mode: 0o600 });
  writeFileSync(join(clone, "data/url"), `${brume.url}\n`);
});
after(async () => {
  await brume.close();
  rmSync(clone, { recursive: true, force: true });
});

for (const [index, node] of nodes.entries())
  test(`it runs on ${node} and finds the installation of its clone without settings`, async () => {
    const call = async (...args: string[]) => (await run(node, [command, ...args], { env, cwd: "/" })).stdout;
    await call("domain", "create", `node-${index}.example`);
    assert.match(await call("domain", "list"), /Active/);
    assert.match(await call("server", "list", "-o", "yaml"), /^\[\]\n$/);
    assert.match(await call("server", "create", "--help"), /Usage: brume server create NAME/);
  });

test("errors go to standard error with the exit code, and a closed pipe is no error", async () => {
  const failed = await run(process.execPath, [command, "server", "get", "none"], { env }).catch(
    (error: unknown) => error,
  );
  const { code, stdout, stderr } = failed as { code: number; stdout: string; stderr: string };
  assert.deepEqual([code, stdout], [2, ""]);
  assert.match(stderr, /^error: There is no server "none"\.\nremedy: /);
  const pipe = `"${process.execPath}" "${command}" service openapi | head -c 1`;
  const piped = await run("sh", ["-c", pipe], { env });
  assert.deepEqual([piped.stdout, piped.stderr], ["{", ""]);
  const unread = spawn(process.execPath, [command, "server", "get", "none"], { env });
  unread.stderr.destroy();
  assert.deepEqual(await once(unread, "exit"), [2, null], "a closed pipe of messages does not change the exit code");
});

test("the terminal does not show a token that one types", { skip: whyNot("script") }, async () => {
  const line = `"${process.execPath}" "${command}" context add work --url http://127.0.0.1:1`;
  const home = join(clone, "home");
  const terminal = spawn("script", ["-qec", line, "/dev/null"], { env: { ...env, HOME: home } });
  let shown = "";
  terminal.stdout.setEncoding("utf8").on("data", (text: string) => {
    shown += text;
    if (shown.endsWith("Token of work: ")) terminal.stdin.write("typed-secret\r");
  });
  assert.deepEqual(await once(terminal, "exit"), [0, null], shown);
  assert.match(shown, /^Token of work: \r?\nContext work is stored in .*\.\r?\n$/);
  assert.match(readFileSync(join(home, ".config/brume/contexts.json"), "utf8"), /"typed-secret"/);
});

test("a command loads only the modules and reads only the operations that it needs", async () => {
  const hook = join(clone, "modules.cjs");
  writeFileSync(
    hook,
    `const { parse } = JSON; let operations = 0;
JSON.parse = (text, ...more) => { operations += String(text).startsWith('{"method"'); return parse(text, ...more); };
process.on("exit", () => process.stderr.write(process.moduleLoadList.join("\\n") + "\\noperations " + operations));`,
  );
  const { stderr } = await run(process.execPath, ["--require", hook, command, "server", "list"], { env });
  assert.match(stderr, /NativeModule http$/m);
  // Each costs more than the rest of the start.
  assert.doesNotMatch(stderr, /undici|NativeModule (child_process|internal\/modules\/esm\/loader$)/);
  assert.ok(Number(/operations (\d+)$/.exec(stderr)?.[1]) < 5, stderr.slice(-20));
});

test("doctor names the packages of this host that are missing", async () => {
  cpSync(join(root, "scripts/setup"), join(clone, "scripts/setup"));
  const { stdout } = await run(process.execPath, [command, "doctor", "-o", "json"], { env });
  const found = (JSON.parse(stdout) as { Check: string; Detail: string }[]).find(({ Check }) => Check === "Packages");
  assert.match(found?.Detail ?? "", /^(all Debian packages are installed|Missing: [a-z0-9 .+-]+\.)$/);
});

test("the bundle contains no schema library", () => {
  const { size } = statSync(join(clone, "cli/dist/brume.cjs"));
  assert.ok(size < 700_000, `${size} bytes`);
  assert.equal(spawnSync("grep", ["-rl", "typebox", join(clone, "cli/dist")], { encoding: "utf8" }).stdout, "");
});

test("the npm package installs into an empty project and depends on nothing", async () => {
  const project = join(clone, "project");
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{"private":true}');
  await run("npm", ["pack", "--workspace", "cli", "--pack-destination", clone, "--loglevel=error"], { cwd: root });
  const [packed = ""] = globSync("brume-cli-*.tgz", { cwd: clone });
  const options = ["--offline", "--ignore-scripts", "--loglevel=error"];
  await run("npm", ["install", ...options, join(clone, packed)], { cwd: project });
  const { stdout } = await run(join(project, "node_modules/.bin/brume"), ["--version"], { env });
  assert.match(stdout, /^brume \d/);
});

test("set-up links the command, and replaces neither programs nor links of others", () => {
  const folder = join(clone, "local/bin");
  for (const name of [folder, join(clone, "local/share")]) mkdirSync(name, { recursive: true });
  const link = join(folder, "brume");
  const setup = () => spawnSync("sh", [join(root, "scripts/setup"), "link", folder], { encoding: "utf8" });
  assert.match(setup().stdout, /linked the command brume/);
  assert.equal(readlinkSync(link), join(root, "cli/bin/brume.js"));
  assert.equal(readlinkSync(join(clone, "local/share/man/man1/brume.1")), join(root, "cli/dist/brume.1"));
  assert.equal(setup().stdout, "");
  const replace = (target: string) => {
    rmSync(link, { force: true });
    symlinkSync(target, link);
    setup();
    return readlinkSync(link);
  };
  assert.equal(replace(command), command);
  assert.equal(replace("/nowhere/cli/bin/brume.js"), join(root, "cli/bin/brume.js"));
  assert.equal(replace("/nowhere/other"), "/nowhere/other");
});
