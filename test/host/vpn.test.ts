/**
 * IPsec with an independent peer: the driver's charon, a strongSwan that is configured from the API's peer configuration, and real
 * packets between the servers behind both.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { exec } from "../../service/src/drivers/exec.ts";
import type { IpsecTunnel, TunnelFault } from "../../service/src/drivers/router/interface.ts";
import { connectVici, text } from "../../service/src/drivers/router/ipsec/vici.ts";
import { findDaemons } from "../../service/src/drivers/router/linux/daemon.ts";
import { until } from "../support/waituntil.ts";
import { createIpsecFixture, farText, type IpsecFixture, key, second, skip, tunnel } from "./ipsecfixture.ts";

describe("IPsec against an independent strongSwan", { skip, concurrency: false }, () => {
  let at: IpsecFixture;
  before(async () => {
    at = await createIpsecFixture();
  });
  beforeEach(() => at.reset());
  after(() => at.end());

  test("servers reach each other, and the status shows the tunnel", async () => {
    await at.far.load(farText(tunnel));
    assert.equal(await at.fixture.ping("10.24.2.2"), false);
    const start = Date.now();
    await at.apply(tunnel);
    await at.isUp();
    assert.ok(await at.fixture.reaches("10.24.2.2"));
    const status = await at.statusOf();
    assert.equal(status.proposal, "AES_CBC_256/HMAC_SHA2_256_128/MODP_2048");
    assert.deepEqual([status.localSubnets, status.peerSubnets], [["10.24.1.0/24"], ["10.24.2.0/24"]]);
    assert.deepEqual([status.peerAddress, status.reason], ["192.0.2.2", null]);
    assert.deepEqual([status.bytesIn, status.bytesOut], [84, 84]);
    assert.ok(status.establishedAt !== null && status.establishedAt >= start - 1000);
    assert.ok(status.lastSeen !== null && status.lastSeen >= start - 1000);
  });

  test("charon sees no files of the host, and can only manage its network", async () => {
    await at.far.load(farText(tunnel));
    await at.apply(tunnel);
    await at.isUp();
    const [child = assert.fail()] = await findDaemons(exec, at.fixture.here.namespace, "charon-systemd");
    const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
    // CAP_NET_BIND_SERVICE (10) and CAP_NET_ADMIN (12), of which charon keeps the second.
    assert.match(status, /^CapBnd:\t0000000000001400$/m);
    for (const set of ["CapPrm", "CapEff"]) assert.match(status, new RegExp(`^${set}:\\t0000000000001000$`, "m"), set);
    assert.match(status, /^NoNewPrivs:\t1$/m);
    const root = `/proc/${child.pid}/root`;
    for (const path of ["etc", "root", "home", "run/netns", "proc/1", "usr/bin/sh"])
      assert.ok(!existsSync(join(root, path)), path);
    assert.throws(() => writeFileSync(join(root, "file"), ""), /EROFS/);
  });

  const suites: readonly Partial<IpsecTunnel>[] = [
    { encryption: "aes128", digest: "sha1", dhGroup: 2 },
    { encryption: "aes128gcm", digest: "sha384", dhGroup: 20 },
    { encryption: "aes256", digest: "sha512", dhGroup: 31, perfectForwardSecrecy: false },
    { encryption: "3des", digest: "sha1", dhGroup: 5, ikeVersion: 1 },
    { encryption: "aes256", digest: "sha384", dhGroup: 15, ikeVersion: 1, perfectForwardSecrecy: false },
    { ikeVersion: 1, peerSubnets: ["10.24.2.0/24", "10.24.3.0/24"], dhGroup: 19 },
    { peerSubnets: ["10.24.2.0/24", "10.24.3.0/24"], dhGroup: 16 },
    { localIdentity: "here.example", peerIdentity: "office@far.example" },
  ];
  for (const change of suites)
    test(`comes up with ${JSON.stringify(change)}`, async () => {
      const changed = { ...tunnel, ...change };
      await at.far.load(farText(changed));
      await at.apply(changed);
      const { peerSubnets } = await at.isUp();
      assert.deepEqual(peerSubnets.toSorted(), changed.peerSubnets);
      for (const subnet of peerSubnets) assert.ok(await at.fixture.reaches(subnet.replace(".0/24", ".2")), subnet);
    });

  test("a peer without a known address initiates", async () => {
    const called: IpsecTunnel = { ...tunnel, peer: null, peerIdentity: "roaming.example" };
    await at.apply(called);
    await at.far.load(farText(called));
    const status = await at.isUp();
    assert.equal(status.peerAddress, "192.0.2.2");
    assert.ok(await at.fixture.reaches("10.24.2.2"));
  });

  const mistakes: readonly (readonly [string, Partial<IpsecTunnel>, TunnelFault, RegExp])[] = [
    ["another key", { sharedKey: "Quite-Another-Key-0123456789" }, "authentication_failed", /192\.0\.2\.2/],
    ["another name", { localIdentity: "x.example" }, "authentication_failed", /192\.0\.2\.1/],
    ["other encryption", { encryption: "aes128gcm" }, "no_proposal_chosen", /aes256-sha256-modp2048/],
    ["another group", { dhGroup: 19 }, "no_proposal_chosen", /modp2048/],
    ["other networks", { localSubnets: ["10.99.0.0/24"] }, "selectors_refused", /10\.24\.1\.0\/24/],
    ["another key, IKEv1", { ikeVersion: 1, sharedKey: "Quite-Another-Key-0123" }, "authentication_failed", /key/],
    ["other encryption, IKEv1", { ikeVersion: 1, encryption: "3des" }, "no_proposal_chosen", /aes256/],
    ["other networks, IKEv1", { ikeVersion: 1, localSubnets: ["10.99.0.0/24"] }, "selectors_refused", /10\.24\.1\.0/],
  ];
  for (const [name, change, error, detail] of mistakes)
    test(`the peer has ${name}: the status explains it, and after the fix the tunnel comes up by itself`, async () => {
      const desired = { ...tunnel, ikeVersion: change.ikeVersion ?? 2 };
      await at.far.load(farText({ ...desired, ...change }));
      await at.apply(desired);
      const { state, reason } = await until("a reason", async () => {
        const status = await at.statusOf();
        return status.reason && status;
      });
      assert.equal(state, "connecting");
      assert.equal(reason?.fault, error, reason?.detail);
      assert.match(reason.detail, detail);
      assert.ok(!reason.detail.includes(key));
      await at.far.load(farText(desired));
      await at.isUp();
    });

  const narrower: readonly (readonly [string, Partial<IpsecTunnel>])[] = [
    ["our side to a server", { localSubnets: ["10.24.1.2/32"] }],
    ["our side to the gateway", { localSubnets: ["10.24.1.1/32"] }],
    ["its own side", { peerSubnets: ["10.24.2.0/25"] }],
    ["our side to a server, IKEv1", { ikeVersion: 1, localSubnets: ["10.24.1.2/32"] }],
    ["our side to the gateway, IKEv1", { ikeVersion: 1, localSubnets: ["10.24.1.1/32"] }],
  ];
  for (const [name, change] of narrower)
    test(`the peer narrows ${name}: the tunnel is rejected, not up`, async () => {
      const desired = { ...tunnel, ikeVersion: change.ikeVersion ?? 2 };
      const [agreed = ""] = change.localSubnets ?? change.peerSubnets ?? [];
      await at.far.load(farText({ ...desired, ...change }));
      await at.apply(desired);
      const { state, reason } = await until("a reason", async () => {
        const status = await at.statusOf();
        assert.notEqual(status.state, "up");
        return status.reason && status;
      });
      assert.notEqual(state, "up");
      assert.equal(reason?.fault, "selectors_refused", reason?.detail);
      assert.ok(reason.detail.includes(agreed), reason.detail);
      assert.match(reason.detail, /Configured here: 10\.24\.1\.0\/24 on our side and 10\.24\.2\.0\/24 on the peer's/);
      await at.far.load(farText(desired));
      await at.isUp();
      assert.ok(await at.fixture.reaches("10.24.2.2"));
    });

  test("mistakes of a peer that initiates are explained too", async () => {
    const called: IpsecTunnel = { ...tunnel, peer: null, peerIdentity: "roaming.example" };
    await at.apply(called);
    const errorOf = async (change: Partial<IpsecTunnel>): Promise<TunnelFault | undefined> => {
      await at.far.load(farText({ ...called, ...change, peer: "192.0.2.2" }));
      await at.far.initiate("brume-7").catch(() => {});
      const { reason } = await until("a reason", async () => {
        const status = await at.statusOf();
        return status.reason && status;
      });
      return reason?.fault;
    };
    assert.equal(await errorOf({ sharedKey: "Quite-Another-Key-0123456789" }), "authentication_failed");
    await at.remove();
    await at.apply(called);
    assert.equal(await errorOf({ localSubnets: ["10.99.0.0/24"] }), "selectors_refused");
  });

  test("a missing peer is unreachable, and so is a host name without address", async () => {
    await at.apply({ ...tunnel, peer: "192.0.2.77", peerIdentity: "192.0.2.77" });
    const silent = await until("a reason", async () => (await at.statusOf()).reason);
    assert.equal(silent.fault, "peer_unreachable");
    assert.match(silent.detail, /192\.0\.2\.77/);
    await at.remove();
    await at.far.load(farText({ ...tunnel, peerIdentity: "office.example" }));
    at.names.address = "";
    await at.apply({ ...tunnel, peer: "office.example", peerIdentity: "office.example" });
    const nameless = await until("a reason", async () => (await at.statusOf()).reason);
    assert.equal(nameless.fault, "peer_unreachable");
    assert.match(nameless.detail, /office\.example has no address: ENOTFOUND/);
    // The name is resolved again for each attempt.
    at.names.address = "192.0.2.77";
    await until("another reason", async () => !/ENOTFOUND/.test((await at.statusOf()).reason?.detail ?? "ENOTFOUND"));
    at.names.address = "192.0.2.2";
    await at.isUp();
  });

  const thirty = (peer: string | null): readonly IpsecTunnel[] =>
    Array.from({ length: 30 }, (_, index) => {
      const name = `n${index}.example`;
      return { ...tunnel, id: 100 + index, peer, peerSubnets: [`10.25.${index}.0/24`], peerIdentity: name };
    });
  /** libipsec at the peer needs an address in each of its subnets. */
  const settle = (many: readonly IpsecTunnel[]) => {
    const lines = many.map(({ peerSubnets: [block = ""] }) => `addr replace ${block.replace(".0/24", ".1/32")} dev lo`);
    return exec.run(["ip", "-n", at.fixture.far.namespace, "-batch", "-"], { stdin: `${lines.join("\n")}\n` });
  };

  for (const peer of ["192.0.2.2", null])
    test(`thirty tunnels come up at once when ${peer === null ? "their peers initiate" : "the edge initiates"}`, async () => {
      const many = thirty(peer);
      await settle(many);
      const before = at.far.said().length;
      const logged: string[] = [];
      if (peer !== null) await at.far.load(farText(...many));
      await at.apply(...many);
      const vici = await connectVici(join(at.fixture.folder, at.fixture.here.namespace, "ipsec", "charon.vici"));
      await vici.listen("log", (line) => logged.push(text(line, "msg")));
      if (peer === null) await at.far.load(farText(...many));
      for (const { id } of many) await at.isUp(id);
      vici.close();
      assert.ok(await at.fixture.reaches("10.25.29.1"));
      // The flood protection of either end does not drop these tunnels.
      assert.doesNotMatch(logged.join("\n") + at.far.said().slice(before), /ignoring IKE_SA setup/);
      await at.remove();
      await until("the far end has none", async () => (await at.far.peers()) === 0);
    });

  for (const [name, take] of [
    ["nothing in their place", () => at.remove()],
    [
      "others in their place",
      () => at.apply({ ...tunnel, peerSubnets: ["10.99.0.0/24"], peerIdentity: "nobody.example" }),
    ],
  ] as const)
    test(`tunnels that are removed while they come up (${name}) do not remain at the peer`, async () => {
      const many = thirty("192.0.2.2");
      await settle(many);
      for (const some of [1, 7, 15]) {
        await at.far.load(farText(...many));
        await at.apply(...many);
        await until("some are up", async () => (await at.far.peers()) >= some);
        await take();
        await until("the far end has none", async () => (await at.far.peers()) === 0);
      }
    });

  test("a sender of too large packets is notified of the tunnel's MTU", async () => {
    await at.far.load(farText(tunnel));
    await at.apply({ ...tunnel, mtu: 1300 });
    await at.isUp();
    assert.equal(await at.fixture.ping("10.24.2.2", "-M", "do", "-s", "1280"), false);
    assert.ok(await at.fixture.reaches("10.24.2.2", "-M", "do", "-s", "1272"));
  });

  test("a single server can be the only local subnet, and keeps its address", async () => {
    const single = { ...tunnel, localSubnets: ["10.24.1.2/32"] };
    await at.far.load(farText(single));
    await at.apply(single);
    await at.isUp();
    assert.ok(await at.fixture.reaches("10.24.2.2"));
    // The answers come from the server itself: its edge does not answer for it.
    await exec.run(["ip", "-n", at.fixture.here.server, "link", "set", "eth0", "down"]);
    const fromFar = ["ip", "netns", "exec", at.fixture.far.server, "ping", "-c", "1", "-W", "1", "10.24.1.2"];
    await assert.rejects(exec.run(fromFar));
    await exec.run(["ip", "-n", at.fixture.here.server, "link", "set", "eth0", "up"]);
    await exec.run(["ip", "-n", at.fixture.here.server, "route", "replace", "default", "via", "10.24.1.1"]);
    await until("the server is back", () => exec.run(fromFar).catch(() => null));
  });

  test("no key is in arguments, files or errors, and nothing is left behind", async () => {
    const observe = async () => [
      await at.fixture.inSite(at.fixture.here, "ip", "rule"),
      await at.fixture.inSite(at.fixture.here, "ip", "-o", "addr"),
      await at.fixture.inSite(at.fixture.here, "ip", "route", "show", "table", "main"),
    ];
    const before = await observe();
    await at.far.load(farText(tunnel));
    await at.apply(tunnel, { ...second, localSubnets: ["10.24.1.2/32"] });
    await at.isUp();
    const child = await at.daemon();
    assert.ok(!readFileSync(`/proc/${child.pid}/cmdline`, "latin1").includes(key));
    assert.ok(!readFileSync(`/proc/${child.pid}/environ`, "latin1").includes(key));
    const folder = join(at.fixture.folder, at.fixture.here.namespace, "ipsec");
    for (const name of readdirSync(folder)) {
      const file = statSync(join(folder, name));
      if (!file.isFile()) continue;
      assert.equal(file.mode & 0o777, 0o600, name);
      assert.ok(!readFileSync(join(folder, name), "latin1").includes(key), name);
    }
    await at.remove();
    assert.deepEqual(await observe(), before);
    assert.ok(!existsSync(join(at.fixture.folder, at.fixture.here.namespace)));
    assert.equal(exec.isAlive(child), false);
  });
});

describe("a peer that rejected our subnets", { skip, concurrency: false }, () => {
  let at: IpsecFixture;
  before(async () => {
    // The regular retry is long after the end of the test.
    at = await createIpsecFixture(3_600_000);
  });
  beforeEach(() => at.reset());
  after(() => at.end());

  for (const ikeVersion of [1, 2] as const)
    for (const localSubnets of [["10.24.1.2/32"], ["10.99.0.0/24"]])
      test(`is contacted again at once when its network is applied (IKEv${ikeVersion}, it has ${localSubnets[0]})`, async () => {
        const desired = { ...tunnel, ikeVersion };
        await at.far.load(farText({ ...desired, localSubnets }));
        await at.apply(desired);
        const { fault: error } = await until("a reason", async () => (await at.statusOf()).reason);
        assert.equal(error, "selectors_refused");
        await at.far.load(farText(desired));
        await at.apply(desired);
        await at.isUp();
        assert.ok(await at.fixture.reaches("10.24.2.2"));
      });
});
