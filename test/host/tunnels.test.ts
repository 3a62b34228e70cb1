/**
 * Tunnels of complete networks: two networks of one driver, connected over the host by IPsec and then by WireGuard, with their firewalls
 * and guards. Packets to the other network go through the tunnel or are dropped.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { exec } from "../../service/src/drivers/exec.ts";
import type {
  IpsecTunnel,
  NetworkSpec,
  Router,
  TunnelSpec,
  WireguardTunnel,
} from "../../service/src/drivers/router/interface.ts";
import { createIpsec } from "../../service/src/drivers/router/ipsec/ipsec.ts";
import { findDaemons } from "../../service/src/drivers/router/linux/daemon.ts";
import { ipsecTunnels, wireguardTunnels } from "../../service/src/drivers/router/linux/tunnels.ts";
import { namespaceOf } from "../../service/src/drivers/router/model/name.ts";
import { createPrivate, publicKeyOf } from "../../service/src/drivers/router/model/wireguardkey.ts";
import { createWireguard } from "../../service/src/drivers/router/wireguard/wireguard.ts";
import { whyNot } from "../support/hindrance.ts";
import { createLab, type Guest, hindrance, type Lab } from "../support/netnslab.ts";
import { firewall, image, port, rule } from "../support/networkspec.ts";
import { until } from "../support/waituntil.ts";
import { lostPings } from "./pings.ts";

const skip = hindrance ?? whyNot("ip", "nft", "charon-systemd", "wireguard-go", "ping");

describe("tunnels between two networks", { skip, concurrency: false }, () => {
  const cidrs = ["10.64.0.8/29", "10.64.0.16/29"] as const;
  const edges = ["10.64.255.2", "10.64.255.3"] as const;
  const keys = [createPrivate(randomBytes), createPrivate(randomBytes)] as const;
  const secret = randomBytes(32).toString("base64");
  let lab: Lab;
  let router: Router;
  let guests: readonly [Guest, Guest];
  let generation = 0;

  const open = (): Router => {
    const options = {
      exec,
      runFolder: lab.runFolder,
      now: Date.now,
      random: randomBytes,
      lookup: async (host: string) => host,
      log: () => {},
    };
    const { kernelEsp } = lab.capabilities;
    return lab.open({
      tunnels: [
        ipsecTunnels(createIpsec({ ...options, kernelEsp, retryAfter: 300 })),
        wireguardTunnels(createWireguard(options)),
      ],
    });
  };
  const other = (side: 0 | 1): 0 | 1 => (side === 0 ? 1 : 0);
  const ipsec = (side: 0 | 1): IpsecTunnel => ({
    type: "ipsec",
    id: 10 + side,
    enabled: true,
    mtu: 1400,
    localSubnets: [cidrs[side]],
    peerSubnets: [cidrs[other(side)]],
    ikeVersion: 2,
    encryption: "aes128gcm",
    digest: "sha256",
    dhGroup: 19,
    perfectForwardSecrecy: true,
    sharedKey: "Very-Secret-Key-0123456789-abcdef",
    localIdentity: edges[side],
    peer: edges[other(side)],
    peerIdentity: edges[other(side)],
  });
  const wireguard = (side: 0 | 1): WireguardTunnel => ({
    type: "wireguard",
    id: 20 + side,
    enabled: true,
    mtu: 1420,
    localSubnets: [cidrs[side]],
    peerSubnets: [cidrs[other(side)]],
    peerPublicKey: publicKeyOf(keys[other(side)]),
    presharedKey: secret,
    endpoint: `${edges[other(side)]}:51820`,
    keepAlive: 1,
  });
  const imageOf = (side: 0 | 1, tunnels: readonly TunnelSpec[], spec: Partial<NetworkSpec> = {}): NetworkSpec =>
    image({
      id: side + 1,
      generation,
      v4: { cidr: cidrs[side], gateway: side === 0 ? "10.64.0.9" : "10.64.0.17" },
      edgeAddress: edges[side],
      tunnels,
      wireguard: tunnels.some(({ type }) => type === "wireguard")
        ? { privateKey: keys[side], listenPort: 51_820 }
        : null,
      ports: [port(side + 1, side === 0 ? "10.64.0.10" : "10.64.0.18")],
      firewall: firewall(rule({ source: [cidrs[other(side)]] }), rule({ source: "internal", destination: "external" })),
      ...spec,
    });
  const apply = async (tunnel: ((side: 0 | 1) => TunnelSpec) | null, spec?: Partial<NetworkSpec>): Promise<void> => {
    generation++;
    for (const side of [0, 1] as const) await router.apply(imageOf(side, tunnel === null ? [] : [tunnel(side)], spec));
  };
  const states = async () => {
    const { networks } = await router.observe();
    return networks.flatMap(({ tunnels }) => tunnels.map(({ state }) => state));
  };
  const bothUp = () => until("both ends up", async () => (await states()).join() === "up,up");
  const ping = (seconds = 1) =>
    lab.works(guests[0].space, ["ping", "-c", "1", "-W", String(seconds), "-q", "10.64.0.18"]);
  /** Returns the unencrypted packets between the two blocks that crossed the host since the last call. */
  const unencrypted = async (): Promise<readonly string[]> =>
    [...(await lab.seen(lab.machine))].filter((key) => key.includes("10.64.0.1"));

  before(async () => {
    lab = await createLab();
    router = open();
    guests = [
      await lab.guest(imageOf(0, []), port(1, "10.64.0.10")),
      await lab.guest(imageOf(1, []), port(2, "10.64.0.18")),
    ];
  });
  after(() => lab.close());

  test("without a tunnel they reach each other unencrypted", async () => {
    await apply(null);
    assert.ok(await ping(60));
    assert.ok((await unencrypted()).length > 0);
  });

  for (const [name, tunnel, program] of [
    ["IPsec", ipsec, "charon-systemd"],
    ["WireGuard", wireguard, "wireguard-go"],
  ] as const) {
    test(`${name}: servers reach each other through the tunnel, and nothing passes unencrypted`, async () => {
      await apply(tunnel);
      await unencrypted();
      await bothUp();
      assert.ok(await until("a packet", () => ping()));
      assert.deepEqual(await unencrypted(), []);
    });

    test(`${name}: packets that the firewall denies do not pass`, async () => {
      await apply(tunnel, { firewall: firewall(rule({ source: "internal", destination: "external" })) });
      await bothUp();
      assert.equal(await ping(), false);
      await apply(tunnel);
      assert.ok(await until("a packet", () => ping()));
    });

    test(`${name}: a new driver takes over without a lost packet`, async () => {
      const lost = lostPings(guests[0].space, "10.64.0.18", 50);
      await router.close();
      router = open();
      generation--;
      await apply(tunnel);
      await bothUp();
      assert.deepEqual(await lost, []);
    });

    test(`${name}: while a tunnel is down nothing leaves unencrypted`, async () => {
      generation++;
      await router.apply(imageOf(1, []));
      await unencrypted();
      assert.equal(await ping(), false);
      assert.deepEqual(await unencrypted(), []);
      await apply(tunnel);
      await bothUp();
      assert.ok(await until("a packet", () => ping()));
    });

    test(`${name}: after a kill the engine restarts by itself, and nothing leaves unencrypted`, async () => {
      await unencrypted();
      const pinging = lab
        .run(guests[0].space, ["ping", "-i", "0.005", "-c", "200", "-W", "1", "-q", "10.64.0.18"])
        .catch(() => "");
      const daemons = await findDaemons(exec, namespaceOf(lab.tag, 1), program);
      assert.equal(daemons.length, 1);
      for (const daemon of daemons) exec.signal(daemon, "SIGKILL");
      await pinging;
      assert.ok(await until("a packet", () => ping()));
      await bothUp();
      assert.deepEqual(await unencrypted(), []);
    });
  }

  test("nothing is left of both", async () => {
    await router.remove(1);
    await router.remove(2);
    const left = await exec.run(["ip", "netns", "list"]);
    assert.ok(!left.includes(`brume-${lab.tag}-`));
    const processes = await exec.run(["ps", "-eo", "args"]);
    assert.ok(!processes.includes(lab.runFolder) && !processes.includes(`b${lab.tag}w`));
    assert.ok(!(await exec.run(["ls", "/var/run/wireguard"])).includes(`b${lab.tag}w`));
  });
});
