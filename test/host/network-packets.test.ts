/**
 * Networks through the API with real packets: two public networks and a private one, packets between their servers and the internet,
 * and the API's counters and states compared with what the packets did.
 */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { FirewallInput, FirewallRuleInput } from "@brume/api/firewall.ts";
import type { PublicNetwork } from "@brume/api/network.ts";
import type { Packet } from "../../service/src/drivers/router/model/verdict.ts";
import { whyNot } from "../support/hindrance.ts";
import { hindrance, keyOf } from "../support/netnslab.ts";
import { until } from "../support/waituntil.ts";
import { createRouterFixture, type RouterFixture, type Server } from "./routerfixture.ts";
import { startEndpoint } from "./spaceprocess.ts";
import { bucketsOf, passes, startTransfer } from "./transfer.ts";

if (hindrance !== null) console.log(`networks through the API: not tried, ${hindrance}`);

const OTHER_HOST = "198.51.100.5";
const TCP = 6;
const UDP = 17;

describe("networks through the API, with real packets", { skip: hindrance ?? false, concurrency: false }, () => {
  let fixture: RouterFixture;
  let first: PublicNetwork;
  let second: PublicNetwork;
  let [one, two, far, hidden, beside, doubtful, sure]: Server[] = [];
  /** A network with a change that is never confirmed. */
  let waiting: PublicNetwork;

  const at = (server: Server | undefined): Server => {
    assert.ok(server);
    return server;
  };
  const set = (network: PublicNetwork, body: FirewallInput): Promise<PublicNetwork> =>
    fixture.client.configureFirewall({ path: { id: network.Id }, body }, { wait: 60 });
  const allow = (rule: Partial<FirewallRuleInput>): FirewallRuleInput => ({ Action: "Allow", ...rule });
  const pings = (from: Server | undefined, to: string, seconds: number): Promise<boolean> =>
    fixture.lab.works(at(from).space, ["ping", "-n", "-c", "1", "-W", String(seconds), to]);
  const reaches = async (from: Server | undefined, to: string) => assert.ok(await pings(from, to, 50), to);
  const misses = async (from: Server | undefined, to: string) => assert.ok(!(await pings(from, to, 0.7)), to);

  let nextPort = 20_000;
  const packet = (protocol: number, source: string, destination: string, destinationPort: number): Packet => ({
    protocol,
    source,
    sourcePort: nextPort++,
    destination,
    destinationPort,
  });
  /** Returns which packets arrive, each sent from the namespace of its source. */
  async function arrive(from: string, to: string, packets: readonly Packet[]): Promise<boolean[]> {
    await fixture.lab.seen(to);
    await fixture.lab.send(from, packets);
    const seen = await fixture.lab.seen(to);
    return packets.map((each) => seen.has(keyOf(each)));
  }

  const isSshReached = (server: Server | undefined): Promise<boolean[]> =>
    arrive(fixture.lab.internet, at(server).space, [packet(TCP, OTHER_HOST, at(server).ip, 22)]);

  before(async () => {
    fixture = await createRouterFixture({ ipv6: true });
    first = await fixture.order("first");
    second = await fixture.order("second");
    const inner = await fixture.client.createNetwork({ body: { Name: "inner", CIDR: "10.77.0.0/24" } }, { wait: 60 });
    assert.deepEqual([first.State, second.State, inner.State], ["Active", "Active", "Active"]);
    one = await fixture.plug(first.Id);
    two = await fixture.plug(first.Id);
    far = await fixture.plug(second.Id);
    hidden = await fixture.plug(inner.ID);
    beside = await fixture.plug(inner.ID);

    const third = await fixture.order("third");
    doubtful = await fixture.plug(third.Id);
    waiting = await set(third, { Rules: [], ConfirmWithin: 30 });
    assert.deepEqual(await isSshReached(doubtful), [false]);
    const fourth = await fixture.order("fourth");
    sure = await fixture.plug(fourth.Id);
    await set(fourth, { Rules: [], ConfirmWithin: 30 });
    await set(fourth, { Confirm: true });
  });
  beforeEach(async () => {
    await set(first, { Enabled: false });
    await set(second, { Enabled: false });
  });
  after(() => fixture?.close());

  test("servers reach their neighbours, their edge and the internet; a private network is isolated", async () => {
    await reaches(one, at(two).ip);
    await reaches(one, first.Gateway);
    await reaches(one, at(far).ip);
    await reaches(far, "198.18.0.2");
    await reaches(hidden, at(beside).ip);
    await fixture.lab.ip(at(hidden).space, ["route replace default dev eth0"]);
    for (const target of [at(one).ip, "198.18.0.2", first.EdgeExternalIp]) await misses(hidden, target);
    const back = await fixture.lab.run(fixture.lab.machine, ["ip", "route", "get", at(hidden).ip]).catch(() => "");
    assert.ok(!back.includes(`b${fixture.lab.tag}u`), back);
  });

  test("rules match as their counters show, in both directions", async () => {
    const shown = await set(first, {
      Rules: [
        allow({ Name: "web", Protocol: "Tcp", Destination: at(one).ip, DestinationPort: "80,443" }),
        allow({ Name: "out", Protocol: "Udp", Source: "internal", Destination: "external", DestinationPort: "53" }),
        { Name: "no", Action: "Deny", Protocol: "Udp", Destination: at(two).ip },
      ],
    });
    assert.equal(shown.AppliedGeneration, shown.Generation);
    assert.deepEqual(
      shown.Firewall.Rules.map(({ Packets, LastHit }) => [Packets, LastHit]),
      [0, 1, 2].map(() => [0, null]),
    );
    const inward = await arrive(fixture.lab.internet, at(one).space, [
      packet(TCP, OTHER_HOST, at(one).ip, 80),
      packet(TCP, OTHER_HOST, at(one).ip, 443),
      packet(TCP, OTHER_HOST, at(one).ip, 81),
      packet(UDP, OTHER_HOST, at(one).ip, 80),
    ]);
    assert.deepEqual(inward, [true, true, false, false]);
    const toSecond = await arrive(fixture.lab.internet, at(two).space, [
      packet(TCP, OTHER_HOST, at(two).ip, 80),
      packet(UDP, OTHER_HOST, at(two).ip, 53),
    ]);
    assert.deepEqual(toSecond, [false, false]);
    const outward = await arrive(at(one).space, fixture.lab.internet, [
      packet(UDP, at(one).ip, OTHER_HOST, 53),
      packet(UDP, at(one).ip, OTHER_HOST, 54),
      packet(TCP, at(one).ip, OTHER_HOST, 80),
    ]);
    assert.deepEqual(outward, [true, false, false]);
    const read = await fixture.client.readPublicNetwork({ path: { id: first.Id } });
    assert.deepEqual(
      read.Firewall.Rules.map(({ Packets }) => Packets),
      [2, 1, 1],
    );
    assert.ok(read.Firewall.Rules.every(({ LastHit, Bytes }) => LastHit !== null && (Bytes ?? 0) > 0));
    const [listed] = (await fixture.client.listPublicNetworks()).filter(({ Id }) => Id === first.Id);
    assert.deepEqual(
      listed?.Firewall.Rules.map(({ Packets }) => Packets),
      [null, null, null],
    );
  });

  test("between two networks both edges filter", async () => {
    const ssh = () => arrive(at(one).space, at(far).space, [packet(TCP, at(one).ip, at(far).ip, 22)]);
    const out = { Rules: [allow({ Source: "internal", Destination: "external" })] };
    const into = { Rules: [allow({ Protocol: "Tcp", Source: first.CIDR, DestinationPort: "22" })] };
    assert.deepEqual(await ssh(), [true]);
    await set(first, out);
    await set(second, { Rules: [] });
    assert.deepEqual(await ssh(), [false], "the second edge refuses");
    await set(second, into);
    assert.deepEqual(await ssh(), [true], "both admit");
    await set(first, { Rules: [] });
    assert.deepEqual(await ssh(), [false], "the first edge refuses");
    // Traffic between neighbours does not cross the edge, so rules do not apply.
    await reaches(one, at(two).ip);
    await reaches(one, first.Gateway);
  });

  test("a server can send only from its own address", async () => {
    const { space, ip } = at(one);
    const borrowed = first.CIDR.replace(/\.\d+\/29$/, `.${Number(ip.split(".")[3]) + 3}`);
    const taken = (await fixture.client.readPublicNetwork({ path: { id: first.Id } })).LinkedServers.map(
      ({ IP }) => IP,
    );
    assert.ok(!taken.includes(borrowed));
    await fixture.lab.ip(space, [`addr add ${borrowed}/32 dev eth0`]);
    const tried = await arrive(space, fixture.lab.internet, [
      packet(UDP, borrowed, OTHER_HOST, 53),
      packet(UDP, ip, OTHER_HOST, 53),
    ]);
    await fixture.lab.ip(space, [`addr del ${borrowed}/32 dev eth0`]);
    assert.deepEqual(tried, [false, true]);
    await fixture.lab.ip(space, ["link set eth0 address 02:42:00:00:99:99"]);
    await misses(one, first.Gateway);
    await fixture.lab.ip(space, [
      `link set eth0 address ${at(one).port.mac}`,
      `route replace default via ${first.Gateway}`,
      `route replace default via ${first.Gateway6 ?? ""}`,
    ]);
    await reaches(one, first.Gateway);
    // Spoofed packets from outside with an inside address are dropped too.
    await fixture.lab.ip(fixture.lab.internet, [`addr add ${at(two).ip}/32 dev lo`]);
    const posed = await arrive(fixture.lab.internet, space, [packet(UDP, at(two).ip, ip, 53)]);
    await fixture.lab.ip(fixture.lab.internet, [`addr del ${at(two).ip}/32 dev lo`]);
    assert.deepEqual(posed, [false]);
  });

  test("new rules cut only connections that they do not allow; other changes cut none", async () => {
    const web = allow({ Protocol: "Tcp", Destination: at(one).ip, DestinationPort: "7000" });
    const other = allow({ Protocol: "Tcp", Destination: at(one).ip, DestinationPort: "7001" });
    await set(first, { Rules: [web, other] });
    const open = async (port: string) => {
      const echo = startEndpoint(at(one).space, "echo", port);
      assert.equal(await echo.line(), "ready");
      const caller = startEndpoint(fixture.lab.internet, "send", at(one).ip, port);
      assert.equal(await caller.line(), "connected");
      const answers = async (word: string): Promise<void> => {
        caller.send(word);
        assert.equal(await caller.line(), word);
      };
      const isCut = async (): Promise<void> => {
        caller.send("cut");
        assert.equal(await Promise.race([caller.line(), sleep(700, "no answer")]), "no answer");
      };
      return { answers, isCut, end: () => [echo, caller].forEach((each) => each.end()) };
    };
    const [stays, goes] = [await open("7000"), await open("7001")];
    try {
      for (const each of [stays, goes]) await each.answers("one");
      await fixture.client.updatePublicNetwork({ path: { id: first.Id }, body: { Name: "renamed", Bandwidth: 90 } });
      await set(first, { Rules: [other, { Action: "Deny", Protocol: "Udp" }, web] });
      for (const each of [stays, goes]) await each.answers("two");
      await set(first, { Rules: [web, allow({ Source: "internal", Destination: "external" })] });
      await stays.answers("three");
      await goes.isCut();
      await fixture.restart();
      await stays.answers("four");
    } finally {
      stays.end();
      goes.end();
    }
  });

  test("the network's bandwidth limits both directions, and changes during a transfer", async () => {
    const limit = (Bandwidth: number) =>
      fixture.client.updatePublicNetwork({ path: { id: first.Id }, body: { Bandwidth } }, { wait: 60 });
    const bucket = (device: string) => async () => (await bucketsOf(fixture.lab, fixture.edgeOf(first.Id))).get(device);
    await limit(20);
    const inward = await startTransfer(fixture.lab.internet, at(one).space, at(one).ip);
    await passes(bucket("br0"), 20, () => inward.send(1_250_000));
    let isChanged = false;
    const changed = limit(50).finally(() => {
      isChanged = true;
    });
    while (!isChanged) await inward.send(250_000);
    await changed;
    await passes(bucket("br0"), 50, () => inward.send(3_000_000));
    await inward.end();
    const outward = await startTransfer(at(one).space, fixture.lab.internet, "198.18.0.2");
    await passes(bucket("up0"), 50, () => outward.send(3_000_000));
    await outward.end();
  });

  test("a DHCP client gets the address of its link", { skip: whyNot("busybox") }, async () => {
    const client = await fixture.plug(first.Id, { bare: true });
    const notes = join(fixture.lab.runFolder, "lease");
    const script = join(fixture.lab.runFolder, "noting");
    writeFileSync(script, `#!/bin/sh\n[ "$1" != bound ] || env >${notes}\n`, { mode: 0o755 });
    try {
      const lease = await fixture.lab.run(client.space, [
        "sh",
        "-c",
        `busybox udhcpc -i eth0 -n -q -f -t 5 -T 1 -O mtu -s ${script} >/dev/null 2>&1; cat ${notes}`,
      ]);
      const printed = Object.fromEntries(lease.split("\n").map((line) => line.split("=") as [string, string]));
      assert.deepEqual(
        [printed["ip"], printed["subnet"], printed["router"], printed["dns"], printed["mtu"], printed["hostname"]],
        [client.ip, first.Mask, first.Gateway, "9.9.9.9", "1500", `server-${client.link.ServerID}`],
      );
    } finally {
      for (const file of [notes, script]) rmSync(file, { force: true });
    }
  });

  test("an unconfirmed change is reverted at its deadline, a confirmed one stays", async () => {
    const hour = Date.parse(waiting.Firewall.ConfirmBy ?? "");
    const reverted = await until("the change is reverted", async () =>
      (await fixture.events("publicnetwork.changed")).find(
        ({ ResourceID, TokenID }) => ResourceID === waiting.Id && TokenID === null,
      ),
    );
    assert.ok(Date.parse(reverted.Date) >= hour, `${reverted.Date} is before ${waiting.Firewall.ConfirmBy}`);
    await fixture.applied(waiting.Id);
    assert.deepEqual(await isSshReached(doubtful), [true]);
    const now = await fixture.client.readPublicNetwork({ path: { id: waiting.Id } });
    assert.deepEqual([now.Firewall.ConfirmBy, now.Firewall.Enabled], [null, false]);
    assert.deepEqual(await isSshReached(sure), [false]);
  });
});
