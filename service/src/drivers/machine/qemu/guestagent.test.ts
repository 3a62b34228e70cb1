import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, test } from "node:test";
import { callAgent } from "./guestagent.ts";
import { isAbsent, openSocket } from "./socket.ts";

// Longer than a socket's path may be, as data folders are.
const root = mkdtempSync(join(tmpdir(), "brume-agent-"));
const folder = join(root, "x".repeat(60), "y".repeat(60));
mkdirSync(folder, { recursive: true });
after(() => rmSync(root, { recursive: true }));

/** A guest that answers each line by `answer`; the server listens by a short name, from inside the folder. */
async function guest(answer: (line: string, socket: Socket) => void): Promise<Server> {
  const server = createServer((socket) => {
    socket.setEncoding("latin1");
    socket.on("error", () => {});
    socket.on("data", (chunk: string) => {
      for (const line of chunk.split("\n").filter(Boolean)) answer(line, socket);
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
async function ask(answer: Parameters<typeof guest>[0], limit = 500): Promise<unknown> {
  const server = await guest(answer);
  try {
    return await callAgent(folder, 4711, "guest-ping", { a: 1 }, limit);
  } finally {
    server.close();
  }
}

test("a socket is found at the end of a long path, and its absence told from silence", async () => {
  assert.ok(join(folder, "agent").length > 107 && relative("/", folder) !== "");
  await assert.rejects(openSocket(folder, "agent"), isAbsent);
  const server = await guest(() => {});
  (await openSocket(folder, "agent")).destroy();
  server.close();
});

test("old answers are dropped, then the command is asked", async () => {
  const heard: string[] = [];
  const answer = await ask((line, socket) => {
    heard.push(line);
    const id = sync(line);
    if (id !== undefined) socket.write(Buffer.from(`{"return": 1}\n{"half": \xff{"return": ${id}}\n`, "latin1"));
    else socket.write('{"return": {"name": "\u00e9"}}\n');
  });
  assert.deepEqual(answer, { name: "\u00e9" });
  assert.match(heard[0] ?? "", /^\xff\{"execute":"guest-sync-delimited"/);
  assert.deepEqual(JSON.parse(heard[1] ?? ""), { execute: "guest-ping", arguments: { a: 1 } });
});

test("a refusal is one", async () => {
  const refusing = ask((line, socket) => {
    const id = sync(line);
    socket.write(
      id === undefined ? '{"error": {"class": "GenericError", "desc": "no user"}}\n' : `{"return": ${id}}\n`,
    );
  });
  await assert.rejects(refusing, /refuses guest-ping: no user/);
});

test("nobody, silence, nonsense and a closed line are all nobody", async () => {
  rmSync(join(folder, "agent"), { force: true });
  assert.equal(await callAgent(folder, 1, "guest-ping", {}, 100), null);
  assert.equal(await ask(() => {}, 50), null);
  assert.equal(await ask((_line, socket) => void socket.write("nonsense\n{}\n[]\nnull\n"), 50), null);
  assert.equal(await ask((_line, socket) => void socket.destroy(), 5000), null);
  assert.equal(await ask((_line, socket) => void socket.write("x".repeat(5 * 2 ** 20)), 5000), null);
});
