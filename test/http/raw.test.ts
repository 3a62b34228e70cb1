/** Raw bytes on a socket, as existing and hostile clients send them; HTTP client libraries cannot send them. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { dial, sendAndClose, type TestResponse } from "../support/httpsocket.ts";
import { type Library, openLibrary, read, tokenOf } from "./fixture.ts";

const auth = `Authorization: Bearer ${tokenOf("a")}\r\n`;
const get = (target: string, more = ""): string => `GET ${target} HTTP/1.1\r\n${auth}${more}\r\n`;
const post = (target: string, body: string, more = ""): string =>
  `POST ${target} HTTP/1.1\r\n${auth}Content-Length: ${Buffer.byteLength(body)}\r\n${more}\r\n${body}`;

let library: Library;
before(async () => {
  library = await openLibrary();
  for (const title of ["one", "two", "three"]) await exchange(post("/book", `{"Name":"${title}"}`));
});
after(() => library.close());

async function exchange(text: string, head?: "head", at = library): Promise<TestResponse> {
  const line = await dial(at.port);
  line.send(text);
  const response = await line.receive(head);
  line.close();
  return response;
}

/** Asserts a response with this status and error code, on a connection that then ends. */
async function isRefused(text: string, status: number, code: string, at = library): Promise<void> {
  const all = await sendAndClose(at.port, text);
  const problem = read(all.slice(all.indexOf("\r\n\r\n") + 4));
  assert.equal(problem.code, code, all);
  assert.ok(all.startsWith(`HTTP/1.1 ${status} `), all);
  const id = /^X-Request-Id: (.+)\r$/m.exec(all)?.[1];
  assert.equal(problem.instance, `urn:brume:request:${id}`);
  for (const header of [
    "Content-Type: application/problem+json",
    "Cache-Control: no-store",
    "X-Content-Type-Options: nosniff",
    "Access-Control-Allow-Origin: *",
    "Access-Control-Expose-Headers: ",
    "Connection: close",
    "Date: ",
    `Content-Length: ${Buffer.byteLength(all.slice(all.indexOf("\r\n\r\n") + 4))}`,
  ])
    assert.ok(all.includes(`\r\n${header}`), `${header} in ${all}`);
}

describe("paths", () => {
  const same = [
    "/book/2",
    "//book///2/",
    "/BOOK/2",
    "/%62ook/2",
    "/book/2?",
    "/book/2?unknown=1&also",
    "/book/0000000002",
    "http://anything:1/book/2",
    "HTTP://h/Book/2?",
    "https://user@h//book/2",
  ];
  for (const target of same)
    test(`${target} is book 2`, async () => {
      const response = await exchange(get(target));
      assert.equal(response.status, 200);
      assert.equal(read(response.body).Name, "two");
    });

  const errors: [target: string, status: number, code: string][] = [
    ["/nothing", 404, "path_not_found"],
    ["/book/2/nothing", 404, "path_not_found"],
    ["/book/two", 404, "domain_not_found"],
    ["/book/2147483648", 404, "domain_not_found"],
    ["/book/00000000002", 404, "domain_not_found"],
    ["/book/999", 404, "domain_not_found"],
    ["/book/%zz", 400, "path_not_readable"],
    ["/book/%ff", 400, "path_not_readable"],
    [`/book/${"x".repeat(8192)}`, 400, "path_not_readable"],
    [`/book?name=${"x".repeat(8192)}`, 400, "path_not_readable"],
  ];
  for (const [target, status, code] of errors)
    test(`${target.slice(0, 30)} is ${code}`, async () => {
      const response = await exchange(get(target));
      assert.equal(read(response.body).code, code);
      assert.equal(response.status, status);
    });

  test("OPTIONS * applies to the whole service, without a token", async () => {
    const response = await exchange("OPTIONS * HTTP/1.1\r\n\r\n");
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("allow"), "GET, HEAD, POST, PUT, DELETE, OPTIONS");
    assert.equal(response.headers.get("content-length"), "0");
  });
});

describe("requests that the parser rejects", () => {
  const cases: [name: string, text: string, status: number, code: string][] = [
    ["no HTTP at all", "hello there\r\n\r\n", 400, "request_not_readable"],
    ["raw bytes in the target", "GET /b\xc3\xb6ok HTTP/1.1\r\n\r\n", 400, "path_not_readable"],
    ["a blank in the target", get("/bo ok"), 400, "request_not_readable"],
    ["a header name with a blank", get("/book/1", "Bad Name: x\r\n"), 400, "request_not_readable"],
    ["a control character in a header", get("/book/1", "X: a\x01b\r\n"), 400, "request_not_readable"],
    ["a bare LF", get("/book/1").replaceAll("\r\n", "\n"), 400, "request_not_readable"],
    ["HTTP/2 without a word", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "request_not_readable"],
    ["headers above 16 KiB", get("/book/1", `X: ${"x".repeat(17 * 1024)}\r\n`), 431, "headers_too_large"],
    ["headers far above", get("/book/1", `X: ${"x".repeat(100 * 1024)}\r\n`), 431, "headers_too_large"],
    ["many small headers", get("/book/1", "a:b\r\n".repeat(5000)), 431, "headers_too_large"],
    ["an endless target", get(`/${"x".repeat(60_000)}`), 400, "path_not_readable"],
    ["an unknown method on a known path", "BREW /book/1 HTTP/1.1\r\n\r\n", 405, "method_not_allowed"],
    ["a method in lower case", "get /book/1 HTTP/1.1\r\n\r\n", 405, "method_not_allowed"],
    ["an unknown method on an unknown path", "BREW /coffee HTTP/1.1\r\n\r\n", 404, "path_not_found"],
    ["CONNECT to an authority", "CONNECT host:443 HTTP/1.1\r\n\r\n", 400, "path_not_readable"],
    ["CONNECT to a path", "CONNECT /book HTTP/1.1\r\n\r\n", 405, "method_not_allowed"],
    ["length and chunks at once", post("/book", "{}", "Transfer-Encoding: chunked\r\n"), 400, "request_not_readable"],
    ["a length beyond numbers", get("/book", "Content-Length: 99999999999999999999\r\n"), 413, "body_too_large"],
    ["a length that is no number", get("/book", "Content-Length: -1\r\n"), 400, "request_not_readable"],
    [
      "a coding below the chunks",
      `POST /book HTTP/1.1\r\n${auth}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
      501,
      "transfer_coding_not_supported",
    ],
    [
      "a coding below the chunks on a line of its own",
      `POST /book HTTP/1.1\r\n${auth}Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      501,
      "transfer_coding_not_supported",
    ],
    [
      "a coding without chunks",
      `POST /book HTTP/1.1\r\n${auth}Transfer-Encoding: gzip\r\n\r\n`,
      400,
      "request_not_readable",
    ],
    [
      "broken chunks",
      `POST /book HTTP/1.1\r\n${auth}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
      400,
      "body_not_readable",
    ],
  ];
  for (const [name, text, status, code] of cases)
    test(`${name}: ${status} ${code}`, () => isRefused(Buffer.from(text, "latin1") as never, status, code));

  test("405 for an unknown method contains the methods of the path", async () => {
    const all = await sendAndClose(library.port, "BREW /book HTTP/1.1\r\n\r\n");
    assert.match(all, /\r\nAllow: GET, HEAD, POST, OPTIONS\r\n/);
  });

  test("the error of a malformed request follows the responses before it", async () => {
    const all = await sendAndClose(library.port, `${get("/book/1")}${get("/book/2")}garbage\r\n\r\n`);
    const statuses = [...all.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    assert.deepEqual(statuses, ["200", "200", "400"]);
  });

  test("headers of just under 16 KiB are accepted", async () => {
    const response = await exchange(get("/book/1", `X: ${"x".repeat(16 * 1024 - auth.length - 6)}\r\n`));
    assert.equal(response.status, 200);
  });
});

describe("a lenient server", () => {
  let lenient: Library;
  before(async () => {
    lenient = await openLibrary({ lenient: true });
  });
  after(() => lenient.close());

  test("accepts header lines that end in a bare LF", async () => {
    const response = await exchange(get("/book").replaceAll("\r\n", "\n"), undefined, lenient);
    assert.equal(response.status, 200);
    const mixed = `POST /book HTTP/1.1\n${auth}Content-Length: 12\n\n{"Name":"x"}`;
    assert.equal((await exchange(mixed, undefined, lenient)).status, 200);
  });

  test("still rejects two lengths, which a proxy could read differently", () =>
    isRefused(post("/book", "0\r\n\r\n", "Transfer-Encoding: chunked\r\n"), 400, "request_not_readable", lenient));
});

describe("connections", () => {
  test("pipelined requests get responses in order, and a read sees the change before it", async () => {
    const line = await dial(library.port);
    line.send(post("/book", '{"Name":"pipelined"}') + get("/book?name=pipelined") + get("/book/1") + get("/nothing"));
    assert.equal(read((await line.receive()).body).Name, "pipelined");
    assert.equal((await line.receive()).headers.get("x-total-count"), "1");
    assert.equal(read((await line.receive()).body).ID, 1);
    assert.equal((await line.receive()).status, 404);
    line.close();
  });

  test("thousands of pipelined requests all get a response", async () => {
    const line = await dial(library.port);
    const count = 5000;
    line.send(get("/book/1").repeat(count));
    for (let i = 0; i < count; i++) assert.equal((await line.receive()).status, 200);
    line.close();
  });

  test("a request may arrive byte by byte", async () => {
    const line = await dial(library.port);
    line.socket.setNoDelay(true);
    for (const byte of post("/book", '{"Name":"drops"}')) {
      line.send(byte);
      await new Promise(setImmediate);
    }
    assert.equal((await line.receive()).status, 200);
    line.close();
  });

  test("blank lines before a request are skipped", async () => {
    const line = await dial(library.port);
    for (let i = 0; i < 3; i++) {
      line.send(`\r\n${get("/book/1")}`);
      assert.equal((await line.receive()).headers.get("connection"), "keep-alive");
    }
    line.close();
  });

  test("HTTP/1.0 gets a response and is closed, with any headers", async () => {
    for (const more of ["", "Connection: keep-alive\r\n"]) {
      const all = await sendAndClose(library.port, `GET /book/1 HTTP/1.0\r\n${auth}${more}\r\n`);
      assert.match(all, /^HTTP\/1\.1 200 OK\r\n/);
      assert.match(all, /\r\nConnection: close\r\n/);
      assert.match(all, /"Name":"one"/);
    }
  });

  test("Connection: close closes, and later input is ignored", async () => {
    const before = await library.countBooks();
    const all = await sendAndClose(
      library.port,
      get("/book/1", "Connection: close\r\n") + post("/book", '{"Name":"late"}'),
    );
    assert.equal(all.match(/HTTP\/1\.1/g)?.length, 1);
    assert.equal(await library.countBooks(), before);
  });

  test("an upgrade is not granted, and the connection ends after the response", async () => {
    for (const upgrade of ["Upgrade: websocket\r\nConnection: Upgrade\r\n", "Upgrade: h2c\r\n"]) {
      const all = await sendAndClose(library.port, get("/book/2", upgrade));
      assert.match(all, /^HTTP\/1\.1 200 /);
      assert.match(all, /\r\nConnection: close\r\n/);
    }
  });

  test("a client that closes its side early still gets its responses", async () => {
    const line = await dial(library.port);
    line.socket.end(get("/book/1") + get("/book/2"));
    assert.equal((await line.rest()).match(/HTTP\/1\.1 200/g)?.length, 2);
  });

  test("Host is not required and not checked", async () => {
    assert.equal((await exchange(get("/book/1", "Host: a\r\nHost: b\r\n"))).status, 200);
  });

  test("HEAD has the headers of GET and no body", async () => {
    const line = await dial(library.port);
    const full = await exchange(get("/book/1"));
    line.send(get("/book/1").replace("GET", "HEAD") + get("/book/1"));
    const head = await line.receive("head");
    assert.equal(head.status, 200);
    for (const name of ["content-length", "content-type", "etag"])
      assert.equal(head.headers.get(name), full.headers.get(name));
    assert.equal((await line.receive()).body, full.body);
    const missing = await exchange(get("/book/999").replace("GET", "HEAD"), "head");
    assert.equal(missing.status, 404);
    assert.ok(Number(missing.headers.get("content-length")) > 100);
    line.close();
  });
});

describe("bodies", () => {
  const chunked = (text: string, size: number): string => {
    let out = "";
    for (let at = 0; at < text.length; at += size) {
      const part = text.slice(at, at + size);
      out += `${part.length.toString(16)};ext=1\r\n${part}\r\n`;
    }
    return `POST /book HTTP/1.1\r\n${auth}Transfer-Encoding: chunked\r\n\r\n${out}0\r\nTrailer: x\r\n\r\n`;
  };

  test("chunks of any size", async () => {
    for (const size of [1, 3, 1000]) assert.equal((await exchange(chunked('{"Name":"in pieces"}', size))).status, 200);
  });

  test("a Content-Length above the limit is rejected at once, and the response arrives although the client continues to send", async () => {
    const line = await dial(library.port);
    line.send(`POST /book HTTP/1.1\r\n${auth}Content-Length: 5000000\r\n\r\n`);
    const response = await line.receive();
    assert.equal(response.status, 413);
    assert.equal(response.headers.get("connection"), "close");
    line.close();
    const all = await sendAndClose(
      library.port,
      `POST /book HTTP/1.1\r\n${auth}Content-Length: 5000000\r\n\r\n${"x".repeat(5_000_000)}`,
    );
    assert.match(all, /^HTTP\/1\.1 413 /);
    assert.match(all, /"code":"body_too_large"/);
  });

  test("chunks are rejected when their sum exceeds the limit", () =>
    isRefused(chunked(`{"Name":"${"x".repeat(1_100_000)}"}`, 60_000), 413, "body_too_large"));

  test("a body of the size of the limit is accepted", async () => {
    const body = '{"Name":"large"}'.padEnd(1024 * 1024);
    assert.equal((await exchange(post("/book", body))).status, 200);
  });

  test("GET, HEAD, OPTIONS and DELETE read and discard a body", async () => {
    const line = await dial(library.port);
    for (const method of ["GET", "HEAD", "OPTIONS"]) {
      line.send(`${method} /book/1 HTTP/1.1\r\n${auth}Content-Length: 9\r\nContent-Type: image/png\r\n\r\n{"broken"`);
      assert.equal((await line.receive(method === "HEAD" ? "head" : undefined)).status, 200);
    }
    const made = await exchange(post("/book", '{"Name":"short lived"}'));
    line.send(
      `DELETE /book/${read(made.body).ID} HTTP/1.1\r\n${auth}Transfer-Encoding: chunked\r\n\r\n3\r\n???\r\n0\r\n\r\n`,
    );
    assert.equal((await line.receive()).status, 200);
    line.send(get("/book/1"));
    assert.equal((await line.receive()).status, 200);
    line.send(`GET /book/1 HTTP/1.1\r\n${auth}Content-Length: 2000000\r\n\r\n`);
    assert.equal((await line.receive()).status, 413);
    line.close();
  });

  test("100 Continue is sent only after all other checks", async () => {
    const body = '{"Name":"expected"}';
    const headers = `Content-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`;
    const line = await dial(library.port);
    line.send(`POST /book HTTP/1.1\r\n${auth}${headers}`);
    assert.equal((await line.receive()).status, 100);
    line.send(body);
    assert.equal((await line.receive()).status, 200);
    line.send(`POST /book HTTP/1.1\r\n${headers}`);
    const refused = await line.receive();
    assert.equal(refused.status, 401);
    assert.equal(refused.headers.get("connection"), "close");
    assert.equal(await line.rest(), "");
    const odd = await exchange(post("/book", body, "Expect: a miracle\r\n"));
    assert.equal(odd.status, 200);
  });

  test("a rejected request with a body leaves the connection usable", async () => {
    const line = await dial(library.port);
    line.send(`POST /book HTTP/1.1\r\nContent-Length: 4\r\n\r\nGET ${get("/book/1")}`);
    assert.equal((await line.receive()).status, 401);
    assert.equal((await line.receive()).status, 200);
    line.close();
  });

  test("a client that disconnects in the middle of a body causes no error", async () => {
    const before = library.logged.length;
    const line = await dial(library.port);
    line.send(`POST /book HTTP/1.1\r\n${auth}Content-Length: 100\r\n\r\n{`);
    await sleep(20);
    line.socket.resetAndDestroy();
    await sleep(20);
    assert.equal(library.logged.length, before);
  });

  test("a body cut short by the client's half-close is not readable", () => {
    const half = (async () => {
      const line = await dial(library.port);
      line.socket.end(`POST /book HTTP/1.1\r\n${auth}Content-Length: 100\r\n\r\n{`);
      return line.rest();
    })();
    return half.then((all) => assert.match(all, /^HTTP\/1\.1 400 [\s\S]*body_not_readable/));
  });
});

describe("slow clients", () => {
  let slow: Library;
  /** Has no time limit for the head of a request, so that a test can send one first. */
  let patient: Library;
  before(async () => {
    const limits = { bodyTime: 120, idleTime: 150 };
    slow = await openLibrary({ limits: { ...limits, headersTime: 120 } });
    patient = await openLibrary({ limits: { ...limits, headersTime: 3_600_000 } });
  });
  after(() => Promise.all([slow.close(), patient.close()]));

  test("a request head without an end: 408", () =>
    isRefused("GET /book/1 HTTP/1.1\r\nX: ", 408, "request_timeout", slow));
  test("a connection without a request: 408", () => isRefused("", 408, "request_timeout", slow));
  test("a body without an end: 408", () =>
    isRefused(`POST /book HTTP/1.1\r\n${auth}Content-Length: 100\r\n\r\n{`, 408, "request_timeout", patient));
  test("a discarded body without an end gets a response, and the connection is closed", async () => {
    const all = await sendAndClose(patient.port, "POST /book HTTP/1.1\r\nContent-Length: 100\r\n\r\n{");
    assert.match(all, /^HTTP\/1\.1 401 /);
  });
  test("an idle connection is closed without a response", async () => {
    const line = await dial(patient.port);
    line.send(get("/book"));
    assert.equal((await line.receive()).status, 200);
    assert.equal(await line.rest(), "");
  });
});
