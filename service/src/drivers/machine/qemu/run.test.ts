import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { stateOf } from "../../../../../test/support/runstate.ts";
import { exec } from "../../exec.ts";
import type { PowerEvent } from "../interface.ts";
import { folderOf, readState, writeState } from "./folder.ts";
import { pick, type Qmp, textAt } from "./qmp.ts";
import { createRuns } from "./run.ts";

const state = stateOf();

/** A tracked run without a process, which ends when `die` is called. */
function createRun(t: { after: (end: () => void) => void }) {
  const root = mkdtempSync(join(tmpdir(), "brume-run-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const folder = folderOf(root, 7);
  mkdirSync(folder.root, { recursive: true });
  const events: PowerEvent[] = [];
  const cleaned: number[] = [];
  const errors: string[] = [];
  const runs = createRuns({
    exec,
    now: () => 2000,
    sync: () => 1,
    ended: () => void cleaned.push(7),
    publish: (event) => events.push(event),
    logError: (sentence) => errors.push(sentence),
  });
  let die = (): void => {};
  const closed = new Promise<void>((resolve) => (die = resolve));
  const gone = () => Promise.reject(new Error("the monitor is closed"));
  const qmp: Qmp = { run: gone, onEvent: () => () => {}, closed, close: () => {} };
  t.after(() => assert.deepEqual(errors, []));
  return { folder, events, runs, die, cleaned, errors, run: runs.track(7, folder, state.child, qmp, state) };
}

const exit = { reason: "died", at: 2000, detail: "the process was killed from outside" };

test("during its end a server is running or has a recorded exit", async (t) => {
  const { folder, events, runs, die, run } = createRun(t);
  die();
  let checks = 0;
  for (; events.length === 0; checks++) {
    assert.ok(runs.all.has(7) || readState(folder)?.exit?.reason === "died", `look ${checks}`);
    await turn();
  }
  await run.over;
  assert.ok(checks > 1);
  assert.deepEqual(events, [{ id: 7, boot: 3, exit }]);
  assert.deepEqual([runs.all.size, readState(folder)?.exit], [0, exit]);
});

test("what belongs to a run is removed although its exit cannot be stored, as on a full disk", async (t) => {
  const { folder, events, cleaned, errors, die, run } = createRun(t);
  rmSync(folder.root, { recursive: true });
  die();
  await run.over;
  assert.deepEqual([events, cleaned], [[{ id: 7, boot: 3, exit }], [7]]);
  assert.deepEqual(errors.splice(0), ["Could not record the end of server 7."]);
});

test("an exit is recorded also during another write", async (t) => {
  const { folder, events, runs, die, run } = createRun(t);
  die();
  for (let share = 2; events.length === 0; share++) await runs.updateState(run, { share });
  await run.over;
  await run.written;
  assert.deepEqual(events, [{ id: 7, boot: 3, exit }]);
  assert.deepEqual(readState(folder), run.state);
  assert.deepEqual(run.state, { ...state, share: run.state.share, exit });
});

/** A server that responds to each line of JSON. */
async function listen(path: string, banner: string, respond: (request: unknown) => unknown): Promise<Server> {
  const server = createServer((socket) => {
    socket.setEncoding("latin1").on("error", () => {});
    socket.write(banner);
    socket.on("data", (chunk: string) => {
      for (const line of chunk.split("\n").filter(Boolean)) {
        const request = JSON.parse(line.replace("\u00ff", "")) as unknown;
        socket.write(`${JSON.stringify({ return: respond(request), id: pick(request, "id") })}\n`);
      }
    });
  });
  server.listen(path);
  await once(server, "listening");
  return server;
}

test("a guest that an earlier service left frozen is thawed when its process is adopted", async (t) => {
  const { folder, runs, die, run } = createRun(t);
  die();
  await run.over;
  mkdirSync(folder.run);
  await writeState(folder, state);
  const responses: Record<string, unknown> = {
    "query-uuid": { UUID: state.uuid },
    "query-status": { status: "running" },
  };
  const commands: string[] = [];
  const monitor = await listen(
    join(folder.run, "qmp"),
    '{"QMP": {}}\n',
    (request) => responses[textAt(request, "execute")] ?? {},
  );
  const agent = await listen(join(folder.run, "agent"), "", (request) => {
    const command = textAt(request, "execute");
    commands.push(command);
    return command === "guest-sync-delimited" ? pick(request, "arguments", "id") : 0;
  });
  try {
    writeFileSync(folder.frozen, "");
    assert.ok(await runs.adopt(7, folder, state.child));
    while (existsSync(folder.frozen)) await turn();
    assert.deepEqual(commands, ["guest-sync-delimited", "guest-fsfreeze-thaw"]);
  } finally {
    runs.close();
    monitor.close();
    agent.close();
  }
});
