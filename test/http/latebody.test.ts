/** A request that is rejected before its body is complete: the rest has a time limit, and a fast client keeps its connection. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { dial } from "../support/httpsocket.ts";
import { openLibrary } from "./fixture.ts";

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
