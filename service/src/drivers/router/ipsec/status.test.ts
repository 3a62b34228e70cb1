import assert from "node:assert/strict";
import { test } from "node:test";
import { ipsecTunnel } from "../../../../../test/support/tunnelspec.ts";
import type { IpsecTunnel } from "../interface.ts";
import { childrenMissing, createTunnelHistory, noteRekey, reasonOf, statusOf } from "./status.ts";
import type { Message } from "./vici.ts";

const tunnel = ipsecTunnel({
  peerSubnets: ["10.24.2.0/24", "10.24.3.0/24"],
  peer: "far.example",
  peerIdentity: "far.example",
});

const child = (change: Record<string, string | string[]> = {}): Message => ({
  name: "c-7",
  state: "INSTALLED",
  "encr-alg": "AES_CBC",
  "encr-keysize": "256",
  "integ-alg": "HMAC_SHA2_256_128",
  "bytes-in": "100",
  "bytes-out": "50",
  "use-in": "3",
  "install-time": "10",
  "local-ts": ["10.24.1.0/24"],
  "remote-ts": ["10.24.2.0/24", "10.24.3.0/24"],
  ...change,
});
const association = (...children: readonly Message[]): Message => ({
  state: "ESTABLISHED",
  "remote-host": "192.0.2.2",
  "dh-group": "MODP_2048",
  "child-sas": Object.fromEntries(children.map((each, index) => [`c-${index}`, each])),
});
const now = 1_000_000;

test("a tunnel is up if a child carries packets", () => {
  assert.deepEqual(statusOf(tunnel, [association(child())], createTunnelHistory(), now), {
    id: 7,
    state: "up",
    reason: null,
    establishedAt: now - 10_000,
    bytesIn: 100,
    bytesOut: 50,
    lastSeen: now - 3000,
    localSubnets: ["10.24.1.0/24"],
    peerSubnets: ["10.24.2.0/24", "10.24.3.0/24"],
    peerAddress: "192.0.2.2",
    proposal: "AES_CBC_256/HMAC_SHA2_256_128/MODP_2048",
  });
  const gcm = child({ "encr-alg": "AES_GCM_16", "encr-keysize": "128", "integ-alg": "", "dh-group": "ECP_256" });
  assert.equal(statusOf(tunnel, [association(gcm)], createTunnelHistory(), now).proposal, "AES_GCM_16_128/ECP_256");
});

test("first it is connecting, then down, and the reason has the values of both sides but no key", () => {
  const history = createTunnelHistory();
  assert.equal(statusOf(tunnel, [], history, now).state, "connecting");
  for (const fault of [
    "authentication_failed",
    "no_proposal_chosen",
    "selectors_refused",
    "peer_unreachable",
  ] as const) {
    history.reason = { fault, detail: "It is so." };
    const { reason } = statusOf(tunnel, [association()], history, now);
    assert.equal(reason?.fault, fault);
    assert.match(reason?.detail ?? "", /^It is so\. .*(far\.example|aes256|10\.24\.1\.0)/);
    assert.ok(!JSON.stringify(reason).includes(tunnel.sharedKey));
  }
  statusOf(tunnel, [association(child())], history, now);
  const down = statusOf(tunnel, [association(child({ state: "DELETING" }))], history, now + 1);
  assert.deepEqual([down.state, down.reason, down.establishedAt, down.lastSeen], ["down", null, null, now - 3000]);
  assert.deepEqual([down.localSubnets, down.proposal, down.peerAddress], [[], "", "far.example"]);
});

test("an association of earlier settings that is still listed does not count", () => {
  const [earlier, other] = ["1", "2"].map((spi) => ({ ...association(child()), "initiator-spi": spi }));
  assert.ok(earlier && other);
  const history = createTunnelHistory([earlier]);
  const ending = statusOf(tunnel, [earlier], history, now);
  assert.deepEqual([ending.state, ending.lastSeen, ending.proposal], ["connecting", null, ""]);
  assert.equal(statusOf(tunnel, [], history, now).state, "connecting", "it was never up with these settings");
  assert.equal(statusOf(tunnel, [earlier, other], history, now).state, "up");
});

test("disabled and unknown", () => {
  const off = statusOf({ ...tunnel, enabled: false }, "charon does not run.", createTunnelHistory(), now);
  assert.deepEqual([off.state, off.reason], ["disabled", null]);
  const silent = statusOf(tunnel, "charon does not answer.", createTunnelHistory(), now);
  assert.deepEqual(silent.reason, { fault: "engine_unavailable", detail: "charon does not answer." });
  assert.equal(silent.state, "unknown");
});

test("counters continue after rekeying", () => {
  const history = createTunnelHistory();
  const first = statusOf(tunnel, [association(child())], history, now);
  noteRekey({ "child-sas": { "c-0": { old: { "bytes-in": "120", "bytes-out": "60" }, new: {} } } }, history);
  const unused = child({ "bytes-in": "1", "bytes-out": "2", "install-time": "0", "use-in": "" });
  const second = statusOf(tunnel, [association(child({ state: "REKEYED" }), unused)], history, now + 1000);
  assert.deepEqual([second.bytesIn, second.bytesOut], [121, 62]);
  assert.equal(second.establishedAt, first.establishedAt);
});

test("a child that the peer narrowed on either side is not up", () => {
  const cuts: readonly (readonly [Record<string, string[]>, RegExp])[] = [
    [
      { "local-ts": ["10.24.1.1/32"] },
      /agrees only to .* and 10\.24\.1\.1\/32 on ours\. Configured here: 10\.24\.1\.0\/24 on our side/,
    ],
    [
      { "remote-ts": ["10.24.2.0/24"] },
      /agrees only to 10\.24\.2\.0\/24 on its side .* 10\.24\.3\.0\/24 on the peer's/,
    ],
    [{ "remote-ts": ["10.24.2.0/24", "10.24.3.0/25"] }, /10\.24\.3\.0\/25 on its side/],
    [{ "local-ts": ["10.24.1.0/24[tcp/80]"] }, /10\.24\.1\.0\/24\[tcp\/80\] on ours/],
    [{ "local-ts": ["10.24.1.0..10.24.1.6"] }, /10\.24\.1\.0\.\.10\.24\.1\.6 on ours/],
  ];
  for (const [cut, detail] of cuts) {
    const history = createTunnelHistory();
    const status = statusOf(tunnel, [association(child(cut))], history, now);
    assert.deepEqual([status.state, status.reason?.fault, status.establishedAt], ["down", "selectors_refused", null]);
    assert.match(status.reason?.detail ?? "", detail);
    // A complete child beside it, or instead of it, is enough. So is one with wider selectors than requested.
    const complete = child({ "remote-ts": ["10.24.2.0/23", "10.24.3.0/24"] });
    assert.equal(statusOf(tunnel, [association(child(cut), complete)], history, now).state, "up");
  }
});

test("a rejected pair of blocks is caused by the peer if it is narrower than ours", () => {
  const reason = { fault: "engine_unavailable", detail: "The host could not install the tunnel." } as const;
  const faultOf = (local: string, peer: string) =>
    reasonOf(tunnel, { remote: "", identity: "", reason, pair: { local, peer } }).fault;
  assert.equal(faultOf("10.24.1.2/32", "10.24.2.0/24"), "selectors_refused");
  assert.equal(faultOf("10.24.1.0/24", "10.24.2.0/25"), "selectors_refused");
  assert.equal(faultOf("10.24.1.0/24", "10.24.3.0/24"), "engine_unavailable");
});

test("IKEv1 is up when every pair is", () => {
  const v1: IpsecTunnel = { ...tunnel, ikeVersion: 1 };
  const one = child({ name: "c-7-0-0", "remote-ts": ["10.24.2.0/24"] });
  const two = child({ name: "c-7-0-1", "remote-ts": ["10.24.3.0/24"] });
  assert.deepEqual(childrenMissing(v1, [association(one)]), ["c-7-0-1"]);
  assert.equal(statusOf(v1, [association(one)], createTunnelHistory(), now).state, "connecting");
  const both = statusOf(v1, [association(one, two)], createTunnelHistory(), now);
  assert.deepEqual([both.state, both.bytesIn], ["up", 200]);
  assert.deepEqual(both.peerSubnets, ["10.24.2.0/24", "10.24.3.0/24"]);
  assert.deepEqual(both.localSubnets, ["10.24.1.0/24"]);
});
