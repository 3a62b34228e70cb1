import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { callAgent, whileFrozen } from "./guestagent.ts";
import { isAbsent, openSocket } from "./socket.ts";

// Deeper than the path of a socket may be, as a data folder can be.
const root = mkdtempSync(join(tmpdir(), "brume-agent-"));
const folder = join(root, "x".repeat(60), "y".repeat(60));
mkdirSync(folder, { recursive: true });
after(() => rmSync(root, { recursive: true }));

/** A guest agent that responds to each line; the server listens on a relative path inside the folder. */
async function guest(respond: (line: string, socket: Socket) => void): Promise<Server> {
  const server = createServer((socket) => {
    socket.setEncoding("latin1");
    socket.on("error", () => {});
    socket.on("data", (chunk: string) => {
      for (const line of chunk.split("\n").filter(Boolean)) respond(line, socket);
    });
  });
  const here = process.cwd();
  process.chdir(folder);
  rmSync("agent", { force: true });
  server.listen("agent");
  process.chdir(here);
  await new Promise((resolve) => server.once("listening", resolve));
  return server;
}
const sync = (line: string) => (/guest-sync-delimited.*"id":(\d+)/.exec(line) ?? [])[1];
async function ping(respond: Parameters<typeof guest>[0], limit = 60_000): Promise<unknown> {
  const server = await guest(respond);
  try {
    return await callAgent(folder, 4711, "guest-ping", { a: 1 }, limit);
  } finally {
    server.close();
  }
}

test("opens a socket below a long path, and recognizes a missing one", async () => {
  assert.ok(join(folder, "agent").length > 107 && relative("/", folder) !== "");
  await assert.rejects(openSocket(folder, "agent"), isAbsent);
  const server = await guest(() => {});
  (await openSocket(folder, "agent")).destroy();
  server.close();
});

test("drops old responses before it sends the command", async () => {
  const received: string[] = [];
  const result = await ping((line, socket) => {
    received.push(line);
    const id = sync(line);
    if (id !== undefined) socket.write(Buffer.from(`{"return": 1}\n{"half": \xff{"return": ${id}}\n`, "latin1"));
    else socket.write('{"return": {"name": "\u00e9"}}\n');
  });
  assert.deepEqual(result, { name: "\u00e9" });
  assert.match(received[0] ?? "", /^\xff\{"execute":"guest-sync-delimited"/);
  assert.deepEqual(JSON.parse(received[1] ?? ""), { execute: "guest-ping", arguments: { a: 1 } });
});

test("rejects with the error of the agent", async () => {
  const refused = ping((line, socket) => {
    const id = sync(line);
    socket.write(
      id === undefined ? '{"error": {"class": "GenericError", "desc": "no user"}}\n' : `{"return": ${id}}\n`,
    );
  });
  await assert.rejects(refused, /refuses guest-ping: no user/);
});

test("returns null without a socket, on timeout, invalid data and a closed connection", async () => {
  rmSync(join(folder, "agent"), { force: true });
  assert.equal(await callAgent(folder, 1, "guest-ping", {}, 100), null);
  assert.equal(await ping(() => {}, 50), null);
  assert.equal(await ping((_line, socket) => void socket.write("nonsense\n{}\n[]\nnull\n"), 50), null);
  assert.equal(await ping((_line, socket) => void socket.destroy()), null);
  assert.equal(await ping((_line, socket) => void socket.write("x".repeat(5 * 2 ** 20))), null);
});

test("a freeze that takes longer than its limit is followed by a thaw", async () => {
  const commands: string[] = [];
  const freezing = Promise.withResolvers<void>();
  const respond = async (line: string, socket: Socket): Promise<void> => {
    const id = sync(line);
    const [, command = ""] = /"execute":"(guest-(?!sync)[a-z-]+)"/.exec(line) ?? [];
    if (id === undefined) commands.push(command);
    if (command === "guest-fsfreeze-freeze") {
      // The host receives no response, and the guest freezes later.
      socket.destroy();
      await freezing.promise;
    } else socket.write(`{"return": ${id ?? 1}}\n`);
  };
  // The agent runs one command after the other, also those of earlier connections.
  let last = Promise.resolve();
  const server = await guest((line, socket) => {
    last = last.then(() => respond(line, socket));
  });
  const ended = Promise.withResolvers<void>();
  const frozen = join(folder, "frozen");
  const subject = { folder: { run: folder, frozen }, over: ended.promise };
  const limits = { ping: 60_000, freeze: 60_000, thaw: 50, pause: 1, wait: 1 };
  let syncs = 0;
  const snapshot = () =>
    whileFrozen(
      subject,
      () => ++syncs,
      () => Promise.resolve(commands.at(-1)),
      limits,
    );
  try {
    assert.equal(await snapshot(), "guest-fsfreeze-freeze");
    assert.ok(existsSync(frozen));
    assert.equal(await snapshot(), "guest-fsfreeze-freeze");
    // Of the test, the freeze, and two tries of the thaw.
    while (syncs < 4) await sleep(1);
    freezing.resolve();
    while (existsSync(frozen)) await sleep(1);
    const [ping, freeze, ...thaws] = commands;
    assert.deepEqual([ping, freeze], ["guest-ping", "guest-fsfreeze-freeze"]);
    assert.deepEqual([...new Set(thaws)], ["guest-fsfreeze-thaw"]);
  } finally {
    freezing.resolve();
    ended.resolve();
    server.close();
  }
});
