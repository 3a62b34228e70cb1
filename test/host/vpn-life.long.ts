/**
 * Tunnels survive changes of other tunnels, restarts and crashes of the service and of charon, and peers that disappear and return.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { exec } from "../../service/src/drivers/exec.ts";
import { findDaemons } from "../../service/src/drivers/router/linux/daemon.ts";
import { until } from "../support/waituntil.ts";
import { createIpsecFixture, farText, type IpsecFixture, second, skip, tunnel } from "./ipsecfixture.ts";
import { lostPings } from "./pings.ts";

describe("IPsec tunnels over time", { skip, concurrency: false }, () => {
  let at: IpsecFixture;
  before(async () => {
    at = await createIpsecFixture();
  });
  beforeEach(() => at.reset());
  after(() => at.end());

  test("a changed tunnel leaves the others up, packet for packet", async () => {
    await at.far.load(farText(tunnel, second));
    await at.apply(tunnel, second);
    const [before] = await Promise.all([at.isUp(7), at.isUp(8)]);
    const lost = lostPings(at.fixture.here.server, "10.24.2.2", 60);
    const changed = { ...second, digest: "sha512" as const };
    await at.far.load(farText(tunnel, changed));
    await at.apply(tunnel, changed);
    await at.isUp(8);
    await at.apply(tunnel);
    await at.apply({ ...tunnel, mtu: 1300 }, second);
    await at.apply(tunnel);
    assert.deepEqual(await lost, []);
    const now = await at.isUp(7);
    assert.equal(now.establishedAt, before.establishedAt);
    assert.ok(now.bytesOut >= 60 * 84);
    assert.equal(await at.fixture.ping("10.24.3.2"), false);
  });

  test("a tunnel that is not enabled does not exist on the host", async () => {
    await at.far.load(farText(tunnel));
    await at.apply(tunnel);
    await at.isUp();
    await at.apply({ ...tunnel, enabled: false });
    assert.deepEqual((await at.statusOf()).state, "disabled");
    assert.equal(await at.fixture.ping("10.24.2.2"), false);
    assert.deepEqual(await findDaemons(exec, at.fixture.here.namespace, "charon-systemd"), []);
    await at.apply(tunnel);
    await at.isUp();
  });

  test("a restarted service finds its tunnels up, and applies changes that were made meanwhile", async () => {
    await at.far.load(farText(tunnel, second));
    await at.apply(tunnel, second);
    await Promise.all([at.isUp(7), at.isUp(8)]);
    const child = await at.daemon();
    const before = await at.association(7);
    at.restart();
    const changed = { ...second, sharedKey: "A-Third-Secret-Key-0123456789-abcd" };
    await at.far.load(farText(tunnel, changed));
    await at.apply(tunnel, changed);
    await Promise.all([at.isUp(7), at.isUp(8)]);
    assert.deepEqual([await at.daemon(), await at.association(7)], [child, before]);
    assert.ok((await at.fixture.reaches("10.24.2.2")) && (await at.fixture.reaches("10.24.3.2")));
    at.restart();
    await at.apply(tunnel);
    assert.equal(await at.fixture.ping("10.24.3.2"), false);
    assert.ok(await at.fixture.reaches("10.24.2.2"));
  });

  test("counters continue after rekeying", async () => {
    await at.far.load(farText(tunnel));
    await at.apply(tunnel);
    const { establishedAt } = await at.isUp();
    assert.ok(await at.fixture.reaches("10.24.2.2"));
    const before = await at.association(7);
    await at.far.rekey("brume-7");
    await until("other keys", async () => (await at.association(7)) !== before);
    assert.ok(await at.fixture.reaches("10.24.2.2"));
    const status = await at.statusOf();
    assert.deepEqual([status.state, status.establishedAt], ["up", establishedAt]);
    assert.deepEqual([status.bytesIn, status.bytesOut], [168, 168]);
  });

  test("after a kill at any moment of a change, the next service completes it", async () => {
    const modules = ["exec.ts", "router/ipsec/ipsec.ts"].map(
      (name) => new URL(`../../service/src/drivers/${name}`, import.meta.url).href,
    );
    const victim = `
      const [{ exec }, { createIpsec }] = await Promise.all(${JSON.stringify(modules)}.map((name) => import(name)));
      const { edge, runFolder, tunnels } = JSON.parse(process.argv[1]);
      const random = (bytes) => crypto.getRandomValues(new Uint8Array(bytes));
      const lookup = async (host) => host;
      const ipsec = createIpsec({ exec, runFolder, kernelEsp: false, now: Date.now, random, lookup, log() {} });
      process.stdout.write("x");
      await ipsec.apply(edge, tunnels);
    `;
    await at.far.load(farText(tunnel, second));
    for (const after of [0, 3, 6, 10, 15, 20, 30, 45, 60]) {
      const spec = {
        edge: at.fixture.here.edge,
        runFolder: at.fixture.folder,
        tunnels: after % 2 === 0 ? [tunnel] : [second],
      };
      const child = spawn(process.execPath, ["--input-type=module", "-e", victim, JSON.stringify(spec)]);
      const ended = once(child, "exit");
      await Promise.race([once(child.stdout, "data"), ended.then(() => assert.fail("the service ended at once"))]);
      await sleep(after);
      child.kill("SIGKILL");
      await ended;
      at.restart();
      await at.apply(tunnel, second);
      await Promise.all([at.isUp(7), at.isUp(8)]);
      await at.daemon();
      assert.ok(
        (await at.fixture.reaches("10.24.2.2")) && (await at.fixture.reaches("10.24.3.2")),
        `killed after ${after} ms`,
      );
    }
  });

  test("a killed charon restarts by itself with its tunnels", async () => {
    await at.far.load(farText(tunnel));
    await at.apply(tunnel);
    await at.isUp();
    const child = await at.daemon();
    await sleep(2000);
    const killed = Date.now();
    exec.signal(child, "SIGKILL");
    await until("another charon", async () => {
      const [found] = await findDaemons(exec, at.fixture.here.namespace, "charon-systemd");
      return found !== undefined && found.pid !== child.pid;
    });
    // By itself, without a request for its status.
    await sleep(1000);
    const { establishedAt } = await at.isUp();
    assert.ok(establishedAt !== null && establishedAt > killed - 1000, "it is up since then");
    assert.ok(await at.fixture.reaches("10.24.2.2", "-M", "do", "-s", "1000"));
  });

  test("a charon that hangs is unknown, not up", async () => {
    await at.far.load(farText(tunnel));
    await at.apply(tunnel);
    await at.isUp();
    const child = await at.daemon();
    exec.signal(child, "SIGSTOP");
    try {
      // A stopping process may still respond once.
      const { reason } = await until("silence", async () => {
        const status = await at.statusOf();
        return status.state === "unknown" && status;
      });
      assert.equal(reason?.fault, "engine_unavailable");
    } finally {
      exec.signal(child, "SIGCONT");
    }
    await at.isUp();
  });

  test("a lost peer is detected within 30 seconds, and the tunnel returns with it", { timeout: 300_000 }, async () => {
    await at.far.load(farText(tunnel));
    await at.apply(tunnel);
    await at.isUp();
    await at.fixture.inSite(at.fixture.far, "ip", "link", "set", "up0", "down");
    const { state, reason } = await until("down", async () => {
      const status = await at.statusOf();
      return status.state !== "up" && status.reason !== null && status;
    });
    assert.deepEqual([state, reason?.fault], ["down", "peer_unreachable"]);
    await at.fixture.inSite(at.fixture.far, "ip", "link", "set", "up0", "up");
    await at.isUp();
    assert.ok(await at.fixture.reaches("10.24.2.2"));
  });

  test("a peer that closes the tunnel is contacted again", async () => {
    await at.far.load(farText(tunnel));
    await at.apply(tunnel);
    const before = await at.isUp();
    await at.far.terminate("brume-7");
    await until("up again", async () => {
      const status = await at.statusOf();
      return status.state === "up" && status.establishedAt !== before.establishedAt;
    });
  });
});
