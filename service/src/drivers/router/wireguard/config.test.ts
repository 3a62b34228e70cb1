import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDump, renderConfig } from "./config.ts";
import { chooseHolder } from "./device.ts";

const key = (byte: number): string => Buffer.alloc(32, byte).toString("base64");

test("devices are in the kernel if possible, else in a program, else there are none", () => {
  assert.equal(chooseHolder({ kernel: true, wg: true, wireguardGo: true }), "kernel");
  assert.equal(chooseHolder({ kernel: true, wg: true, wireguardGo: false }), "kernel");
  assert.equal(chooseHolder({ kernel: true, wg: false, wireguardGo: true }), "userspace");
  assert.equal(chooseHolder({ kernel: false, wg: true, wireguardGo: true }), "userspace");
  assert.equal(chooseHolder({ kernel: false, wg: true, wireguardGo: false }), null);
});

test("a configuration for wg", () => {
  const peer = { publicKey: key(2), presharedKey: null, endpoint: null, keepAlive: 0, allowed: ["10.0.0.0/24"] };
  const other = { ...peer, publicKey: key(3), presharedKey: key(4), endpoint: "192.0.2.2:51820", keepAlive: 25 };
  assert.equal(
    renderConfig({
      privateKey: key(1),
      listenPort: 51_821,
      peers: [peer, { ...other, allowed: ["10.1.0.0/24", "10.2.0.1/32"] }],
    }),
    `[Interface]
PrivateKey = ${key(1)}
ListenPort = 51821

[Peer]
PublicKey = ${key(2)}
AllowedIPs = 10.0.0.0/24
PersistentKeepalive = off

[Peer]
PublicKey = ${key(3)}
PresharedKey = ${key(4)}
Endpoint = 192.0.2.2:51820
AllowedIPs = 10.1.0.0/24, 10.2.0.1/32
PersistentKeepalive = 25
`,
  );
});

test("output of wg for a device", () => {
  const device = `${key(1)}\t${key(9)}\t51821\toff\n`;
  const silent = `${key(2)}\t(none)\t(none)\t10.0.0.0/24\t0\t0\t0\toff\n`;
  const live = `${key(3)}\t${key(4)}\t192.0.2.2:51820\t10.1.0.0/24,10.2.0.1/32\t1795388000\t148\t92\t25\n`;
  assert.deepEqual(parseDump(device + silent + live), {
    privateKey: key(1),
    listenPort: 51_821,
    peers: [
      {
        publicKey: key(2),
        presharedKey: null,
        endpoint: null,
        allowed: ["10.0.0.0/24"],
        lastHandshake: null,
        received: 0,
        sent: 0,
        keepAlive: 0,
      },
      {
        publicKey: key(3),
        presharedKey: key(4),
        endpoint: "192.0.2.2:51820",
        allowed: ["10.1.0.0/24", "10.2.0.1/32"],
        lastHandshake: 1_795_388_000_000,
        received: 148,
        sent: 92,
        keepAlive: 25,
      },
    ],
  });
  assert.deepEqual(parseDump("(none)\t(none)\t0\toff\n"), { privateKey: "", listenPort: 0, peers: [] });
});
