/**
 * WireGuard with an independent peer: the driver's device, a wireguard-go that is configured from the API's peer configuration, and real
 * packets between the servers behind both.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { type Child, exec } from "../../service/src/drivers/exec.ts";
import type { TunnelStatus, WireguardTunnel } from "../../service/src/drivers/router/interface.ts";
import { findDaemons } from "../../service/src/drivers/router/linux/daemon.ts";
import { renderPeerConfig } from "../../service/src/drivers/router/model/peerconfig.ts";
import { createPrivate, publicKeyOf } from "../../service/src/drivers/router/model/wireguardkey.ts";
import { socketOf } from "../../service/src/drivers/router/wireguard/device.ts";
import { hexOf, requestDevice } from "../../service/src/drivers/router/wireguard/uapi.ts";
import { createWireguard, type Wireguard } from "../../service/src/drivers/router/wireguard/wireguard.ts";
import { whyNot } from "../support/hindrance.ts";
import { wireguardTunnel } from "../support/tunnelspec.ts";
import { until } from "../support/waituntil.ts";
import { lostPings } from "./pings.ts";
import { createVpnFixture, type VpnFixture } from "./vpnfixture.ts";

const skip = whyNot("ip", "wireguard-go", "ping");

/** Converts a wg-quick(8) configuration into commands of the socket. */
function requestOf(text: string): string {
  const valueOf = (name: string): string => new RegExp(`^${name} = (.*)$`, "m").exec(text)?.[1] ?? "";
  return [
    "set=1",
    `private_key=${hexOf(valueOf("PrivateKey"))}`,
    `listen_port=${valueOf("ListenPort") || "0"}`,
    "replace_peers=true",
    `public_key=${hexOf(valueOf("PublicKey"))}`,
    ...(valueOf("PresharedKey") === "" ? [] : [`preshared_key=${hexOf(valueOf("PresharedKey"))}`]),
    `endpoint=${valueOf("Endpoint")}`,
    `persistent_keepalive_interval=${valueOf("PersistentKeepalive") || "0"}`,
    ...valueOf("AllowedIPs")
      .split(", ")
      .map((block) => `allowed_ip=${block}`),
    "\n",
  ].join("\n");
}

describe("WireGuard against wireguard-go", { skip, concurrency: false }, () => {
  const end = { privateKey: createPrivate(randomBytes), listenPort: 51_820 };
  const farKey = createPrivate(randomBytes);
  const secret = randomBytes(32).toString("base64");
  const id = process.pid.toString(36);
  const [device, farDevice] = [`bvw${id}`, `bvf${id}`];
  const tunnel = wireguardTunnel({
    peerPublicKey: publicKeyOf(farKey),
    presharedKey: secret,
    endpoint: "192.0.2.2:51821",
    keepAlive: 1,
  });
  const other: WireguardTunnel = {
    ...tunnel,
    id: 4,
    peerSubnets: ["10.77.0.0/24"],
    peerPublicKey: publicKeyOf(createPrivate(randomBytes)),
    presharedKey: null,
    endpoint: null,
  };

  let fixture: VpnFixture;
  let wireguard: Wireguard;
  /** Milliseconds by which the driver's monotonic clock is ahead, to simulate minutes. */
  let ahead = 0;
  /** Milliseconds by which the host's clock was set forward. */
  let set = 0;
  const create = (): Wireguard =>
    createWireguard({
      exec,
      runFolder: fixture.folder,
      now: () => Date.now() + ahead + set,
      steady: () => performance.now() + ahead,
      lookup: async (host) => {
        assert.equal(host, "office.example");
        return "192.0.2.2";
      },
      log: () => {},
    });
  const edge = () => ({ ...fixture.here.edge, device });
  const apply = (...tunnels: readonly WireguardTunnel[]): Promise<void> => wireguard.apply(edge(), end, tunnels);
  const statusOf = async (id = 3): Promise<TunnelStatus> => {
    const found = (await wireguard.observe()).get(fixture.here.namespace)?.find((status) => status.id === id);
    assert.ok(found, `tunnel ${id} has no status`);
    return found;
  };
  const isUp = (): Promise<TunnelStatus> =>
    until("tunnel up", async () => {
      const status = await statusOf();
      return status.state === "up" && status;
    });
  const startFar = async (device: string): Promise<Child> => {
    const { namespace } = fixture.far;
    const child = await exec.startDetached(["ip", "netns", "exec", namespace, "wireguard-go", "-f", device], {
      environment: { WG_PROCESS_FOREGROUND: "1" },
      output: join(fixture.folder, `${device}.out`),
    });
    await until("the far device", () => requestDevice(socketOf(device), "get=1\n\n").catch(() => null));
    await exec.run(["ip", "-n", namespace, "link", "set", device, "up"]);
    return child;
  };
  /** Configures the peer from the peer configuration of `desired`. */
  const configureFar = async (desired: WireguardTunnel, device = farDevice, key = farKey): Promise<void> => {
    const near = {
      address: "192.0.2.1",
      wireguard: { publicKey: publicKeyOf(end.privateKey), listenPort: end.listenPort },
    };
    const text = renderPeerConfig(desired, near);
    assert.ok(text !== null && !text.includes(end.privateKey) && !text.includes(secret));
    const filled = text.replace("<private key>", key).replace("<SharedKey>", desired.presharedKey ?? "");
    await requestDevice(socketOf(device), requestOf(filled));
  };

  before(async () => {
    fixture = await createVpnFixture();
    wireguard = create();
    await startFar(farDevice);
    await exec.run(["ip", "-n", fixture.far.namespace, "route", "add", "10.24.1.0/24", "dev", farDevice]);
  });
  beforeEach(async () => {
    ahead = 0;
    set = 0;
    await wireguard.remove(edge());
  });
  after(async () => {
    wireguard.close();
    await wireguard.remove(edge());
    await fixture.end();
    rmSync(socketOf(farDevice), { force: true });
  });

  test("what its process prints is trimmed", async () => {
    await apply(tunnel);
    const output = join(fixture.folder, fixture.here.namespace, "wireguard/wireguard.out");
    appendFileSync(output, "x".repeat(9 * 2 ** 20));
    await statusOf();
    assert.ok(statSync(output).size < 2 * 2 ** 20);
  });

  test("servers reach each other, and the status shows the tunnel", async () => {
    await configureFar(tunnel);
    await apply(tunnel);
    const { proposal } = await isUp();
    assert.ok(await fixture.reaches("10.24.2.2"));
    const status = await statusOf();
    assert.deepEqual([status.localSubnets, status.peerSubnets], [["10.24.1.0/24"], ["10.24.2.0/24"]]);
    assert.deepEqual([status.peerAddress, status.reason, status.establishedAt], ["192.0.2.2", null, null]);
    assert.ok(status.bytesIn > 0 && status.bytesOut > 0 && status.lastSeen !== null && proposal !== "");
  });

  test("wireguard-go sees no files of the host, and can only manage its network", async () => {
    await configureFar(tunnel);
    await apply(tunnel);
    const [child = assert.fail()] = await findDaemons(exec, fixture.here.namespace, "wireguard-go");
    const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
    // CAP_NET_BIND_SERVICE (10) and CAP_NET_ADMIN (12).
    for (const set of ["CapPrm", "CapEff", "CapBnd"])
      assert.match(status, new RegExp(`^${set}:\\t0000000000001400$`, "m"), set);
    assert.match(status, /^NoNewPrivs:\t1$/m);
    const root = `/proc/${child.pid}/root`;
    for (const path of ["etc", "root", "home", "run/netns", "proc/1", "usr/bin/sh"])
      assert.ok(!existsSync(join(root, path)), path);
    assert.deepEqual(readdirSync(join(root, "dev")).sort(), ["net", "null", "random", "urandom"]);
    assert.deepEqual(readdirSync(join(root, "var/run")), ["wireguard"]);
    assert.throws(() => writeFileSync(join(root, "file"), ""), /EROFS/);
  });

  test("fifty tunnels come up at once", async () => {
    // Ports below the ephemeral range: a device gets one of those when it starts.
    const many = Array.from({ length: 50 }, (_, index) => {
      const [key, device] = [createPrivate(randomBytes), `${farDevice}${index}`];
      const [endpoint, block] = [`192.0.2.2:${22_000 + index}`, `10.77.${index}.0/24`];
      const spec = { ...tunnel, id: 100 + index, peerPublicKey: publicKeyOf(key), endpoint, peerSubnets: [block] };
      return { key, device, spec };
    });
    const children = await Promise.all(many.map(({ device }) => startFar(device)));
    try {
      for (const { spec, device, key } of many) await configureFar(spec, device, key);
      await apply(...many.map(({ spec }) => spec));
      await until("all up", async () => {
        const status = (await wireguard.observe()).get(fixture.here.namespace);
        return status?.length === many.length && status.every(({ state }) => state === "up");
      });
    } finally {
      for (const child of children) exec.signal(child, "SIGTERM");
    }
  });

  test("a peer without an address initiates, and its address is learned", async () => {
    const called = { ...tunnel, endpoint: null };
    await apply(called);
    assert.deepEqual(await statusOf().then(({ state, reason }) => [state, reason]), ["connecting", null]);
    await configureFar(called);
    assert.equal((await isUp()).peerAddress, "192.0.2.2");
    assert.ok(await fixture.reaches("10.24.2.2"));
    await apply(called);
    assert.ok(await fixture.reaches("10.24.2.2"), "what was learned stays");
  });

  test("a host name is resolved", async () => {
    await configureFar(tunnel);
    await apply({ ...tunnel, endpoint: "office.example:51821" });
    await isUp();
  });

  test("changes of one tunnel leave the others' sessions alone", async () => {
    await configureFar(tunnel);
    await apply(tunnel);
    const before = await isUp();
    const [child] = await findDaemons(exec, fixture.here.namespace, "wireguard-go");
    const lost = lostPings(fixture.here.server, "10.24.2.2", 40);
    await apply(tunnel, other);
    await apply(tunnel, { ...other, peerSubnets: ["10.78.0.0/24"], presharedKey: secret });
    await apply({ ...tunnel, mtu: 1300 }, { ...other, enabled: false });
    assert.equal((await statusOf(4)).state, "disabled");
    await apply(tunnel);
    assert.deepEqual(await lost, []);
    assert.equal((await isUp()).lastSeen, before.lastSeen);
    assert.deepEqual(await findDaemons(exec, fixture.here.namespace, "wireguard-go"), [child]);
  });

  test("a restarted service finds its device and changes only what differs", async () => {
    await configureFar(tunnel);
    await apply(tunnel, other);
    const before = await isUp();
    const [child] = await findDaemons(exec, fixture.here.namespace, "wireguard-go");
    wireguard.close();
    wireguard = create();
    await apply(tunnel);
    assert.deepEqual(await findDaemons(exec, fixture.here.namespace, "wireguard-go"), [child]);
    assert.equal((await isUp()).lastSeen, before.lastSeen);
    assert.ok(!(await requestDevice(socketOf(device), "get=1\n\n")).includes(hexOf(other.peerPublicKey)));
  });

  test("a killed wireguard-go is back by itself with its tunnels", async () => {
    await configureFar(tunnel);
    await apply(tunnel);
    await isUp();
    const [child] = await findDaemons(exec, fixture.here.namespace, "wireguard-go");
    assert.ok(child);
    exec.signal(child, "SIGKILL");
    await until("another process", async () => {
      const [found] = await findDaemons(exec, fixture.here.namespace, "wireguard-go");
      return found !== undefined && found.pid !== child.pid;
    });
    await isUp();
    assert.ok(await until("traffic", () => fixture.ping("10.24.2.2")));
  });

  test("a wrong preshared key gets no reply, and the status explains it after a while", async () => {
    await configureFar({ ...tunnel, presharedKey: randomBytes(32).toString("base64") });
    await apply(tunnel);
    assert.deepEqual(await statusOf().then(({ state, reason }) => [state, reason]), ["connecting", null]);
    ahead = 20_000;
    const { state, reason } = await statusOf();
    assert.deepEqual([state, reason?.fault], ["connecting", "peer_unreachable"]);
    assert.match(reason?.detail ?? "", /192\.0\.2\.2:51821/);
  });

  test("another preshared key ends the sessions of the previous one", async () => {
    await configureFar(tunnel);
    await apply(tunnel);
    await isUp();
    assert.ok(await until("traffic", () => fixture.ping("10.24.2.2")));
    const changed = { ...tunnel, presharedKey: randomBytes(32).toString("base64") };
    await apply(changed);
    assert.equal((await statusOf()).state, "connecting");
    assert.equal(await fixture.ping("10.24.2.2"), false);
    await configureFar(changed);
    await isUp();
    assert.ok(await until("traffic", () => fixture.ping("10.24.2.2")));
  });

  for (const hours of [-24, 24])
    test(`a clock that is set ${hours < 0 ? "back" : "forward"} does not change the state of a tunnel`, async () => {
      await configureFar(tunnel);
      await apply(tunnel);
      await isUp();
      set = hours * 3_600_000;
      const { state, lastSeen } = await statusOf();
      assert.equal(state, "up");
      assert.ok(lastSeen !== null && Math.abs(Date.now() + set - lastSeen) < 180_000, "by the clock as it is now");
      ahead = 181_000;
      assert.equal((await statusOf()).state, "down");
    });

  test("a status belongs to the current keys", async () => {
    await configureFar(tunnel);
    await apply(tunnel);
    await isUp();
    await apply({ ...tunnel, peerPublicKey: other.peerPublicKey });
    assert.deepEqual(await statusOf().then(({ state, lastSeen }) => [state, lastSeen]), ["connecting", null]);
    await apply(tunnel);
    await isUp();
    // This end's own key.
    await wireguard.apply(edge(), { ...end, privateKey: createPrivate(randomBytes) }, [tunnel]);
    assert.deepEqual(await statusOf().then(({ state, lastSeen }) => [state, lastSeen]), ["down", null]);
    await apply(tunnel);
    await isUp();
  });

  test("a peer without packets for three minutes is down", async () => {
    await configureFar(tunnel);
    await apply(tunnel);
    await isUp();
    ahead = 181_000;
    const { state, reason } = await statusOf();
    assert.deepEqual([state, reason?.fault], ["down", "peer_unreachable"]);
    ahead = 0;
    assert.equal((await statusOf()).state, "up");
  });

  test("a sender of too large packets is notified of the tunnel's MTU", async () => {
    await configureFar(tunnel);
    await apply({ ...tunnel, mtu: 1300 });
    await isUp();
    assert.equal(await fixture.ping("10.24.2.2", "-M", "do", "-s", "1280"), false);
    assert.ok(await fixture.reaches("10.24.2.2", "-M", "do", "-s", "1272"));
  });

  test("a device that cannot be created is reported", async () => {
    const taken = wireguard.apply({ ...edge(), device: "a-name-that-is-too-long" }, end, [tunnel]);
    await assert.rejects(taken, /wireguard-go in .* did not start/);
    assert.deepEqual((await statusOf()).reason?.fault, "engine_unavailable");
  });

  test("nothing is left behind", async () => {
    const observe = async () => [
      await fixture.inSite(fixture.here, "ip", "rule"),
      await fixture.inSite(fixture.here, "ip", "-o", "link"),
    ];
    const before = await observe();
    await apply(tunnel, other);
    await wireguard.remove(edge());
    assert.deepEqual(await observe(), before);
    assert.ok(!existsSync(join(fixture.folder, fixture.here.namespace)) && !existsSync(socketOf(device)));
    assert.deepEqual(await findDaemons(exec, fixture.here.namespace, "wireguard-go"), []);
  });
});
