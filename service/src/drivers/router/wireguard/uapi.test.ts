import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createPrivate, publicKeyOf } from "../model/wireguardkey.ts";
import { hexOf, parseDevice, renderDevice, requestDevice, type WireguardPeer, watchDevice } from "./uapi.ts";

const keyOf = (byte: number): string => Buffer.alloc(32, byte).toString("base64");
const hex = (byte: number): string => Buffer.alloc(32, byte).toString("hex");
const peer: WireguardPeer = {
  publicKey: keyOf(2),
  presharedKey: keyOf(3),
  endpoint: "192.0.2.2:51820",
  keepAlive: 25,
  allowed: ["10.0.0.0/24", "10.0.9.9/32"],
};
const empty = { privateKey: "", listenPort: 0, peers: [] };

test("a new device gets all settings", () => {
  assert.equal(
    renderDevice({ privateKey: keyOf(1), listenPort: 51_820, peers: [peer] }, empty),
    `set=1
private_key=${hex(1)}
listen_port=51820
public_key=${hex(2)}
preshared_key=${hex(3)}
endpoint=192.0.2.2:51820
persistent_keepalive_interval=25
replace_allowed_ips=true
allowed_ip=10.0.0.0/24
allowed_ip=10.0.9.9/32

`,
  );
});

test("only differences are sent, removals first", () => {
  const device = { privateKey: keyOf(1), listenPort: 51_820, peers: [peer] };
  assert.equal(renderDevice(device, device), "");
  assert.equal(renderDevice({ ...device, peers: [{ ...peer, allowed: peer.allowed.toReversed() }] }, device), "");
  assert.equal(
    renderDevice({ ...device, peers: [{ ...peer, publicKey: keyOf(5), presharedKey: null, endpoint: null }] }, device),
    `set=1
public_key=${hex(2)}
remove=true
public_key=${hex(5)}
persistent_keepalive_interval=25
replace_allowed_ips=true
allowed_ip=10.0.0.0/24
allowed_ip=10.0.9.9/32

`,
  );
  assert.equal(
    renderDevice({ ...device, peers: [{ ...peer, keepAlive: 0 }] }, device),
    `set=1\npublic_key=${hex(2)}\npersistent_keepalive_interval=0\n\n`,
  );
  // With another preshared key, or none, a peer begins anew: its session was made with the old one.
  const rekeyed = renderDevice({ ...device, peers: [{ ...peer, presharedKey: keyOf(4) }] }, device);
  assert.ok(
    rekeyed.startsWith(`set=1\npublic_key=${hex(2)}\nremove=true\npublic_key=${hex(2)}\npreshared_key=${hex(4)}\n`),
  );
  assert.match(rekeyed, /endpoint=192.*keepalive_interval=25.*allowed_ip=10\.0\.9\.9\/32\n\n$/s);
  const without = renderDevice({ ...device, peers: [{ ...peer, presharedKey: null }] }, device);
  assert.ok(without.includes("remove=true") && !without.includes("preshared_key"));
  const bare = { ...peer, allowed: [], presharedKey: null, endpoint: null, keepAlive: 0 };
  assert.equal(
    renderDevice({ ...device, peers: [peer, { ...bare, publicKey: keyOf(6) }] }, device).includes(hex(6)),
    true,
  );
});

test("a response is parsed to the settings that were sent", () => {
  const text = `private_key=${hex(1)}
listen_port=51820
fwmark=0
public_key=${hex(2)}
preshared_key=${hex(3)}
protocol_version=1
endpoint=192.0.2.2:51820
last_handshake_time_sec=1700000000
last_handshake_time_nsec=5
tx_bytes=11
rx_bytes=7
persistent_keepalive_interval=25
allowed_ip=10.0.0.0/24
allowed_ip=10.0.9.9/32
public_key=${hex(4)}
preshared_key=${"0".repeat(64)}
last_handshake_time_sec=0
tx_bytes=0
rx_bytes=0
persistent_keepalive_interval=0
errno=0

`;
  const device = parseDevice(text);
  assert.deepEqual(device, {
    privateKey: keyOf(1),
    listenPort: 51_820,
    peers: [
      { ...peer, lastHandshake: 1_700_000_000_000, received: 7, sent: 11 },
      {
        publicKey: keyOf(4),
        presharedKey: null,
        endpoint: null,
        keepAlive: 0,
        allowed: [],
        lastHandshake: null,
        received: 0,
        sent: 0,
      },
    ],
  });
  assert.deepEqual(parseDevice("errno=0\n\n"), empty);
});

test("an invalid key is rejected, and the error does not contain it", () => {
  for (const key of ["", "short", `${keyOf(1)}x`, keyOf(1).slice(0, -1), `${keyOf(1)}\nremove=true`])
    assert.throws(() => hexOf(key), { message: "a WireGuard key is not base64 of 32 bytes" });
  assert.throws(() => renderDevice({ ...empty, peers: [{ ...peer, allowed: ["10.0.0.0/24\nx=y"] }] }, empty), /is no/);
});

test("keys are X25519's (RFC 7748 section 6.1)", () => {
  const known = Buffer.from("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb", "hex");
  assert.equal(
    Buffer.from(publicKeyOf(known.toString("base64")), "base64").toString("hex"),
    "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
  );
  assert.throws(() => publicKeyOf("AAAA"), /32 bytes/);
  const key = Buffer.from(createPrivate(randomBytes), "base64");
  assert.deepEqual([key.length, (key[0] ?? 1) & 7, (key[31] ?? 0) & 192], [32, 0, 64]);
});

test("a device responds, returns an error, times out or is missing", async () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-uapi-"));
  const path = join(folder, "s");
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (request) => {
      if (request.toString() === "get=1\n\n")
        for (const part of ["listen_port=5\nerr", "no=0\n", "\n"]) socket.write(part);
      else if (request.toString().includes("zz")) socket.end("errno=-22\n\n");
      else if (request.toString() === "flood") for (let at = 0; at < 18; at++) socket.write("x".repeat(2 ** 20));
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  try {
    assert.equal(parseDevice(await requestDevice(path, "get=1\n\n")).listenPort, 5);
    const refused = await requestDevice(path, "set=1\nprivate_key=zz\n\n").catch(
      (error: unknown) => (error as Error).message,
    );
    assert.match(refused, /errno -22/);
    assert.ok(!refused.includes("zz"));
    await assert.rejects(requestDevice(path, "silence", 50), /no response within 50 ms/);
    await assert.rejects(requestDevice(path, "flood", 60_000), /the response has no end/);
    await assert.rejects(requestDevice(join(folder, "none"), "get=1\n\n"), /ENOENT/);
    await new Promise<void>((resolve) => {
      watchDevice(join(folder, "none"), resolve);
    });
  } finally {
    server.close();
    rmSync(folder, { recursive: true });
  }
});
