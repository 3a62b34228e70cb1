import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { createRequest, request } from "./request.ts";

let server: Server;
let url: string;
before(async () => {
  server = createServer((message, response) => {
    if (message.url === "/away") {
      response.writeHead(307, { Location: "/here" }).end();
      return;
    }
    const parts: string[] = [];
    message.setEncoding("utf8").on("data", (part: string) => parts.push(part));
    message.on("end", () => {
      const { method, url: target, headers } = message;
      if (target === "/silent") return;
      response.writeHead(target === "/none" ? 404 : 200, { "X-Total-Count": "7" });
      response.end(JSON.stringify({ method, target, length: headers["content-length"], body: parts.join("") }));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

const read = async (target: string, init?: RequestInit) => {
  const response = await request(url + target, init);
  return {
    status: response.status,
    ok: response.ok,
    count: response.headers.get("x-total-count"),
    text: await response.text(),
  };
};

test("requests and responses are those of fetch", async () => {
  const body = '{"Name":"bücher"}';
  for (const method of ["POST", "DELETE", "PUT"]) {
    const { status, ok, count, text } = await read("/here", {
      method,
      body,
      headers: { "Content-Type": "application/json" },
    });
    assert.deepEqual([status, ok, count], [200, true, "7"]);
    assert.deepEqual(JSON.parse(text), { method, target: "/here", length: String(Buffer.byteLength(body)), body });
  }
  const missing = await read("/none");
  assert.deepEqual([missing.status, missing.ok], [404, false]);
  assert.equal((await request(url)).headers.get("x-none"), null);
  assert.match((await read("/away")).text, /"target":"\/here"/);
});

test("with a certificate, only it is trusted, for streams too", async () => {
  const read = (name: string) => readFileSync(new URL(`../../test/chaos/tls/${name}`, import.meta.url), "utf8");
  const [cert, key] = [read("certificate.pem"), read("key.pem")];
  const secure = createTlsServer({ cert, key }, (message, response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(`data: ${message.url}\n\n`);
  }).listen(0, "127.0.0.1");
  await once(secure, "listening");
  try {
    const address = `https://127.0.0.1:${(secure.address() as AddressInfo).port}/event`;
    const init = { headers: { Accept: "text/event-stream" } };
    const response = await createRequest(cert)(address, init);
    assert.deepEqual([response.status, response.headers.get("content-type")], [200, "text/event-stream"]);
    const reader = response.body?.getReader();
    const first: { value?: Uint8Array } | undefined = await reader?.read();
    assert.equal(new TextDecoder().decode(first?.value), "data: /event\n\n");
    await reader?.cancel();
    await assert.rejects(createRequest()(address, init));
  } finally {
    secure.closeAllConnections();
    secure.close();
  }
});

test("a refused connection and an abort reject with their reason", async () => {
  await assert.rejects(request("http://127.0.0.1:1/"), { code: "ECONNREFUSED" });
  const stop = new AbortController();
  const pending = request(`${url}/silent`, { signal: stop.signal });
  stop.abort(new DOMException("Ctrl-C", "AbortError"));
  await assert.rejects(pending, { message: "Ctrl-C" });
});
