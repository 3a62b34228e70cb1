/**
 * The two implementations of the WireGuard device, the kernel and a program, pass the same tests: their configuration and status must be
 * the same. If the kernel has no WireGuard, its interface, wg(8), is tested with a device of the program.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { exec } from "../../service/src/drivers/exec.ts";
import type { TunnelStatus, WireguardTunnel } from "../../service/src/drivers/router/interface.ts";
import { createPrivate, publicKeyOf } from "../../service/src/drivers/router/model/wireguardkey.ts";
import { createKernel, createUserspace, type DeviceKind } from "../../service/src/drivers/router/wireguard/device.ts";
import { createWireguard, type Wireguard } from "../../service/src/drivers/router/wireguard/wireguard.ts";
import { whyNot } from "../support/hindrance.ts";
import { wireguardTunnel } from "../support/tunnelspec.ts";
import { until } from "../support/waituntil.ts";
import { createVpnFixture, type VpnFixture } from "./vpnfixture.ts";

const unable = whyNot("ip", "wg", "wireguard-go", "ping");

/** The reason why the kernel cannot have a device here; false: it can. */
async function whyNotKernel(): Promise<string | false> {
  if (unable !== false) return unable;
  const space = `vpk${process.pid}`;
  await exec.run(["ip", "netns", "add", space]);
  try {
    await exec.run(["ip", "-n", space, "link", "add", "w0", "type", "wireguard"]);
    return false;
  } catch (error) {
    return `this kernel has no WireGuard: ${(error as Error).message}`;
  } finally {
    await exec.run(["ip", "netns", "del", space]);
  }
}

const kernelIsUnable = await whyNotKernel();
if (kernelIsUnable) console.log(`WireGuard in the kernel: not tried, ${kernelIsUnable}`);
const suites: readonly (readonly [DeviceKind, string | false])[] = [
  ["userspace", unable],
  ["kernel", kernelIsUnable],
];

for (const [holder, skip] of suites)
  describe(`WireGuard, ${holder}`, { skip, concurrency: false }, () => {
    const [hereKey, farKey] = [createPrivate(randomBytes), createPrivate(randomBytes)];
    const id = `${holder.slice(0, 1)}${process.pid.toString(36)}`;
    const [device, farDevice] = [`bkh${id}`, `bkf${id}`];
    const tunnel = wireguardTunnel({ peerPublicKey: publicKeyOf(farKey), endpoint: "192.0.2.2:51821", keepAlive: 1 });
    let fixture: VpnFixture;
    let wireguard: Wireguard;
    const edge = () => ({ ...fixture.here.edge, device });
    const apply = (...tunnels: readonly WireguardTunnel[]) =>
      wireguard.apply(edge(), { privateKey: hereKey, listenPort: 51_820 }, tunnels);
    const isUp = () =>
      until("tunnel up", async () => {
        const status: TunnelStatus | undefined = (await wireguard.observe()).get(fixture.here.namespace)?.[0];
        return status?.state === "up" && status;
      });

    before(async () => {
      fixture = await createVpnFixture();
      wireguard = createWireguard({
        exec,
        runFolder: fixture.folder,
        holder,
        now: Date.now,
        lookup: async (host) => host,
        log: () => {},
      });
    });
    after(async () => {
      wireguard.close();
      await wireguard.remove(edge());
      await createUserspace(exec, fixture.folder).stop({ namespace: fixture.far.namespace, device: farDevice });
      await fixture.end();
    });

    test("a peer that never initiates is contacted as soon as it exists", async () => {
      await apply(tunnel);
      const far = createUserspace(exec, fixture.folder);
      const place = { namespace: fixture.far.namespace, device: farDevice };
      await far.start(place);
      // It does not know the edge's address.
      const here = { publicKey: publicKeyOf(hereKey), presharedKey: null, endpoint: null, keepAlive: 0 };
      const desired = { privateKey: farKey, listenPort: 51_821, peers: [{ ...here, allowed: ["10.24.1.0/24"] }] };
      await far.set(place, desired, { privateKey: "", listenPort: 0, peers: [] });
      await exec.run(["ip", "-n", fixture.far.namespace, "link", "set", farDevice, "up"]);
      await exec.run(["ip", "-n", fixture.far.namespace, "route", "add", "10.24.1.0/24", "dev", farDevice]);
      await isUp();
      assert.ok(await fixture.reaches("10.24.2.2"));
    });

    test("a change of one tunnel leaves the other's session, and removal leaves nothing", async () => {
      const { lastSeen } = await isUp();
      const publicKey = publicKeyOf(createPrivate(randomBytes));
      await apply(tunnel, {
        ...tunnel,
        id: 4,
        peerPublicKey: publicKey,
        peerSubnets: ["10.77.0.0/24"],
        endpoint: null,
      });
      await apply(tunnel);
      assert.equal((await isUp()).lastSeen, lastSeen);
      assert.ok(await fixture.reaches("10.24.2.2"));
      await wireguard.remove(edge());
      assert.ok(!(await fixture.inSite(fixture.here, "ip", "-o", "link")).includes(device));
    });
  });

test("wg configures a device in the same way as its socket does", { skip: unable }, async () => {
  const fixture = await createVpnFixture();
  const place = { namespace: fixture.here.namespace, device: `bkw${process.pid.toString(36)}` };
  const [program, kernel] = [createUserspace(exec, fixture.folder), createKernel(exec, fixture.folder)];
  const key = () => createPrivate(randomBytes);
  const peer = (change: object) => ({
    publicKey: publicKeyOf(key()),
    presharedKey: null,
    endpoint: null,
    keepAlive: 0,
    allowed: ["10.9.0.0/24"],
    ...change,
  });
  const one = peer({ presharedKey: randomBytes(32).toString("base64"), endpoint: "192.0.2.2:51821", keepAlive: 25 });
  const two = peer({ allowed: ["10.9.1.0/24", "10.9.2.7/32"] });
  try {
    await program.start(place);
    const end = { privateKey: key(), listenPort: 51_830 };
    for (const peers of [[one, two], [two], [{ ...one, presharedKey: null, keepAlive: 0 }, two], []]) {
      await kernel.set(place, { ...end, peers }, await kernel.read(place));
      const byKey = (a: { publicKey: string }, b: { publicKey: string }) => (a.publicKey < b.publicKey ? -1 : 1);
      const [seen, expected] = [await kernel.read(place), await program.read(place)];
      assert.deepEqual(seen.peers.toSorted(byKey), expected.peers.toSorted(byKey));
      assert.deepEqual([seen.privateKey, seen.listenPort], [end.privateKey, end.listenPort]);
      assert.deepEqual(
        expected.peers.map(({ publicKey }) => publicKey).sort(),
        peers.map(({ publicKey }) => publicKey).sort(),
      );
      for (const desired of peers)
        assert.partialDeepStrictEqual(
          expected.peers.find((p) => p.publicKey === desired.publicKey),
          desired,
        );
    }
  } finally {
    await kernel.stop(place);
    await fixture.end();
  }
});
