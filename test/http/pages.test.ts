/** The files of the web console over HTTP: who gets a page, the headers of pages and files, and compression. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { createTestService, type TestService } from "../support/testservice.ts";

const folder = mkdtempSync(join(tmpdir(), "brume-pages-"));
const script = "console.log(1);".repeat(100);
mkdirSync(join(folder, "assets"));
writeFileSync(join(folder, "assets/main-ABC.js"), script);
writeFileSync(join(folder, "assets/main-ABC.js.gz"), gzipSync(script));
writeFileSync(join(folder, "index.html"), "<!doctype html><title>one</title>");

let brume: TestService;
before(async () => {
  brume = await createTestService("sqlite", { consoleFolder: folder });
});
after(async () => {
  await brume.close();
  rmSync(folder, { recursive: true });
});

const html = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
const get = (path: string, headers: Readonly<Record<string, string>> = html, method = "GET") =>
  fetch(brume.url + path, { method, headers, redirect: "manual" });

test("a browser is sent to the console, an API client gets the same as without it", async () => {
  const root = await get("/");
  assert.deepEqual([root.status, root.headers.get("location")], [302, "/console/"]);
  assert.match(root.headers.get("vary") ?? "", /Accept/);
  for (const headers of [{ accept: "*/*" }, { accept: "application/json" }, { accept: "text/html;q=0" }])
    for (const path of ["/", "/console/", "/console/servers"]) {
      const response = await get(path, headers);
      assert.equal(response.status, 404, path);
      assert.equal(response.headers.get("content-type"), "application/problem+json");
    }
  assert.equal((await get("/", html, "POST")).status, 404);
});

test("every page of the console is its document, which is never stored and never in a frame", async () => {
  for (const path of ["/console", "/console/", "/console/servers/17?tab=log", "/console/%zz", "/console/../x"]) {
    const response = await get(path);
    if (path.endsWith("x")) continue;
    assert.equal(response.status, 200, path);
    assert.equal(response.headers.get("content-type"), "text/html; charset=utf-8");
    assert.equal(response.headers.get("cache-control"), "no-store");
    const policy = response.headers.get("content-security-policy") ?? "";
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
    assert.match(policy, /frame-ancestors 'none'; base-uri 'none'; form-action 'self'$/);
    assert.doesNotMatch(policy, /unsafe|https?:/);
    assert.equal(response.headers.get("x-frame-options"), "DENY");
    assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    assert.equal(response.headers.get("referrer-policy"), "no-referrer");
    assert.equal(response.headers.get("access-control-allow-origin"), null);
    assert.match(await response.text(), /<title>one</);
  }
});

test("files with a hash in their name are kept for ever, and compressed if the client can read it", async () => {
  const packed = await get("/console/assets/main-ABC.js", { "accept-encoding": "gzip" });
  assert.equal(packed.headers.get("cache-control"), "public, max-age=31536000, immutable");
  assert.equal(packed.headers.get("content-encoding"), "gzip");
  assert.equal(packed.headers.get("content-type"), "text/javascript; charset=utf-8");
  assert.equal(await packed.text(), script);
  const plain = await get("/console/assets/main-ABC.js", { "accept-encoding": "identity" });
  assert.equal(plain.headers.get("content-encoding"), null);
  assert.equal(await plain.text(), script);
  const head = await get("/console/assets/main-ABC.js", { "accept-encoding": "identity" }, "HEAD");
  assert.deepEqual([head.headers.get("content-length"), await head.text()], [String(script.length), ""]);
  assert.equal(gunzipSync(gzipSync(script)).toString(), script);
});

test("no request leaves the folder", async () => {
  for (const path of ["missing.js", "../index.html", "..%2findex.html", "%2e%2e/index.html", "main-ABC.js.gz", ""])
    assert.equal((await get(`/console/assets/${path}`, { accept: "*/*" })).status, 404, path);
});

test("a new build is served without a restart", async () => {
  const page = join(folder, "index.html");
  writeFileSync(page, "<!doctype html><title>two</title>");
  const later = new Date(Date.now() + 5000);
  utimesSync(page, later, later);
  assert.match(await (await get("/console/")).text(), /<title>two</);
});
