/** Golden texts of the dialects that no test can run against, and rules that hold for all of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ipsecTunnel, officeTunnel, wireguardTunnel } from "../../../../../test/support/tunnelspec.ts";
import type { IpsecTunnel } from "../interface.ts";
import { ipsecDialects, renderPeerConfig, wireguardDialects } from "./peerconfig.ts";
import { fillSecrets } from "./peertext.ts";

const tunnel = ipsecTunnel({ ...officeTunnel, id: 3, peerSubnets: ["10.0.0.0/24", "10.0.2.0/23"] });
const wireguard = wireguardTunnel({
  id: 4,
  mtu: 1400,
  localSubnets: officeTunnel.localSubnets,
  peerSubnets: ["10.9.0.2/32", "10.9.1.0/24"],
  presharedKey: Buffer.alloc(32, 2).toString("base64"),
  endpoint: "203.0.113.50:4500",
});
const near = {
  address: "10.64.255.2",
  wireguard: { publicKey: "EdgePublicKeyEdgePublicKeyEdgePublicKeyEdg=", listenPort: 51_820 },
};
const given = (dialect: string, change: Partial<IpsecTunnel> = {}): string =>
  renderPeerConfig({ ...tunnel, ...change }, near, dialect) ?? "";

test("every format contains addresses, identities and networks, and no secret", () => {
  for (const dialect of Object.keys(ipsecDialects)) {
    const text = given(dialect);
    for (const part of ["10.64.255.2", "<SharedKey>", "brume-3"]) assert.ok(text.includes(part), `${dialect}: ${part}`);
    assert.ok(!text.includes(tunnel.sharedKey), dialect);
    assert.ok(text.endsWith("\n") && !text.includes("undefined") && !text.includes("null"), dialect);
  }
  for (const dialect of Object.keys(wireguardDialects)) {
    const text = renderPeerConfig(wireguard, near, dialect) ?? "";
    for (const part of [
      "10.64.255.2",
      "51820",
      "<private key>",
      "<SharedKey>",
      near.wireguard.publicKey,
      "10.64.0.8/29",
    ])
      assert.ok(text.includes(part), `${dialect}: ${part}`);
    assert.ok(!text.includes(wireguard.presharedKey ?? "") && !text.includes("undefined"), dialect);
  }
});

test("an unknown format is null, and the default is the first", () => {
  assert.equal(renderPeerConfig(tunnel, near, "abacus"), null);
  assert.equal(renderPeerConfig(tunnel, near, "toString"), null);
  assert.equal(renderPeerConfig(wireguard, near, "cisco"), null);
  assert.equal(renderPeerConfig(tunnel, near), given("strongswan"));
  assert.match(renderPeerConfig(wireguard, near) ?? "", /^\[Interface\]/);
});

test("an unsupported setting is stated, not replaced", () => {
  assert.match(given("mikrotik", { encryption: "aes128gcm" }), /^# RouterOS does not offer AES-GCM/);
  assert.match(given("mikrotik", { dhGroup: 31 }), /^# RouterOS does not offer Diffie-Hellman group 31/);
  assert.match(given("mikrotik", { digest: "sha384" }), /^# RouterOS does not offer SHA-384/);
  assert.match(given("cisco", { encryption: "aes128gcm", ikeVersion: 1 }), /^! IOS XE does not offer AES-GCM/);
  assert.match(given("cisco", { dhGroup: 31 }), /^! IOS XE does not offer/);
});

test("MikroTik RouterOS", () => {
  assert.equal(
    given("mikrotik", { peerIdentity: "office.example" }),
    `/ip/ipsec/profile add name=brume-3 enc-algorithm=aes-256 hash-algorithm=sha256 dh-group=modp2048 lifetime=8h nat-traversal=yes dpd-interval=10s dpd-maximum-failures=3
/ip/ipsec/proposal add name=brume-3 enc-algorithms=aes-256-cbc auth-algorithms=sha256 pfs-group=modp2048 lifetime=1h
/ip/ipsec/peer add name=brume-3 address=10.64.255.2/32 profile=brume-3 exchange-mode=ike2 passive=yes send-initial-contact=yes
/ip/ipsec/identity add peer=brume-3 auth-method=pre-shared-key secret="<SharedKey>" my-id=fqdn:office.example remote-id=address:10.64.255.2
/ip/ipsec/policy add peer=brume-3 proposal=brume-3 tunnel=yes level=unique src-address=10.0.0.0/24 dst-address=10.64.0.8/29
/ip/ipsec/policy add peer=brume-3 proposal=brume-3 tunnel=yes level=unique src-address=10.0.2.0/23 dst-address=10.64.0.8/29
# Packets for the tunnel must not be translated:
/ip/firewall/nat add chain=srcnat action=accept src-address=10.0.0.0/24 dst-address=10.64.0.8/29 place-before=0
/ip/firewall/nat add chain=srcnat action=accept src-address=10.0.2.0/23 dst-address=10.64.0.8/29 place-before=0
`,
  );
});

test("Cisco IOS XE", () => {
  assert.equal(
    given("cisco", { encryption: "aes128gcm" }),
    `crypto ikev2 proposal brume-3
 encryption aes-gcm-128
 prf sha256
 group 14
crypto ikev2 policy brume-3
 proposal brume-3
crypto ikev2 keyring brume-3
 peer brume-3
  address 10.64.255.2
  pre-shared-key <SharedKey>
crypto ikev2 profile brume-3
 match identity remote address 10.64.255.2 255.255.255.255
 identity local address 203.0.113.50
 authentication remote pre-share
 authentication local pre-share
 keyring local brume-3
 lifetime 28800
 dpd 10 3 periodic
crypto ipsec transform-set brume-3 esp-gcm 128
 mode tunnel
ip access-list extended brume-3
 permit ip 10.0.0.0 0.0.0.255 10.64.0.8 0.0.0.7
 permit ip 10.0.2.0 0.0.1.255 10.64.0.8 0.0.0.7
crypto map brume 3 ipsec-isakmp
 set peer 10.64.255.2
 set transform-set brume-3
 set pfs group14
 set ikev2-profile brume-3
 set security-association lifetime seconds 3600
 match address brume-3
! On the interface towards the internet:
! crypto map brume
`,
  );
  assert.match(
    given("cisco", { ikeVersion: 1, digest: "sha1" }),
    /^crypto isakmp policy 3\n encryption aes 256\n hash sha\n[\s\S]*esp-aes 256 esp-sha-hmac\n/,
  );
});

test("Fortinet FortiOS", () => {
  const text = given("fortigate", { peer: null, peerIdentity: "admin@office.example", perfectForwardSecrecy: false });
  for (const line of [
    "        set ike-version 2",
    "        set remote-gw 10.64.255.2",
    '        set peerid "10.64.255.2"',
    "        set localid-type user-fqdn",
    "        set proposal aes256-sha256",
    "        set nattraversal forced",
    "        set pfs disable",
    "        set auto-negotiate enable",
    "        set src-subnet 10.0.2.0 255.255.254.0",
    "        set dst-subnet 10.64.0.8 255.255.255.248",
    '        set device "brume-3"',
  ])
    assert.ok(text.split("\n").includes(line), line);
});

test("a peer with a network has its first address, as the router there does", () => {
  const text = renderPeerConfig({ ...wireguard, peerSubnets: ["10.9.1.0/24", "10.9.2.0/24"] }, near) ?? "";
  assert.match(text, /^Address = 10\.9\.1\.1\/32$/m);
  assert.doesNotMatch(renderPeerConfig(wireguard, near, "wg") ?? "", /Address|MTU/);
});

test("secrets with any characters replace their placeholders", () => {
  const plain = { sharedKey: "Vw3kQ8zR1tYb6NcX", privateKey: null };
  const odd = { sharedKey: 'a"b\\c$&d0123456789', privateKey: null };
  const fill = (dialect: string, secrets: typeof plain) => fillSecrets(given(dialect), dialect, secrets);
  assert.match(fill("strongswan", plain), /secret = "Vw3kQ8zR1tYb6NcX"/);
  const coded = `0s${Buffer.from(odd.sharedKey).toString("base64")}`;
  assert.ok(fill("strongswan", odd).includes(`secret = ${coded}\n`));
  assert.ok(fill("libreswan", odd).includes(`PSK ${coded}\n`));
  assert.ok(fill("fortigate", odd).includes('set psksecret "a\\"b\\\\c$&d0123456789"\n'));
  assert.ok(fill("mikrotik", odd).includes('secret="a\\"b\\\\c\\$&d0123456789" '));
  assert.ok(fill("cisco", odd).includes(`pre-shared-key ${odd.sharedKey}\n`));
  const nested = { ...plain, sharedKey: "0123456789<SharedKey>" };
  assert.ok(fill("mikrotik", nested).includes(`secret="${nested.sharedKey}" `));
  assert.ok(fill("cisco", nested).includes(`pre-shared-key ${nested.sharedKey}\n`));
  // A key that resembles an encoded one is not decoded.
  assert.match(fill("strongswan", { ...plain, sharedKey: "0x12345678901234" }), /secret = 0s/);
  const [privateKey, presharedKey] = [Buffer.alloc(32, 5).toString("base64"), wireguard.presharedKey];
  const text = fillSecrets(renderPeerConfig(wireguard, near) ?? "", "wg-quick", {
    sharedKey: presharedKey,
    privateKey,
  });
  assert.ok(text.includes(`PrivateKey = ${privateKey}\n`) && text.includes(`PresharedKey = ${presharedKey}\n`));
  assert.ok(!text.includes("<"));
});

test("wg-quick configures the address of a peer that is one address", () => {
  assert.equal(
    renderPeerConfig({ ...wireguard, presharedKey: null, keepAlive: 0, endpoint: null }, near),
    `[Interface]
PrivateKey = <private key>
Address = 10.9.0.2/32
MTU = 1400

[Peer]
PublicKey = EdgePublicKeyEdgePublicKeyEdgePublicKeyEdg=
Endpoint = 10.64.255.2:51820
AllowedIPs = 10.64.0.8/29
`,
  );
});
