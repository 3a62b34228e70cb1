import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createThreadSender } from "./thread.ts";

test("a thread sends, refuses other addresses, and starts again after it ended", async (t) => {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      bodies.push(`${String(request.headers["x-name"])} ${body}`);
      if (body !== "wait") response.writeHead(body === "bad" ? 500 : 204).end();
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const sender = createThreadSender({ allow: ["127.0.0.1"] });
  const { signal } = new AbortController();
  const send = (body: string, to = url, by = signal) =>
    sender.send({ url: to, headers: { "x-name": "one" }, body }, by);
  assert.deepEqual(await Promise.all(["a", "bad"].map((body) => send(body))), [
    { status: 204, error: null },
    { status: 500, error: "The endpoint returned status 500." },
  ]);
  assert.deepEqual(bodies.sort(), ["one a", "one bad"]);
  const refused = await send("b", "http://10.0.0.1/");
  assert.match(refused.error ?? "", /"10\.0\.0\.1" has an address that webhooks may not call/);
  assert.equal(await sender.judge(url), null);

  const stopping = new AbortController();
  const aborted = send("wait", url, stopping.signal);
  while (!bodies.includes("one wait")) await new Promise(setImmediate);
  stopping.abort();
  assert.equal((await aborted).status, null);

  const left = send("wait");
  while (bodies.filter((body) => body === "one wait").length < 2) await new Promise(setImmediate);
  sender.close();
  assert.deepEqual(await left, { status: null, error: "The thread that sends webhooks has ended." });
  assert.deepEqual(await send("c"), { status: 204, error: null });
  sender.close();
});
