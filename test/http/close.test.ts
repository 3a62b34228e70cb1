/** The end of the service: nothing new, everything begun finished, nothing lost. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { dial } from "../support/httpsocket.ts";
import { type Library, openLibrary, read, tokenOf } from "./fixture.ts";

const auth = `Authorization: Bearer ${tokenOf("a")}\r\n`;
const get = (target: string): string => `GET ${target} HTTP/1.1\r\n${auth}\r\n`;
const post = (body: string, more = ""): string =>
  `POST /book HTTP/1.1\r\n${auth}${more}Content-Length: ${body.length}\r\n\r\n${body}`;

async function ending(work: (library: Library) => Promise<void>): Promise<void> {
  const library = await openLibrary();
  try {
    await work(library);
  } finally {
    await library.close();
  }
}

test("a request under way is finished and answered; the connection ends behind it", () =>
  ending(async (library) => {
    let go = (): void => {};
    const running = new Promise<void>((begun) => {
      library.prepare = () =>
        new Promise((resolve) => {
          go = resolve;
          begun();
        });
    });
    const line = await dial(library.port);
    line.say(post('{"Name":"last"}'));
    await running;
    let closed = false;
    const closing = library.http.close(5000).finally(() => {
      closed = true;
    });
    await sleep(400);
    assert.equal(closed, false);
    await assert.rejects(dial(library.port));
    go();
    const response = await line.hear();
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("connection"), "close");
    await closing;
    assert.equal(await library.countBooks(), 1);
  }));

test("an answer that only waits for its effect is given at once", () =>
  ending(async (library) => {
    let settling = false;
    library.settle = () => {
      settling = true;
      return new Promise(() => {});
    };
    const line = await dial(library.port);
    line.say(post('{"Name":"waiting"}', "Prefer: wait=60\r\n"));
    while (!settling) await sleep(5);
    const closing = library.http.close(30_000);
    assert.equal((await line.hear()).status, 200);
    await closing;
  }));

test("while it stops, an open connection is told so, and health still answers", () =>
  ending(async (library) => {
    const lines = [await dial(library.port), await dial(library.port), await dial(library.port)] as const;
    // The first bytes of a request keep a connection from being idle.
    for (const line of lines) line.say("GET ");
    await sleep(30);
    const closing = library.http.close(5000);
    lines[0].say(get("/book").slice(4));
    lines[1].say(get("/readyz").slice(4));
    lines[2].say(get("/healthz").slice(4));
    const [refused, ready, health] = [await lines[0].hear(), await lines[1].hear(), await lines[2].hear()];
    assert.equal(refused.status, 503);
    assert.equal(read(refused.body).code, "not_ready");
    assert.equal(refused.headers.get("connection"), "close");
    assert.equal(ready.status, 503);
    assert.equal(read(ready.body).Status, "stopping");
    assert.equal(health.status, 200);
    await closing;
  }));

test("streams end, idle and silent connections do not hold it up, and refusals are still written", () =>
  ending(async (library) => {
    const stream = await dial(library.port);
    stream.say(`GET /event HTTP/1.1\r\n${auth}Accept: text/event-stream\r\n\r\n`);
    await stream.until("retry: 2000\n\n");
    const silent = await dial(library.port);
    const idle = await dial(library.port);
    idle.say(post("{}"));
    assert.equal((await idle.hear()).status, 400);
    await library.http.close(60_000);
    assert.equal(library.audit.length, 1);
    assert.equal(library.audit[0]?.status, 400);
    await Promise.all([stream.rest(), silent.rest(), idle.rest()]);
  }));

test("what does not finish in time is cut off", () =>
  ending(async (library) => {
    library.prepare = () => new Promise(() => {});
    const line = await dial(library.port);
    line.say(post('{"Name":"never"}'));
    await sleep(50);
    await library.http.close(300);
    assert.equal(await line.rest(), "");
    assert.equal(await library.countBooks(), 0);
  }));
