/** The pages at `/docs`: every document and every part of the contract has its place, and every link leads somewhere. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { contract, operationNames } from "@brume/api/contract.ts";
import { describeProblem, type ErrorCode, errorCodes, fieldCodes } from "@brume/api/errors.ts";
import { describeApi } from "@brume/api/openapi.ts";
import { showWorkError, taskErrors, type WorkCode } from "@brume/api/work.ts";
import { exampleOrigin } from "../../service/src/docs/html.ts";
import { openSite } from "../../service/src/docs/site.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

const root = resolve(import.meta.dirname, "../..");
const api = describeApi(contract, { version: "0.1.0" });
const site = openSite({ root, api });
const pages = new Map(site.urls.map((url) => [url, site.render(url) ?? ""]));
const anchorsOf = (html: string): string[] => [...html.matchAll(/ id="([^"]*)"/g)].map((match) => match[1] ?? "");
const anchors = new Map([...pages].map(([url, html]) => [url, new Set(anchorsOf(html))]));
const mainOf = (url: string): string => /<main[^]*<\/main>/.exec(pages.get(url) ?? "")?.[0] ?? "";

/** Returns true if an address of the site exists, with its anchor. */
function leads(target: string, from: string): boolean {
  const { pathname, hash } = new URL(target, `http://site${from}`);
  if (["/console/", "/openapi.json"].includes(pathname)) return true;
  if (pathname.startsWith("/docs/files/")) return site.file(pathname) !== null;
  return (
    anchors.get(pathname) !== undefined &&
    (hash === "" || anchors.get(pathname)?.has(decodeURIComponent(hash.slice(1))) === true)
  );
}

/** The document of the first page of the reference. */
const chapters = "docs/api-basics.md";

test("every document has a page", () => {
  const files = globSync("docs/**/*.md", { cwd: root });
  assert.ok(files.length > 20);
  const missing = files.filter((file) => !pages.has(file === chapters ? "/docs/api" : `/${file.slice(0, -3)}`));
  assert.deepEqual(missing, [], "a document needs a line in service/src/docs/contents.ts");
});

test("every link and picture leads somewhere", () => {
  let count = 0;
  const broken: string[] = [];
  for (const [url, html] of pages)
    for (const [, target = ""] of html.matchAll(/(?:href|src)="([^"]*)"/g)) {
      if (/^(?:https?|mailto):/.test(target)) continue;
      count++;
      if (!leads(target.replaceAll("&amp;", "&"), url)) broken.push(`${url}: ${target}`);
    }
  assert.deepEqual(broken, []);
  assert.ok(count > 3000, `${count} links`);
});

test("the type of every error leads to a row with its cause and what to do", () => {
  const types = [
    ...(Object.keys(errorCodes) as ErrorCode[]).map((code) => describeProblem(code, "", "1").type),
    ...(Object.keys(taskErrors) as WorkCode[]).map(
      (code) => showWorkError({ code, title: "", detail: "", step: null }).type,
    ),
    ...fieldCodes.map((code) => `/docs#${code}`),
  ];
  for (const type of types) {
    const [, code = ""] = /^\/docs#(\w+)$/.exec(type) ?? assert.fail(type);
    const link = new RegExp(`<a id="${code}" href="([^"#]*)#${code}">`).exec(mainOf("/docs"));
    const url = link?.[1] ?? assert.fail(`${type} has no link`);
    const row = new RegExp(`<tr id="${code}">([^]*?)</tr>`).exec(mainOf(url))?.[1] ?? assert.fail(`${type} has no row`);
    const [remedy = "", cause = ""] = [...row.matchAll(/<td>([^]*?)<\/td>/g)]
      .map((match) => match[1] ?? "")
      .toReversed();
    assert.ok(cause.length > 5 && remedy.length > 5, `${code}: ${cause}; ${remedy}`);
  }
});

test("every operation and type has one place, with fields that are described", () => {
  const reference = site.urls.filter((url) => url.startsWith("/docs/api/"));
  const all = reference.flatMap((url) =>
    anchorsOf(mainOf(url)).filter((id) => !/^(?:try-|operations|states|types|main)/.test(id)),
  );
  assert.equal(new Set(all).size, all.length);
  for (const name of [...operationNames, ...Object.keys(api.components.schemas)]) assert.ok(all.includes(name), name);
  const html = reference.map(mainOf).join("");
  for (const name of operationNames) assert.ok(html.includes(contract[name].path), name);
  // The states of servers are a table with a meaning for each.
  assert.match(mainOf("/docs/api/servers"), /<td><code>Blocked<\/code><\/td><td>its project is blocked\.<\/td>/);
  assert.equal([...html.matchAll(/<form /g)].length, operationNames.length);
});

test("pages are complete HTML without inline script, style or handler", () => {
  const single = new Set(["meta", "link", "input", "img", "br", "hr"]);
  for (const [url, html] of pages) {
    assert.doesNotMatch(
      html,
      /<script(?! (?:type="module" )?src)|<style| style=| on\w+="|\bundefined\b(?!<)|\[object/,
      url,
    );
    assert.doesNotMatch(html, /src="https?:/, url);
    const open: string[] = [];
    for (const [, slash, tag = ""] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)(?:\s[^>]*)?>/g)) {
      if (single.has(tag)) continue;
      if (slash === "") open.push(tag);
      else assert.equal(open.pop(), tag, url);
    }
    assert.deepEqual(open, [], url);
    const ids = anchorsOf(html);
    assert.equal(new Set(ids).size, ids.length, `${url} has an id twice`);
  }
});

test("the search contains documents, operations, types and errors", async () => {
  const entries = await site.search();
  const addresses = new Set(entries.map(({ u }) => u));
  for (const wanted of [
    "/docs/guide",
    "/docs/api/servers#createServer",
    "/docs/errors#domain_exists",
    "/docs/security",
  ])
    assert.ok(
      [...addresses].some((one) => one.startsWith(wanted)),
      wanted,
    );
  for (const { u, t } of entries) assert.ok(leads(u, "/docs") && t !== "", `${u}: ${t}`);
});

describe("over HTTP", () => {
  let brume: TestService;
  before(async () => {
    brume = await createTestService("sqlite");
  });
  after(async () => brume.close());
  const get = (path: string, headers: Readonly<Record<string, string>> = {}, method = "GET") =>
    fetch(brume.url + path, { headers: { "accept-encoding": "identity", ...headers }, method });

  test("examples carry the address of the service, also behind a proxy", async () => {
    const own = await (await get("/docs/api/account")).text();
    assert.ok(own.includes(`${brume.url}/account`));
    assert.ok(!own.includes(exampleOrigin));
    const proxied = await (await get("/docs/api/account", { "x-forwarded-proto": "https" })).text();
    assert.ok(proxied.includes(`${brume.url.replace("http:", "https:")}/account`));
    assert.ok((await (await get("/docs/api")).text()).includes(`${brume.url}/server`), "also in documents");
  });

  test("pages are compressed, and are sent only once", async () => {
    const plain = await get("/docs/api/dns");
    const text = await plain.text();
    assert.equal(plain.headers.get("content-type"), "text/html; charset=utf-8");
    assert.equal(plain.headers.get("cache-control"), "no-cache");
    const policy = plain.headers.get("content-security-policy") ?? "";
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
    for (const coding of ["br", "gzip"]) {
      // `fetch` unpacks the body itself.
      const packed = await get("/docs/api/dns", { "accept-encoding": coding });
      assert.equal(packed.headers.get("content-encoding"), coding);
      assert.ok(Number(packed.headers.get("content-length")) < text.length / 4);
      assert.equal(await packed.text(), text);
      const etag = packed.headers.get("etag") ?? "";
      const again = await get("/docs/api/dns", { "accept-encoding": coding, "if-none-match": etag });
      assert.deepEqual([again.status, await again.text(), again.headers.get("etag")], [304, "", etag]);
    }
    const head = await get("/docs", {}, "HEAD");
    assert.deepEqual([head.status, await head.text()], [200, ""]);
  });

  test("pictures are served, and nothing outside of the documents", async () => {
    const picture = await get("/docs/files/docs/reference.png");
    assert.equal(picture.headers.get("content-type"), "image/png");
    assert.equal(Buffer.from(await picture.arrayBuffer()).toString("latin1", 1, 4), "PNG");
    for (const path of [
      "/docs/nothing",
      "/docs/files/package.json",
      "/docs/files/docs/../package.json",
      "/docs/files/docs%2freference.png",
      "/docs/%2e%2e/package.json",
    ]) {
      const response = await get(path);
      assert.equal(response.status, 404, path);
      assert.equal(((await response.json()) as { code: string }).code, "path_not_found");
    }
    const other = await get("/docs", {}, "POST");
    assert.deepEqual([other.status, other.headers.get("allow")], [405, "GET, HEAD, OPTIONS"]);
    for (const [path, method] of [
      ["/docs", "OPTIONS"],
      ["//Docs/", "GET"],
    ] as const)
      assert.equal((await get(path, {}, method)).status, 200, path);
  });
});
