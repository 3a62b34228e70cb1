/** Closing the server: no new requests, running requests finish, and the audit is stored. */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
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

test("a running request finishes and gets its response; then the connection ends", () =>
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
    line.send(post('{"Name":"last"}'));
    await running;
    let closed = false;
    const closing = library.http.close(60_000).finally(() => {
      closed = true;
    });
    await sleep(400);
    assert.equal(closed, false);
    await assert.rejects(dial(library.port));
    go();
    const response = await line.receive();
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("connection"), "close");
    await closing;
    assert.equal(await library.countBooks(), 1);
  }));

test("a response that only waits for its effect is sent at once", () =>
  ending(async (library) => {
    let settling = false;
    library.settle = () => {
      settling = true;
      return new Promise(() => {});
    };
    const line = await dial(library.port);
    line.send(post('{"Name":"waiting"}', "Prefer: wait=60\r\n"));
    while (!settling) await sleep(5);
    const closing = library.http.close(30_000);
    assert.equal((await line.receive()).status, 200);
    await closing;
  }));

test("while stopping, requests get 503, and health still responds", () =>
  ending(async (library) => {
    const accepted: Socket[] = [];
    library.http.server.on("connection", (socket: Socket) => accepted.push(socket));
    const lines = [await dial(library.port), await dial(library.port), await dial(library.port)] as const;
    // The first bytes of a request keep a connection from being idle.
    for (const line of lines) line.send("GET ");
    while (accepted.filter(({ bytesRead }) => bytesRead === 4).length < 3) await sleep(5);
    const closing = library.http.close(60_000);
    lines[0].send(get("/book").slice(4));
    lines[1].send(get("/readyz").slice(4));
    lines[2].send(get("/healthz").slice(4));
    const [refused, ready, health] = [await lines[0].receive(), await lines[1].receive(), await lines[2].receive()];
    assert.equal(refused.status, 503);
    assert.equal(read(refused.body).code, "not_ready");
    assert.equal(refused.headers.get("connection"), "close");
    assert.equal(ready.status, 503);
    assert.equal(read(ready.body).Status, "stopping");
    assert.equal(health.status, 200);
    await closing;
  }));

test("streams end, idle connections do not delay the end, and rejections are still audited", () =>
  ending(async (library) => {
    const stream = await dial(library.port);
    stream.send(`GET /event HTTP/1.1\r\n${auth}Accept: text/event-stream\r\n\r\n`);
    await stream.until("retry: 2000\n\n");
    const silent = await dial(library.port);
    const idle = await dial(library.port);
    idle.send(post("{}"));
    assert.equal((await idle.receive()).status, 400);
    await library.http.close(60_000);
    assert.equal(library.audit.length, 1);
    assert.equal(library.audit[0]?.status, 400);
    await Promise.all([stream.rest(), silent.rest(), idle.rest()]);
  }));

test("a request that does not finish in time is disconnected", () =>
  ending(async (library) => {
    const running = new Promise<void>((begun) => {
      library.prepare = () => {
        begun();
        return new Promise(() => {});
      };
    });
    const line = await dial(library.port);
    line.send(post('{"Name":"never"}'));
    await running;
    await library.http.close(300);
    assert.equal(await line.rest(), "");
    assert.equal(await library.countBooks(), 0);
  }));
