import assert from "node:assert/strict";
import { test } from "node:test";
import { ipsecTunnel, officeTunnel } from "../../../../../test/support/tunnelspec.ts";
import { espProposal, ikeProposal, type Suite } from "../model/proposals.ts";
import { soon } from "./ipsec.ts";
import { childrenOf, identityOf, renderConnection, renderDaemon, renderSecret, tunnelOf } from "./strongswan.ts";

const tunnel = ipsecTunnel({
  ...officeTunnel,
  id: 3,
  peerSubnets: ["10.0.0.0/24", "10.0.2.0/24"],
  peer: "office.example",
  peerIdentity: "admin@office.example",
});

test("proposals follow the table", () => {
  const suite: Suite = { encryption: "aes128", digest: "sha1", dhGroup: 2, perfectForwardSecrecy: true };
  const rows: readonly (readonly [Partial<Suite>, string, string])[] = [
    [{}, "aes128-sha1-modp1024", "aes128-sha1-modp1024"],
    [{ encryption: "aes256", digest: "sha384", dhGroup: 5 }, "aes256-sha384-modp1536", "aes256-sha384-modp1536"],
    [{ encryption: "3des", dhGroup: 15, perfectForwardSecrecy: false }, "3des-sha1-modp3072", "3des-sha1"],
    [{ encryption: "aes128gcm", digest: "sha512", dhGroup: 20 }, "aes128gcm16-prfsha512-ecp384", "aes128gcm16-ecp384"],
    [
      { encryption: "aes128gcm", digest: "sha256", dhGroup: 31, perfectForwardSecrecy: false },
      "aes128gcm16-prfsha256-curve25519",
      "aes128gcm16",
    ],
    [{ dhGroup: 16 }, "aes128-sha1-modp4096", "aes128-sha1-modp4096"],
    [{ dhGroup: 14 }, "aes128-sha1-modp2048", "aes128-sha1-modp2048"],
    [{ dhGroup: 19 }, "aes128-sha1-ecp256", "aes128-sha1-ecp256"],
  ];
  for (const [change, ike, esp] of rows)
    assert.deepEqual([ikeProposal({ ...suite, ...change }), espProposal({ ...suite, ...change })], [ike, esp]);
  assert.throws(() => ikeProposal({ ...suite, dhGroup: 1 }), RangeError);
});

test("a connection contains all settings of a tunnel except its key", () => {
  const message = renderConnection(tunnel, "10.64.255.2", "203.0.113.50");
  assert.deepEqual(message, {
    "t-3": {
      version: "2",
      local_addrs: ["10.64.255.2"],
      remote_addrs: ["203.0.113.50"],
      proposals: ["aes256-sha256-modp2048"],
      rekey_time: "27000s",
      rand_time: "900s",
      over_time: "1800s",
      dpd_delay: "10s",
      encap: "yes",
      mobike: "no",
      keyingtries: "0",
      unique: "replace",
      "local-1": { auth: "psk", id: "10.64.255.2" },
      "remote-1": { auth: "psk", id: "email:admin@office.example" },
      children: {
        "c-3": {
          local_ts: ["10.64.0.8/29"],
          remote_ts: ["10.0.0.0/24", "10.0.2.0/24"],
          esp_proposals: ["aes256-sha256-modp2048"],
          rekey_time: "3300s",
          rand_time: "180s",
          life_time: "3600s",
          start_action: "none",
          dpd_action: "restart",
          close_action: "none",
        },
      },
    },
  });
  assert.ok(!JSON.stringify(message).includes(tunnel.sharedKey));
  assert.deepEqual(renderSecret(tunnel, "psk-3"), {
    id: "psk-3",
    type: "IKE",
    data: tunnel.sharedKey,
    owners: ["10.64.255.2", "email:admin@office.example"],
  });
});

test("a peer that initiates may have any address, and is not contacted", () => {
  const text = JSON.stringify(renderConnection({ ...tunnel, peer: null }, "10.64.255.2", null));
  assert.match(text, /"remote_addrs":\["%any"\]/);
  assert.match(text, /"dpd_action":"clear"/);
});

test("IKEv1 has a child for each pair of networks", () => {
  assert.deepEqual(childrenOf({ ...tunnel, ikeVersion: 1, localSubnets: ["10.64.0.8/30", "10.64.0.12/30"] }), [
    { name: "c-3-0-0", local: ["10.64.0.8/30"], peer: ["10.0.0.0/24"] },
    { name: "c-3-0-1", local: ["10.64.0.8/30"], peer: ["10.0.2.0/24"] },
    { name: "c-3-1-0", local: ["10.64.0.12/30"], peer: ["10.0.0.0/24"] },
    { name: "c-3-1-1", local: ["10.64.0.12/30"], peer: ["10.0.2.0/24"] },
  ]);
});

test("identities have the type of their form", () => {
  assert.equal(identityOf("192.0.2.1"), "192.0.2.1");
  assert.equal(identityOf("far.example"), "fqdn:far.example");
  assert.equal(identityOf("a@far.example"), "email:a@far.example");
  assert.equal(identityOf("C=CH, CN=x"), "fqdn:C=CH, CN=x");
  assert.equal(identityOf("%any"), "fqdn:%any");
});

test("only our own connections have a tunnel", () => {
  assert.deepEqual(["t-3", "t-12", "(unnamed)", "t-", "t-3x", "x"].map(tunnelOf), [3, 12, null, null, null, null]);
});

test("the daemon's configuration has libipsec only without the kernel's ESP", () => {
  const text = renderDaemon({ socket: "/run/brume-abc/n/ipsec/charon.vici", kernelEsp: false });
  assert.match(text, /load = .* kernel-libipsec kernel-netlink /);
  assert.match(text, /socket = "unix:\/\/\/run\/brume-abc\/n\/ipsec\/charon\.vici"/);
  assert.match(text, /threads = 16/);
  assert.doesNotMatch(renderDaemon({ socket: "/s", kernelEsp: true }), /load = .*libipsec/);
  assert.throws(() => renderDaemon({ socket: '/run/a"b', kernelEsp: true }), /quotes/);
});

test("a peer that does not respond is contacted every two seconds, for twelve seconds", () => {
  const text = renderDaemon({ socket: "/run/x", kernelEsp: false });
  const valueOf = (name: string): number =>
    Number(new RegExp(`^ *retransmit_${name} = ([\\d.]+)$`, "m").exec(text)?.[1]);
  const pauses = Array.from(
    { length: valueOf("tries") + 1 },
    (_, index) => valueOf("timeout") * valueOf("base") ** index,
  );
  assert.ok(Math.max(...pauses, soon / 1000) <= 2, pauses.join());
  assert.equal(
    pauses.reduce((sum, pause) => sum + pause),
    12,
  );
});
