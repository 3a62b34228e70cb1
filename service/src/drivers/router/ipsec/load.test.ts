import assert from "node:assert/strict";
import { test } from "node:test";
import { ipsecTunnel } from "../../../../../test/support/tunnelspec.ts";
import type { IpsecTunnel } from "../interface.ts";
import { createInitiations, type Initiations } from "../linux/initiations.ts";
import { loadTunnels } from "./load.ts";
import { secretName } from "./state.ts";
import { createTunnelHistory, noRefusals, statusOf, type TunnelHistory } from "./status.ts";
import { type Message, text, type Vici } from "./vici.ts";

const edge = "192.0.2.1";
const tunnel = ipsecTunnel({ peerSubnets: ["10.24.2.0/24", "10.24.3.0/24"] });
const child = (name: string, peer: readonly string[]): Message => ({
  name,
  state: "INSTALLED",
  "local-ts": ["10.24.1.0/24"],
  "remote-ts": [...peer],
});

const established: Message = { state: "ESTABLISHED", "initiator-spi": "1234567890abcdef" };

/** A charon that has the tunnel loaded (`loaded`: with other settings); its peer never agrees to more than `children`. */
function situation(desired: IpsecTunnel, children: Record<string, Message>, loaded = desired) {
  const calls: [number, string, Message][] = [];
  const histories = new Map<number, TunnelHistory>([[7, createTunnelHistory()]]);
  let seconds = 0;
  const vici: Vici = {
    async call(command, message = {}) {
      if (command === "get-shared") return { keys: [secretName(loaded, edge, "00")] };
      calls.push([seconds, command, message]);
      return {};
    },
    stream: async (command) =>
      command === "list-conns"
        ? [{ "t-7": { remote_addrs: ["192.0.2.2"] } }]
        : [{ "t-7": { ...established, "child-sas": children } }],
    listen: async () => {},
    onClose: () => {},
    close: () => {},
  };
  const initiations: Initiations = { replace: (due) => due.forEach(({ start }) => void start()), end: () => {} };
  const turn = (at: number): Promise<void> => {
    seconds = at;
    return loadTunnels(vici, [desired], edge, {
      lookup: async (host) => host,
      random: (bytes) => new Uint8Array(bytes),
      histories,
      initiations,
      retryAfter: 2000,
      handshakeLimit: 0,
      steady: () => seconds * 1000,
    });
  };
  const initiated = () => calls.filter(([, command]) => command === "initiate").map(([at]) => at);
  return { calls, histories, turn, initiated };
}

test("a peer that rejects our networks is contacted again with growing pauses, and at once after a change", async () => {
  const refused = situation(tunnel, {});
  Object.assign(refused.histories.get(7) ?? {}, { reason: { fault: "selectors_refused", detail: "" } });
  for (const { turn, initiated, histories } of [
    situation(tunnel, { "c-7-1": child("c-7", ["10.24.2.0/24"]) }),
    refused,
  ]) {
    for (let at = 0; at <= 200; at += 2) await turn(at);
    assert.deepEqual(initiated(), [0, 2, 4, 6, 8, 10, 12, 16, 24, 40, 72, 132, 192]);
    Object.assign(histories.get(7) ?? {}, noRefusals);
    await turn(202);
    assert.equal(initiated().at(-1), 202);
  }
});

test("a complete association is unchanged, and a narrowed one is ended first", async () => {
  const complete = situation(tunnel, { "c-7-1": child("c-7", tunnel.peerSubnets) });
  await complete.turn(0);
  assert.deepEqual(complete.calls, []);
  const narrowed = situation(tunnel, { "c-7-1": child("c-7", ["10.24.2.0/24"]) });
  await narrowed.turn(0);
  const commands = (calls: readonly [number, string, Message][]) =>
    calls.map(([, command, { ike, child }]) => [command, ike, child]);
  assert.deepEqual(commands(narrowed.calls), [
    ["terminate", "t-7", undefined],
    ["initiate", "t-7", "c-7"],
  ]);
  // IKEv1: the working pair of networks stays.
  const v1 = { ...tunnel, ikeVersion: 1 } as const;
  const half = situation(v1, {
    "c-1": child("c-7-0-0", ["10.24.2.0/24"]),
    "c-2": child("c-7-0-1", ["10.24.3.0/25"]),
  });
  await half.turn(0);
  assert.deepEqual(commands(half.calls), [
    ["terminate", "t-7", "c-7-0-1"],
    ["initiate", "t-7", "c-7-0-1"],
  ]);
});

test("a changed tunnel was never up, also if its earlier association is observed before it has ended", async () => {
  const { turn, histories } = situation(
    { ...tunnel, sharedKey: "Another-Key-0123456789" },
    {
      "c-7-1": child("c-7", tunnel.peerSubnets),
    },
    tunnel,
  );
  await turn(0);
  const history = histories.get(7) ?? assert.fail();
  const listed = [{ ...established, "child-sas": { "c-7-1": child("c-7", tunnel.peerSubnets) } }];
  assert.equal(statusOf(tunnel, listed, history, 0).state, "connecting");
  assert.equal(history.wasUp, false);
});

test("a peer that initiates and narrows is not contacted", async () => {
  const called = { ...tunnel, peer: null };
  const { turn, calls } = situation(called, { "c-7-1": child("c-7", ["10.24.2.0/24"]) });
  await turn(0);
  assert.deepEqual(calls, []);
});

test("removed tunnels end after handshakes that begin while others are removed, and no further initiation starts", async () => {
  const ended: string[] = [];
  const started: number[] = [];
  // The handshake of tunnel 2 begins when tunnel 1 has ended, and lasts three reads. At the first, its peer has not responded.
  let reads = 0;
  const association = (): Message[] => {
    const isRunning = ended.includes("t-1") && !ended.includes("t-2") && reads++ < 3;
    const spi = reads === 1 ? "0000000000000000" : "1234567890abcdef";
    return isRunning ? [{ "t-2": { state: "CONNECTING", "responder-spi": spi } }] : [];
  };
  const initiations = createInitiations();
  const vici: Vici = {
    call(command, message = {}) {
      if (command === "get-shared") return Promise.resolve({ keys: ["psk-1-a-b", "psk-2-a-b"] });
      if (command === "terminate") {
        ended.push(text(message, "ike"));
        if (text(message, "ike") === "t-2") assert.equal(reads, 4, "the handshake was in progress");
        initiations.end(9);
      }
      return Promise.resolve({});
    },
    stream: (command) =>
      Promise.resolve(
        command === "list-conns" ? [{ "t-1": { remote_addrs: [] }, "t-2": { remote_addrs: [] } }] : association(),
      ),
    listen: () => Promise.resolve(),
    onClose: () => {},
    close: () => {},
  };
  const initiationOf = (tunnel: number) => ({ tunnel, start: () => Promise.resolve(started.push(tunnel)) });
  initiations.replace([9, 8, 1, 2].map(initiationOf));
  await loadTunnels(vici, [], "192.0.2.1", {
    lookup: () => Promise.reject(new Error("no name")),
    random: (bytes) => new Uint8Array(bytes),
    histories: new Map(),
    initiations,
    retryAfter: 1000,
    handshakeLimit: Number.POSITIVE_INFINITY,
    steady: () => 0,
  });
  initiations.end(8);
  assert.deepEqual(ended, ["t-1", "t-2"]);
  assert.deepEqual(started, [9, 8]);
});

test("a removed tunnel ends although its handshake never ends", async () => {
  const ended: string[] = [];
  const vici: Vici = {
    call(command, message = {}) {
      if (command === "terminate") ended.push(text(message, "ike"));
      return Promise.resolve(command === "get-shared" ? { keys: ["psk-1-a-b"] } : {});
    },
    stream: (command) =>
      Promise.resolve([
        { "t-1": command === "list-conns" ? { remote_addrs: [] } : { state: "CONNECTING", "responder-spi": "12" } },
      ]),
    listen: () => Promise.resolve(),
    onClose: () => {},
    close: () => {},
  };
  await loadTunnels(vici, [], "192.0.2.1", {
    lookup: () => Promise.reject(new Error("no name")),
    random: (bytes) => new Uint8Array(bytes),
    histories: new Map(),
    initiations: createInitiations(),
    retryAfter: 1000,
    handshakeLimit: 50,
    steady: () => 0,
  });
  assert.deepEqual(ended, ["t-1"]);
});

test("names are resolved at once, and those without a response delay no other tunnel", async () => {
  const calls: string[] = [];
  const vici: Vici = {
    call: async (command, message = {}) => {
      if (command === "load-conn") calls.push(...Object.keys(message));
      return command === "get-shared" ? { keys: [] } : {};
    },
    stream: async () => [],
    listen: async () => {},
    onClose: () => {},
    close: () => {},
  };
  const silent = ["a.example", "b.example", "c.example"];
  const resolved: string[] = [];
  const late: (() => void)[] = [];
  const peers = [...silent, "192.0.2.9"];
  const histories = new Map<number, TunnelHistory>();
  await loadTunnels(
    vici,
    peers.map((peer, at) => ipsecTunnel({ id: at + 1, peer })),
    edge,
    {
      // No name server responds: each look-up ends when the last one has begun.
      lookup: (host) => {
        resolved.push(host);
        const { promise, reject } = Promise.withResolvers<string>();
        late.push(() => reject(new Error("no name server responded")));
        if (resolved.length === silent.length) for (const end of late) end();
        return promise;
      },
      random: (bytes) => new Uint8Array(bytes),
      histories,
      initiations: { replace: () => {}, end: () => {} },
      retryAfter: 2000,
      handshakeLimit: 0,
      steady: () => 0,
    },
  );
  assert.deepEqual([resolved, calls], [silent, ["t-4"]]);
  assert.match(histories.get(1)?.reason?.detail ?? "", /a.example has no address: no name server responded/);
});
