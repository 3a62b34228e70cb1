/** The response cache: a cached response equals an uncached one for every request, and is sent without waiting for the database. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import { after, before, beforeEach, describe, test } from "node:test";
import { dial, sendAndClose, type TestResponse } from "../support/httpsocket.ts";
import { createCaller, type Library, openLibrary, read, tokenOf } from "./fixture.ts";

const authOf = (letter: string): string => `Authorization: Bearer ${tokenOf(letter)}\r\n`;
const auth = authOf("a");
const get = (target: string, more = auth): string => `GET ${target} HTTP/1.1\r\n${more}\r\n`;
const put = (target: string, body: string): string =>
  `PUT ${target} HTTP/1.1\r\n${auth}Content-Length: ${body.length}\r\n\r\n${body}`;

let library: Library;
before(async () => {
  library = await openLibrary({ limits: { bodyTime: 200 } });
});
after(() => library.close());

async function exchange(text: string): Promise<TestResponse> {
  const line = await dial(library.port);
  line.send(text);
  const response = await line.receive();
  line.close();
  return response;
}

/** Requests a book. Resolves to the response without the headers that differ between responses. */
async function readBook(more = auth, target = "/book/1"): Promise<object> {
  const { status, headers, body } = await exchange(get(target, more));
  const same = [...headers].filter(([name]) => name !== "x-request-id" && name !== "date");
  return { status, headers: same, body };
}

let count = 0;
beforeEach(async () => {
  const line = await dial(library.port);
  const body = `{"Name":"book ${++count}"}`;
  line.send(`POST /book HTTP/1.1\r\n${auth}Content-Length: ${body.length}\r\n\r\n${body}`);
  assert.equal((await line.receive()).status, 200);
  line.close();
});

describe("a cached response", () => {
  test("is the same byte for byte, with its own request id", async () => {
    const first = await readBook();
    assert.deepEqual(await readBook(), first);
    const ids = await Promise.all([1, 2].map(async () => (await exchange(get("/book/1"))).headers.get("x-request-id")));
    assert.notEqual(ids[0], ids[1]);
    assert.equal((await exchange(get("/book/1", `${auth}X-Request-Id: mine\r\n`))).headers.get("x-request-id"), "mine");
  });

  test("is removed by the next commit", async () => {
    await readBook();
    await readBook();
    await exchange(put("/book/1", '{"Name":"another"}'));
    assert.equal(read((await exchange(get("/book/1"))).body).Name, "another");
  });

  test("is of one media type", async () => {
    const name = read((await exchange(get("/book/1"))).body).Name;
    for (let i = 0; i < 2; i++) {
      const zone = await exchange(get("/book/1", `${auth}Accept: text/dns\r\n`));
      assert.deepEqual([zone.headers.get("content-type"), zone.body], ["text/dns", name]);
      assert.equal(read((await exchange(get("/book/1"))).body).Name, name);
      assert.equal(read((await exchange(get("/book/1", `${auth}Accept: text/plain\r\n`))).body).Name, name);
    }
  });

  test("is only for its token, while the token is valid", async () => {
    library.callers.set(tokenOf("b"), createCaller({ tokenId: 2, projectId: 2 }));
    library.callers.set(tokenOf("c"), createCaller({ tokenId: 3 }));
    for (let i = 0; i < 2; i++) {
      assert.equal((await exchange(get("/book/1"))).status, 200);
      assert.equal((await exchange(get("/book/1", authOf("b")))).status, 404);
      assert.equal((await exchange(get("/book/1", authOf("c")))).status, 200);
      assert.equal((await exchange(get("/book/1", ""))).status, 401);
    }
    library.callers.set(tokenOf("c"), createCaller({ tokenId: 3, scopes: [] }));
    assert.equal((await exchange(get("/book/1", authOf("c")))).status, 403);
    library.callers.delete(tokenOf("c"));
    assert.equal((await exchange(get("/book/1", authOf("c")))).status, 401);
  });

  test("counts for the rate limit", async () => {
    library.callers.set(tokenOf("d"), createCaller({ tokenId: 4, rateLimit: { requests: 3, seconds: 60 } }));
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) statuses.push((await exchange(get("/book/1", authOf("d")))).status);
    assert.deepEqual(statuses, [200, 200, 200, 429]);
  });

  test("is not used for HEAD, another query or a preference", async () => {
    await readBook();
    const line = await dial(library.port);
    line.send(`HEAD /book/1 HTTP/1.1\r\n${auth}\r\n`);
    assert.ok(Number((await line.receive("head")).headers.get("content-length")) > 0);
    line.close();
    await readBook(auth, "/book");
    assert.equal(read((await exchange(get("/book?limit=1"))).body).length, 1);
    const strict = await exchange(get("/book/1", `${auth}Prefer: handling=strict\r\n`));
    assert.equal(strict.headers.get("preference-applied"), "handling=strict");
  });
});

describe("pipelined requests", () => {
  test("are processed in order, so a read sees the change before it", async () => {
    await readBook();
    const line = await dial(library.port);
    const rounds = 20;
    for (let i = 0; i < rounds; i++)
      line.send(get("/book/1") + get("/book/1") + put("/book/1", `{"Name":"round ${i}"}`) + get("/book/1"));
    let name = read((await exchange(get("/book/1"))).body).Name;
    for (let i = 0; i < rounds; i++) {
      const response: string[] = [];
      for (let j = 0; j < 4; j++) response.push(read((await line.receive()).body).Name);
      if (i === 0) name = response[0] as string;
      assert.deepEqual(response, [name, name, `round ${i}`, `round ${i}`]);
      name = `round ${i}`;
    }
    line.close();
  });

  test("all get responses before the error of the input after them", async () => {
    await readBook();
    const all = await sendAndClose(library.port, `${get("/book/1").repeat(50)}nonsense\r\n\r\n`);
    const statuses = [...all.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status);
    assert.deepEqual(statuses, [...Array.from({ length: 50 }, () => "200"), "400"]);
    assert.match(all, /request_not_readable[^]*$/);
  });

  test("end with the one that closes", async () => {
    await readBook();
    const closing = get("/book/1", `${auth}Connection: close\r\n`);
    const all = await sendAndClose(library.port, get("/book/1") + closing + get("/book/1").repeat(3));
    assert.equal(all.split("HTTP/1.1 200 ").length - 1, 2);
  });

  test("are not buffered without limit for a client that does not read", async () => {
    for (let i = 0; i < 100; i++)
      await exchange(`POST /book HTTP/1.1\r\n${auth}Content-Length: 12\r\n\r\n{"Name":"x"}`);
    await exchange(get("/book"));
    const accepted = once(library.http.server, "connection");
    const line = await dial(library.port);
    const [socket] = (await accepted) as [Socket];
    line.socket.pause();
    // More than the socket buffers of both sides.
    line.send(get("/book").repeat(3000));
    while (socket.writableLength === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    await once(socket, "close");
    line.close();
    assert.equal((await exchange(get("/book"))).status, 200);
  });
});
