/** Log, console and metrics of a server (docs/spec.md#console-log-and-metrics-of-a-server), the console over a real WebSocket. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { before, describe, test } from "node:test";
import { WebSocket } from "ws";
import { onSqlite, refused } from "../support/harness.ts";
import { createMovableClock } from "../support/networkfixture.ts";
import { createServerApiFixture, pass, type ServerApiFixture } from "../support/serverapifixture.ts";

const clock = createMovableClock();
const path = ({ ID }: { readonly ID: number }) => ({ id: ID });

/** A WebSocket and all bytes it has received. */
async function dial(url: string) {
  const socket = new WebSocket(url);
  const response: Buffer[] = [];
  let notifyReceived = (): void => {};
  socket.on("message", (data: Buffer, isBinary) => {
    assert.equal(isBinary, true);
    response.push(data);
    notifyReceived();
  });
  await once(socket, "open");
  return {
    socket,
    /** Resolves when this many bytes, or this text, have been received. */
    async untilEvent(wanted: string | number): Promise<void> {
      for (;;) {
        const all = Buffer.concat(response);
        if (typeof wanted === "number" ? all.length >= wanted : all.includes(wanted)) return;
        await new Promise<void>((resolve) => {
          notifyReceived = resolve;
        });
      }
    },
  };
}

/** Returns the status of a rejected upgrade. */
async function refusedDial(url: string): Promise<number> {
  const socket = new WebSocket(url);
  const [error] = (await once(socket, "error")) as [Error];
  return Number(/server response: (\d+)/.exec(error.message)?.[1]);
}

onSqlite(
  "log, console and metrics",
  (harness) => {
    let fixture: ServerApiFixture;
    before(() => {
      fixture = createServerApiFixture(harness);
    });

    describe("the log", () => {
      test("contains the serial output since the start, or of the previous boot", async () => {
        const made = await fixture.server();
        const response = await harness.request(`GET /server/${made.ID}/log`);
        assert.equal(response.headers.get("content-type"), "text/plain; charset=utf-8");
        assert.match(response.text, /is simulated/);
        assert.equal((await harness.request(`GET /server/${made.ID}/log?tail=1`)).text.includes("is simulated"), false);
        assert.equal((await harness.request(`GET /server/${made.ID}/log?previous=true`)).text, "");
        await fixture.act(made.ID, { Type: "PowerReboot" });
        assert.match((await harness.request(`GET /server/${made.ID}/log?previous=true`)).text, /is simulated/);
        assert.equal((await harness.request("GET /server/99999/log")).code, "server_not_found");
        harness.brume.machines.fail("readLog");
        assert.equal((await harness.request(`GET /server/${made.ID}/log`)).code, "engine_unavailable");
        const otherProject = await harness.neighbour();
        assert.equal((await otherProject.request(`GET /server/${made.ID}/log`)).code, "server_not_found");
      });
    });

    describe("the console", () => {
      const open = (id: number, Type: "Serial" | "Vnc" = "Serial") =>
        harness.client.openConsole({ path: { id }, body: { Type } });

      test("transfers bytes in both directions, once per ticket", async () => {
        const made = await fixture.server();
        const { Url, ExpiresAt } = await open(made.ID);
        assert.ok(Url.startsWith(`${harness.brume.url.replace("http", "ws")}/console/`), Url);
        assert.ok(Date.parse(ExpiresAt) > clock.now());
        const line = await dial(Url);
        await line.untilEvent("login: ");
        line.socket.send(Buffer.from("root\r"));
        await line.untilEvent("root\r\nlogin: ");
        // A ticket is valid once.
        assert.equal(await refusedDial(Url), 404);
        // More than any buffer in between holds; all of it is echoed.
        const much = Buffer.alloc(300_000, "x");
        for (let sent = 0; sent < 10; sent++) line.socket.send(much);
        await line.untilEvent(10 * much.length);
        line.socket.close();
        await once(line.socket, "close");
        const vnc = await dial((await open(made.ID, "Vnc")).Url);
        await vnc.untilEvent("RFB 003.008\n");
        vnc.socket.close();
      });

      test("needs a valid ticket", async () => {
        const made = await fixture.server();
        const base = harness.brume.url.replace("http", "ws");
        assert.equal(await refusedDial(`${base}/console/${"0".repeat(64)}`), 404);
        assert.equal(await refusedDial(`${base}/dns`), 401);
        const { Url } = await open(made.ID);
        assert.equal((await fetch(Url.replace("ws", "http"))).status, 404, "without an upgrade it is no address");
        clock.pass(61);
        assert.equal(await refusedDial(Url), 404);
        await fixture.act(made.ID, { Type: "PowerOff" });
        await refused(open(made.ID), "action_not_allowed");
        const reader = await harness.as(["server:read"]);
        await refused(reader.client.openConsole({ path: path(made), body: { Type: "Serial" } }), "scope_missing");
        await refused(harness.client.openConsole({ path: path(made), body: {} as never }), "validation_failed");
      });

      test("a ticket is not in a dry run, an event or the audit", async () => {
        const made = await fixture.server();
        const dry = await harness.client.openConsole({ path: path(made), body: { Type: "Serial" } }, { dryRun: true });
        assert.equal(dry.Url, "");
        const { Url } = await open(made.ID);
        const kept = await harness.client.listAudit({ query: { operation: "openConsole" } });
        assert.equal(kept[0]?.ResourceID, made.ID);
        assert.ok(!JSON.stringify(kept).includes(Url.slice(-64)));
      });

      test("the address is that of the request", async () => {
        const made = await fixture.server();
        const response = await harness.request(
          `POST /server/${made.ID}/console`,
          { Type: "Serial" },
          { "X-Forwarded-Proto": "https" },
        );
        assert.match((response.json as { Url: string }).Url, /^wss:\/\/127\.0\.0\.1:\d+\/console\/[0-9a-f]{64}$/);
      });

      test("ends with the service", async () => {
        const made = await fixture.server();
        const line = await dial((await open(made.ID)).Url);
        const closed = once(line.socket, "close");
        await harness.brume.restart();
        assert.equal((await closed)[0], 1001);
      });
    });

    describe("metrics", () => {
      test("are sampled every ten seconds, and survive a restart", async () => {
        const made = await fixture.server();
        const metrics = (query: object = {}) => harness.client.readServerMetrics({ path: path(made), query });
        const isSeen = async () => (await metrics()).Series.Cpu.some((value) => value !== null);
        while (!(await isSeen())) await pass(harness, clock, 11);
        const seen = await metrics();
        assert.equal(seen.Step, 60);
        for (const series of Object.values(seen.Series)) assert.equal(series.length, seen.Times.length);
        assert.ok(Math.max(...seen.Series.MemoryUsed.map((value) => value ?? 0)) === 128);
        const cpu = seen.Series.Cpu.filter((value) => value !== null);
        assert.ok(
          cpu.every((value) => value > 0 && value <= 100),
          String(cpu),
        );
        await harness.brume.restart();
        assert.ok(await isSeen());
        const to = new Date(clock.now()).toISOString();
        const fine = await metrics({ to, from: new Date(clock.now() - 100_000).toISOString(), step: 10 });
        assert.ok(fine.Times.length >= 10 && fine.Times.length <= 11);
        await refused(metrics({ from: to, to: "2020-01-01" }), "query_invalid", { "?from": "query_invalid" });
        await refused(metrics({ from: "2020-01-01", step: 1 }), "query_invalid", { "?step": "query_invalid" });
        await fixture.remove(made.ID);
        await refused(metrics(), "server_not_found");
      });

      test("are among the metrics of the service", async () => {
        const made = await fixture.server();
        let text = "";
        while (!text.includes(`brume_server_up{server="${made.ID}"} 1`)) {
          await pass(harness, clock, 11);
          text = (await harness.request("GET /metrics?servers=true")).text;
        }
        assert.match(text, /brume_servers\{state="Active"\} \d+/);
        const plain = (await harness.request("GET /metrics")).text;
        assert.match(plain, /^brume_servers_total\{metric="brume_server_up"\} [1-9]\d*$/m);
        assert.doesNotMatch(plain, /brume_server_up\{server=/);
        assert.match(text, new RegExp(`brume_server_memory_bytes\\{server="${made.ID}"\\} ${128 * 2 ** 20}`));
      });
    });
  },
  { clock },
);
