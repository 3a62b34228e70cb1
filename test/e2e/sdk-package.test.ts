/**
 * The npm package of the SDK, as its users get it: packed, installed into an empty project without network, called on each Node that this
 * host has, type-checked, and bundled for a browser.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { nodes } from "../support/nodes.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

const run = promisify(execFile);
const root = resolve(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "brume-sdk-"));
const project = join(folder, "project");
const installed = join(project, "node_modules/@brume/api");
let brume: TestService;
before(async () => {
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{"name":"project","private":true,"type":"module"}');
  await run("npm", ["pack", "--workspace", "api", "--pack-destination", folder, "--loglevel=error"], { cwd: root });
  const [packed = ""] = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
  // The schema library comes from this repository, because the test needs no network.
  const schemas = join(root, "node_modules/typebox");
  await run("npm", ["install", "--offline", "--ignore-scripts", "--loglevel=error", join(folder, packed), schemas], {
    cwd: project,
  });
  brume = await createTestService("sqlite");
});
after(async () => {
  await brume.close();
  rmSync(folder, { recursive: true, force: true });
});

test("the package contains compiled modules and no TypeScript source", () => {
  const files = readdirSync(installed, { recursive: true, encoding: "utf8" });
  for (const name of ["dist/client.js", "dist/client.d.ts", "dist/client.js.map", "dist/record/a.js"])
    assert.ok(files.includes(name), name);
  assert.deepEqual(
    files.filter((name) => /(?<!\.d)\.ts$|test/.test(name)),
    [],
  );
});

const program = `
import { ActionError, ApiError, createClient } from "@brume/api";
import { contract } from "@brume/api/contract";
import { verifySignature } from "@brume/api/signature";
const brume = createClient({ url: process.env.URL, token: process.env.TOKEN });
const server = await brume.createServer({ body: { Name: "web-" + process.version } });
const [action] = await brume.listActions({ path: { id: server.ID } });
const seen = [];
const ended = await brume.waitFor(action, { onProgress: ({ Progress }) => seen.push(Progress) });
const names = [];
for await (const { Name } of brume.items("listServers", { query: { limit: 1 } })) names.push(Name);
const refused = await brume.createServer({ body: { Name: "<" } }).catch((error) => error);
const events = brume.events({ after: 0, types: ["server.created"] });
const first = await events.next();
await events.return();
console.log(JSON.stringify({
  ended: ended.State, last: seen.at(-1), names,
  refused: refused instanceof ApiError && [refused.code, refused.pointer],
  first: first.value.Type, operations: Object.keys(contract).length > 80, classes: typeof ActionError,
  signed: await verifySignature({ body: "x", signature: "t=1,v1=" + "0".repeat(64), secret: "s" }),
}));`;

for (const node of nodes)
  test(`a program with the package runs on ${node}`, async () => {
    const { stdout: version } = await run(node, ["--version"]);
    writeFileSync(join(project, "program.js"), program);
    const { stdout } = await run(node, ["program.js"], {
      cwd: project,
      env: { URL: brume.url, TOKEN: brume.token },
    });
    const printed = JSON.parse(stdout) as { names: string[] };
    assert.ok(printed.names.includes(`web-${version.trim()}`), stdout);
    assert.deepEqual(
      { ...printed, names: [] },
      {
        ended: "Completed",
        last: 100,
        names: [],
        refused: ["validation_failed", "/Name"],
        first: "server.created",
        operations: true,
        classes: "function",
        signed: false,
      },
    );
  });

const typed = `
import { createClient } from "@brume/api";
import type { Server } from "@brume/api/server";
const brume = createClient({ url: "http://127.0.0.1", token: "x" });
export const servers: Server[] = await brume.listServers({ query: { name: "web-*" } });
// @ts-expect-error a server has no such field
export const wrong = servers[0]?.Nam;
// @ts-expect-error an id is a number
await brume.readServer({ path: { id: "1" } });
`;

test("the declarations give exact types in Node and in bundlers", async () => {
  writeFileSync(join(project, "typed.ts"), typed);
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const options = [
    "--noEmit",
    "--strict",
    "--skipLibCheck",
    "--target",
    "esnext",
    "--lib",
    "esnext,dom",
    "--types",
    "",
  ];
  for (const [module, resolution] of [
    ["nodenext", "nodenext"],
    ["esnext", "bundler"],
  ] as const) {
    const more = ["--module", module, "--moduleResolution", resolution, "typed.ts"];
    await run(process.execPath, [tsc, ...options, ...more], { cwd: project });
  }
});

/** Largest browser bundle of a program that only lists servers, in bytes after gzip. */
const largest = 10_000;

test("a browser bundle that lists servers is small and uses nothing of Node", async () => {
  writeFileSync(
    join(project, "browser.js"),
    'import { createClient } from "@brume/api";\nfor (const { Name } of await createClient({ url: "/" }).listServers()) document.body.append(Name);\n',
  );
  const { outputFiles, metafile } = await build({
    entryPoints: [join(project, "browser.js")],
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    metafile: true,
    write: false,
  });
  const size = gzipSync(outputFiles[0]?.contents ?? "").length;
  assert.ok(size > 1000 && size < largest, `${size} bytes`);
  const typebox = Object.keys(metafile.inputs).filter((path) => path.includes("typebox/"));
  assert.deepEqual(typebox, [], "listing servers needs no schemas");
});

test("a stack points into the source", async () => {
  const map = JSON.parse(await readFile(join(installed, "dist/client.js.map"), "utf8")) as {
    sources: string[];
    sourcesContent: string[];
  };
  assert.match(map.sources[0] ?? "", /client\.ts$/);
  assert.match(map.sourcesContent[0] ?? "", /export function createClient/);
});
