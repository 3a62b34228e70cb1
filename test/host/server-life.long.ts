/**
 * One real server through the API, from creation to deletion: its settings are checked inside the guest, on the serial line and in the
 * metrics; it is resized while it runs, shut down, powers itself off, and its files outlive every power cycle.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Server } from "@brume/api/server.ts";
import { until } from "../support/waituntil.ts";
import { createServerHost, hindrance, type ServerHost, type Traces } from "./serverhost.ts";

if (hindrance !== null) console.log(`a server's life: not tried, ${hindrance}`);

describe("a server's life", { skip: hindrance ?? false, concurrency: false }, () => {
  let host: ServerHost;
  let server: Server;
  let initial: Traces;
  before(async () => {
    host = await createServerHost();
    initial = await host.traces();
  });
  after(() => host?.close());

  const path = () => ({ id: server.ID });
  const inside = (command: string) => host.run(server.IP, command);
  const number = async (command: string) => Number(await inside(command));
  const cores = () => number("nproc");
  const memory = async () => (await number("awk '/MemTotal/ { print $2 }' /proc/meminfo")) / 1024;
  const disk = async () => (await number("df -m / | awk 'END { print $2 }'")) / 1024;
  const boots = () => inside("cat /proc/sys/kernel/random/boot_id");
  const answers = () => until("it answers ssh", () => host.ssh(server.IP, "true").then((output) => output !== null));
  const power = (isOn: boolean) =>
    until(`it is ${isOn ? "on" : "off"}`, async () => (await host.read(server.ID)).IsPowerOn === isOn);

  test("has the requested cores, memory, disk, name, keys, password and script", async () => {
    const UserData = '#!/bin/sh\necho "run by $(id -un)" >/root/ran\n';
    const begun = Date.now();
    server = await host.create({ Name: "Web one!", RAM: 256, HDD: 2, UserData });
    console.log(`from the order to ssh: ${Date.now() - begun} ms`);
    assert.deepEqual([server.State, server.IsPowerOn, server.HostName], ["Active", true, "web-one"]);
    assert.equal(await cores(), 1);
    const mb = await memory();
    assert.ok(mb > 190 && mb <= 256, `${mb} MB`);
    await until("a file system of 2 GB", async () => (await disk()) > 1.8);
    assert.equal(await inside("hostname"), "web-one");
    assert.equal(await inside("tail -n +1 /sys/class/net/eth*/address"), server.LinkedNetworks[0]?.MAC);
    assert.equal(await host.ssh(server.IP, "id -un", { password: server.AdminPassword }), "root");
    assert.equal(await host.ssh(server.IP, "id -un", { password: "wrong" }), null);
    assert.equal(await until("its script has run", () => host.ssh(server.IP, "cat /root/ran")), "run by root");
  });

  test("has a serial line, as a log and as a console by WebSocket", async () => {
    const log = await host.client.text("readServerLog", { path: path() });
    assert.match(log, /READY uptime=\S+ host=web-one ip=10\.63\.0\.2/);
    const tail = await host.client.text("readServerLog", { path: path(), query: { tail: 2 } });
    assert.ok(tail.trimEnd().split("\n").length <= 2 && log.includes(tail.trim()), tail);

    const { Url } = await host.client.openConsole({ path: path(), body: { Type: "Serial" } });
    const socket = new WebSocket(Url);
    socket.binaryType = "arraybuffer";
    let output = "";
    socket.addEventListener("message", ({ data }) => {
      output += new TextDecoder().decode(data as ArrayBuffer);
    });
    await new Promise((open, failed) => Object.assign(socket, { onopen: open, onerror: failed }));
    // A guest that has just booted flushes what was typed before its prompt.
    const type = (text: string) => socket.send(new TextEncoder().encode(text));
    const enter = async (text: string, answer: RegExp) => {
      type(text);
      await until(`${answer} on the console`, async () => answer.test(output), 60_000).catch((error: unknown) => {
        throw new Error(`${String(error)}; the output was ${JSON.stringify(output)}`);
      });
    };
    await enter("\r", /login: *$/);
    await enter("root\r", /Password: *$/i);
    // The shell queries the cursor position.
    await enter(`${server.AdminPassword}\r`, /:~# /);
    await enter("echo $((6 * 7))-seen\r", /42-seen/);
    socket.close();
    const again = new WebSocket(Url);
    const refused = await new Promise((done) =>
      Object.assign(again, { onopen: () => done(false), onerror: () => done(true) }),
    );
    assert.ok(refused, "an address works once");
  });

  test("shows its screen by RFB", async () => {
    const { Url } = await host.client.openConsole({ path: path(), body: { Type: "Vnc" } });
    const socket = new WebSocket(Url);
    socket.binaryType = "arraybuffer";
    const first = await new Promise<string>((done, failed) => {
      Object.assign(socket, {
        onmessage: ({ data }: MessageEvent) => done(new TextDecoder().decode(data as ArrayBuffer)),
        onerror: () => failed(new Error("refused")),
      });
    });
    assert.equal(first, "RFB 003.008\n");
    socket.close();
  });

  test("has metrics that show its load", async () => {
    const { Series, Step, Times } = await until("figures", async () => {
      // Repeated, because load before the first sample is not in the metrics.
      await inside("dd if=/dev/urandom of=/root/noise bs=1M count=8 2>/dev/null; sync");
      const figures = await host.client.readServerMetrics({ path: path(), query: { step: 10 } });
      const { Cpu, DiskWrite, NetIn } = figures.Series;
      return [Cpu, DiskWrite, NetIn].every((series) => series.some((value) => value !== null && value > 0)) && figures;
    });
    assert.equal(Step, 10);
    for (const series of Object.values(Series)) assert.equal(series.length, Times.length);
    const used = Series.MemoryUsed.filter((value) => value !== null);
    assert.ok(
      used.some((mb) => mb > 5 && mb <= 512),
      `memory ${used.join()}`,
    );
  });

  test("grows its disk and memory while it runs, and its cores by a restart", async () => {
    await inside("echo kept >/root/file; sync");
    const id = await boots();
    const order = async (body: Parameters<typeof host.client.updateServer>[0]["body"]) => {
      const { ID } = await host.client.updateServer({ path: path(), body });
      const action = await host.ended(server.ID, ID);
      assert.equal(action.State, "Completed", JSON.stringify(action));
      return action.Steps.map(({ Name }) => Name).join();
    };
    assert.equal(await order({ HDD: 3, RAM: 512, AllowRestart: false }), "Memory,Disk");
    await until("a file system of 3 GB", async () => (await disk()) > 2.8);
    await until("512 MB", async () => (await memory()) > 400);
    assert.equal(await boots(), id, "without a restart");

    const refused = await host.client
      .updateServer({ path: path(), body: { CPU: 2, AllowRestart: false } })
      .catch((error: unknown) => error);
    // With KVM, CPUs are added live too.
    const live = !(refused instanceof Error);
    if (!live) {
      assert.equal((refused as { code?: string }).code, "restart_needed");
      assert.equal(await order({ CPU: 2 }), "Stop,Cpu,Start");
    } else await host.ended(server.ID, (refused as { ID: number }).ID);
    await answers();
    assert.equal(await cores(), 2);
    assert.equal((await boots()) === id, live);
    assert.equal(await inside("cat /root/file"), "kept");
    const now = await host.read(server.ID);
    assert.deepEqual([now.CPU, now.RAM, now.HDD], [2, 512, 3]);
  });

  test("shuts down when its power button is pressed, and starts again with its files", async () => {
    const down = await host.act(server.ID, { Type: "ShutDownGuestOS" });
    assert.equal(down.State, "Completed", JSON.stringify(down));
    assert.deepEqual([(await host.read(server.ID)).IsPowerOn, host.pidOf(server.ID)], [false, null]);
    assert.match(await host.client.text("readServerLog", { path: path() }), /\S/);
    const up = await host.act(server.ID, { Type: "PowerOn", WaitFor: "Ssh" });
    assert.equal(up.State, "Completed", JSON.stringify(up));
    assert.equal(await inside("cat /root/file"), "kept");
    assert.equal(await inside("cat /root/ran"), "run by root", "its script has run once");
    const previous = await host.client.text("readServerLog", { path: path(), query: { previous: true } });
    assert.match(previous, /host=web-one/);
  });

  test("powers itself off and stays off until it is started", async () => {
    await host.ssh(server.IP, "poweroff");
    await power(false);
    await until("its process is gone", async () => host.pidOf(server.ID) === null);
    // Two runs of the reconciler that restarts crashed VMs.
    const seen = Date.now();
    await until("it is still off", async () => {
      assert.equal(host.pidOf(server.ID), null);
      return Date.now() - seen > 11_000;
    });
    const action = await host.act(server.ID, { Type: "ShutDownGuestOS" });
    assert.equal(action.State, "Completed");
    const reset = await host.client
      .startAction({ path: path(), body: { Type: "PowerReboot" } })
      .catch((e: unknown) => e);
    assert.equal((reset as { code?: string }).code, "action_not_allowed", "what is off cannot be reset");
  });

  test("leaves nothing when it is deleted", async () => {
    await host.delete(server.ID);
    assert.deepEqual(await host.traces(), initial);
    await assert.rejects(host.read(server.ID), { code: "server_not_found" });
    assert.deepEqual(
      host.brume.log.filter(({ level }) => level > 30),
      [],
    );
  });
});
