/** Many connections that are idle or send an incomplete request do not block other clients. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { dial, type Line } from "../support/httpsocket.ts";
import { type Library, openLibrary, tokenOf } from "./fixture.ts";

const auth = `Authorization: Bearer ${tokenOf("a")}\r\n`;
const get = (target: string, more = ""): string => `GET ${target} HTTP/1.1\r\n${auth}${more}\r\n`;
const limits = { waiting: { total: 40, perNetwork: 20 }, serving: { total: 8, perNetwork: 4 } };

let library: Library;
before(async () => {
  library = await openLibrary({ limits });
});
after(() => library.close());

const openOf = (lines: readonly Line[]): number => lines.filter(({ socket }) => !socket.readableEnded).length;

/** Opens connections one after the other, and waits until the service has closed `closed` of them. */
async function flood(sources: readonly string[], closed: number): Promise<Line[]> {
  const lines: Line[] = [];
  for (const [index, source] of sources.entries()) {
    const line = await dial(library.port, source);
    // Half of them send the beginning of a request.
    if (index % 2 === 0) line.send("GET /book HTTP/1.1\r\nAuth");
    lines.push(line);
  }
  const closedLines = await Promise.all(lines.slice(0, closed).map((line) => line.rest()));
  assert.deepEqual(new Set(closedLines), new Set(closed > 0 ? [""] : []));
  return lines;
}
const part = (lines: readonly Line[]): void => {
  for (const line of lines) line.close();
};

async function answers(source: string): Promise<void> {
  const line = await dial(library.port, source);
  line.send(get("/book"));
  assert.equal((await line.receive()).status, 200);
  line.close();
}

test("a network has a limit, and its longest idle connections are closed for new ones", async () => {
  const other = await dial(library.port, "127.5.5.5");
  const sources = Array.from({ length: 50 }, (_, index) => `127.0.9.${index + 1}`);
  const lines = await flood(sources, 30);
  assert.equal(openOf(lines), 20);
  await answers("127.0.9.200");
  await answers("127.6.6.6");
  other.send(get("/book"));
  assert.equal((await other.receive()).status, 200, "a connection of another network stays");
  part([...lines, other]);
});

test("with connections of many networks, each new connection gets a response", async () => {
  const first = await dial(library.port, "127.5.5.5");
  const sources = Array.from({ length: 70 }, (_, index) => `127.1.${index + 1}.1`);
  const lines = await flood(sources, 30);
  assert.equal(await first.rest(), "", "the idlest of all is gone");
  assert.ok(openOf(lines) <= 40);
  for (let index = 0; index < 5; index++) await answers(`127.7.${index}.1`);
  part([...lines, first]);
});

test("event streams and running requests are not closed for idle connections", async () => {
  const stream = await dial(library.port, "127.1.1.1");
  stream.send(get("/event", "Accept: text/event-stream\r\n"));
  await stream.until("retry: 2000\n\n");
  let finish = (): void => {};
  const begun = new Promise<void>((resolve) => {
    library.prepare = () =>
      new Promise((done) => {
        finish = done;
        resolve();
      });
  });
  const change = await dial(library.port, "127.1.1.1");
  const body = '{"Name":"slow"}';
  change.send(`POST /book HTTP/1.1\r\n${auth}Content-Length: ${body.length}\r\n\r\n${body}`);
  await begun;
  library.prepare = null;
  const lines = await flood(
    Array.from({ length: 60 }, () => "127.1.1.1"),
    40,
  );
  await library.append("domain.changed", "domain", 7, { n: 7 });
  await stream.until('"n":7');
  finish();
  assert.equal((await change.receive()).status, 200);
  // Now it is idle like the others, and is closed last.
  await answers("127.1.1.1");
  change.send(get("/book"));
  assert.equal((await change.receive()).status, 200);
  part([...lines, stream, change]);
});

test("streams have a limit too", async () => {
  const streams: Line[] = [];
  for (let index = 0; index < 6; index++) {
    const line = await dial(library.port, "127.2.2.2");
    line.send(get("/event", "Accept: text/event-stream\r\n"));
    await line.until("retry: 2000\n\n");
    streams.push(line);
  }
  await Promise.all(streams.slice(0, 2).map((line) => line.rest()));
  assert.equal(openOf(streams), 4);
  await answers("127.2.2.2");
  part(streams);
});

test("the body of a rejected request has a time limit", async () => {
  const strict = await openLibrary({ limits: { bodyTime: 300 } });
  try {
    const line = await dial(strict.port);
    line.send(`POST /book HTTP/1.1\r\nContent-Length: 1000\r\n\r\n`);
    assert.equal((await line.receive()).status, 401);
    // Each byte shows that the client is connected, but does not extend the time limit.
    const timer = setInterval(() => line.send("x"), 50);
    await line.rest().finally(() => clearInterval(timer));
  } finally {
    await strict.close();
  }
});

test("a rejected request whose body arrives in time keeps its connection", async () => {
  const library = await openLibrary();
  const line = await dial(library.port);
  line.send(`POST /book HTTP/1.1\r\nContent-Length: 4\r\n\r\n`);
  assert.equal((await line.receive()).status, 401);
  line.send("abcdGET /healthz HTTP/1.1\r\n\r\n");
  assert.equal((await line.receive()).status, 200);
  line.close();
  await library.close();
});
