/** The pages at `/docs`: what is kept in memory does not grow with the addresses that clients choose in their `Host` headers. */
import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import type { Head } from "../http/head.ts";
import { exampleOrigin } from "./html.ts";
import { createKeptResponses, serveSite } from "./serve.ts";
import type { Site } from "./site.ts";

const most = 1_000_000;

/** Serves a site of one page and a search, and counts how often each is made. */
function serve() {
  const made = { page: 0, search: 0 };
  const site = {
    file: () => null,
    render(path: string) {
      if (path !== "/docs") return null;
      made.page++;
      return `${exampleOrigin}/${"x".repeat(20_000)}`;
    },
    async search() {
      made.search++;
      return [{ text: `${exampleOrigin}/${"y".repeat(50_000)}` }];
    },
  } as unknown as Site;
  const kept = createKeptResponses(most);
  const { pages } = serveSite(async () => site, kept);
  const get = async (url: string, host: string) => {
    const request = { url, method: "GET", headers: { host }, socket: {} } as unknown as IncomingMessage;
    const reply = await pages({ request, head: {} as Head });
    let content = "";
    await reply?.file?.send({ end: (sent: Buffer) => void (content = sent.toString()) } as never);
    return { status: reply?.status, content };
  };
  return { get, kept, made };
}

test("responses for 300 addresses stay within the limit, and each content is made once", async () => {
  const { get, kept, made } = serve();
  for (let index = 0; index < 300; index++)
    for (const url of ["/docs", "/docs/search.json"]) {
      const { status, content } = await get(url, `host-${index}.example`);
      assert.equal(status, 200);
      assert.ok(content.includes(`http://host-${index}.example/`) && !content.includes(exampleOrigin));
      assert.ok(kept.bytes <= most, `${kept.bytes} bytes`);
    }
  assert.ok(kept.bytes > most / 2, `${kept.bytes} bytes`);
  assert.deepEqual(made, { page: 1, search: 1 });
});

test("a path that the site does not have is not kept", async () => {
  const { get, kept } = serve();
  for (let index = 0; index < 3; index++)
    assert.equal((await get(`/docs/none-${index}`, "a.example")).status, undefined);
  assert.equal(kept.bytes, 0);
});

test("the oldest responses are dropped first, and one that is too long is not kept", () => {
  const response = (bytes: number) => ({ type: "", content: Buffer.alloc(bytes), coding: null, etag: "" });
  const kept = createKeptResponses(100);
  for (const key of ["a", "b", "c"]) kept.keep(key, response(39));
  assert.deepEqual([kept.find("a"), kept.bytes], [undefined, 80]);
  kept.keep("d", response(100));
  assert.deepEqual([kept.find("d"), kept.find("b") === undefined, kept.bytes], [undefined, false, 80]);
});
