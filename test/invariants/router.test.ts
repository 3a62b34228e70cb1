/**
 * Conformance suite of the router driver interface: generations, errors, verdicts of packets, counters, and complete removal. Every driver
 * runs it; the real one gets packets between namespaces, the simulated one function calls.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { NetworkSpec, NetworkStatus, Port, Router } from "../../service/src/drivers/router/interface.ts";
import type { Packet } from "../../service/src/drivers/router/model/verdict.ts";
import { createSim } from "../../service/src/drivers/router/sim/sim.ts";
import { type Carrier, createAgentLab } from "../support/agentlab.ts";
import { createLab, hindrance, keyOf } from "../support/netnslab.ts";
import { firewall, image, open, port, rule } from "../support/networkspec.ts";

interface Subject {
  readonly router: Router;
  /** Creates the port's device and its server. */
  plug(image: NetworkSpec, port: Port): Promise<void>;
  /** Returns the packets that arrive; `from` is a port, or null for a sender outside. */
  send(network: number, from: Port | null, packets: readonly Packet[], to: Port | null): Promise<boolean[]>;
  /** The server of the port uses a foreign address. */
  pose(port: Port, address: string): Promise<void>;
  close(): Promise<void>;
}

async function simulated(): Promise<Subject> {
  const router = createSim(Date.now);
  return {
    router,
    plug: async (_image, { device }) => router.plug(device),
    send: async (network, from, packets) => packets.map((packet) => router.send(network, from?.id ?? null, packet)),
    pose: async () => {},
    close: () => router.close(),
  };
}

/** Puts a router behind a host agent. The devices of ports have the names of the test. */
async function behind(carrier: Carrier, subject: Subject): Promise<Subject> {
  const lab = await createAgentLab({ router: subject.router }, carrier, { deviceOf: (id) => port(id, "").device });
  const { router } = await lab.connect();
  return {
    ...subject,
    router,
    async close() {
      await lab.close();
      await subject.close();
    },
  };
}

async function real(): Promise<Subject> {
  const lab = await createLab();
  const spaceOf = ({ id }: Port) => `lab-${lab.tag}-g${id}`;
  return {
    router: lab.open(),
    plug: async (image, port) => void (await lab.guest(image, port)),
    async send(_network, from, packets, to) {
      const target = to === null ? lab.internet : spaceOf(to);
      await lab.seen(target);
      await lab.send(from === null ? lab.internet : spaceOf(from), packets);
      const seen = await lab.seen(target);
      return packets.map((packet) => seen.has(keyOf(packet)));
    },
    pose: (port, address) => lab.ip(spaceOf(port), [`addr add ${address}/32 dev eth0`]),
    close: lab.close,
  };
}

const drivers: Record<string, { readonly start: () => Promise<Subject>; readonly hindrance: string | null }> = {
  simulated: { start: simulated, hindrance: null },
  "simulated, behind an agent's socket": { start: async () => behind("unix", await simulated()), hindrance: null },
  "simulated, behind an agent's TLS": { start: async () => behind("tls", await simulated()), hindrance: null },
  "real, with packets": { start: real, hindrance },
  "real, with packets, behind an agent's socket": { start: async () => behind("unix", await real()), hindrance },
};

const OUTSIDE = "198.51.100.5";
const one = port(1, "10.64.0.10");
const two = port(2, "10.64.0.11");
const ports = [one, two];
let sourcePort = 20_000;

/** Each packet starts a new connection. */
const packet = (spec: Partial<Packet>): Packet => ({
  protocol: 17,
  source: OUTSIDE,
  sourcePort: sourcePort++,
  destination: "10.64.0.10",
  destinationPort: 53,
  ...spec,
});
const http = (spec: Partial<Packet> = {}) => packet({ protocol: 6, destinationPort: 80, ...spec });
const web = rule({ protocol: "tcp", destinationPort: [{ first: 80, last: 80 }] });

for (const [driver, { start, hindrance }] of Object.entries(drivers)) {
  if (hindrance !== null) console.log(`router conformance, ${driver}: skipped, ${hindrance}`);
  describe(driver, { skip: hindrance ?? false }, () => {
    let subject: Subject;
    let router: Router;
    let generation = 0;
    const apply = (spec: Partial<NetworkSpec> = {}) =>
      router.apply(image({ generation: ++generation, ports, ...spec }));
    const status = async (id = 7): Promise<NetworkStatus | undefined> =>
      (await router.observe()).networks.find((network) => network.id === id);

    before(async () => {
      subject = await start();
      router = subject.router;
      assert.equal((await router.observe()).ready, true);
      await apply();
      for (const each of ports) await subject.plug(image(), each);
      await apply();
    });
    after(() => subject.close());

    test("apply resolves to the applied generation, which observe returns", async () => {
      assert.equal(await apply(), generation);
      const seen = await status();
      assert.equal(seen?.generation, generation);
      assert.deepEqual([seen.complete, seen.missing], [true, []]);
    });

    test("an older generation changes nothing", async () => {
      await apply({ firewall: firewall(web) });
      assert.equal(await router.apply(image({ generation: generation - 1, ports, firewall: open })), generation);
      assert.equal((await status())?.rules.length, 1);
      assert.deepEqual(await subject.send(7, null, [packet({}), http()], one), [false, true]);
    });

    test("a device is connected when it appears", async () => {
      const late = port(3, "10.64.0.12");
      await apply({ ports: [...ports, late] });
      const attached = async () => (await status())?.ports.find(({ id }) => id === 3)?.attached;
      assert.equal(await attached(), false);
      await subject.plug(image(), late);
      assert.equal(await router.apply(image({ generation, ports: [...ports, late] })), generation);
      assert.equal(await attached(), true);
      assert.deepEqual(await subject.send(7, null, [packet({ destination: "10.64.0.12" })], late), [true]);
      await apply();
      assert.deepEqual(await subject.send(7, null, [packet({ destination: "10.64.0.12" })], late), [false]);
    });

    test("single ports change only from the known generation, and like a complete apply", async () => {
      await apply();
      const late = port(3, "10.64.0.12");
      const change = { id: 7, from: generation, generation: generation + 1, ports: [late], removed: [one.id] };
      assert.equal(await router.applyPorts({ ...change, from: generation - 1 }), false);
      assert.equal(await router.applyPorts({ ...change, id: 4711 }), false);
      await assert.rejects(router.applyPorts({ ...change, ports: [{ ...late, addresses: ["10.64.0.12; drop"] }] }));
      assert.equal((await status())?.generation, generation);
      await subject.plug(image(), late);
      assert.equal(await router.applyPorts(change), true);
      generation += 1;
      const seen = await status();
      assert.deepEqual([seen?.generation, seen?.complete, seen?.ports.map(({ id }) => id)], [generation, true, [2, 3]]);
      for (const { id } of [two, late]) {
        const before = seen?.ports.find((each) => each.id === id);
        const now = await router.observePort(7, id);
        assert.deepEqual(
          now && [now.id, now.attached, now.carrier],
          before && [before.id, before.attached, before.carrier],
        );
        // A device sends packets by itself.
        assert.ok((now?.sent.packets ?? 0) >= (before?.sent.packets ?? 0));
      }
      assert.equal(await router.observePort(7, one.id), null);
      const to = (destination: string) => packet({ destination });
      assert.deepEqual(await subject.send(7, null, [to("10.64.0.12")], late), [true]);
      assert.deepEqual(await subject.send(7, null, [to("10.64.0.10")], one), [false]);
      await subject.plug(image(), one);
      await apply();
    });

    test("without a firewall all packets pass in both directions", async () => {
      await apply({ firewall: { ...firewall(rule({ allow: false })), enabled: false } });
      assert.deepEqual(await subject.send(7, null, [packet({}), http()], one), [true, true]);
      const out = { source: "10.64.0.10", destination: OUTSIDE };
      assert.deepEqual(await subject.send(7, one, [packet(out), http(out)], null), [true, true]);
      assert.deepEqual((await status())?.rules, []);
    });

    test("the first rule that matches decides, else the default action", async () => {
      const rules = [
        rule({ allow: false, source: ["198.51.100.5-198.51.100.7"] }),
        rule({ source: ["198.51.100.0/24"], protocol: "udp" }),
      ];
      const packets = [packet({}), packet({ source: "198.51.100.8" }), http({ source: "198.51.100.8" })];
      await apply({ firewall: firewall(...rules) });
      assert.deepEqual(await subject.send(7, null, packets, one), [false, true, false]);
      await apply({ firewall: { ...firewall(...rules), allow: true } });
      const again = [packet({}), packet({ source: "198.51.100.8" }), http({ source: "198.51.100.8" })];
      assert.deepEqual(await subject.send(7, null, again, one), [false, true, true]);
    });

    test("internal and external select the direction", async () => {
      const out = { source: "10.64.0.10", destination: OUTSIDE };
      await apply({ firewall: firewall(rule({ source: "internal", destination: "external" })) });
      assert.deepEqual(await subject.send(7, one, [packet(out)], null), [true]);
      assert.deepEqual(await subject.send(7, null, [packet({})], one), [false]);
      await apply({ firewall: firewall(rule({ source: "external", destination: "internal" })) });
      assert.deepEqual(await subject.send(7, one, [packet(out)], null), [false]);
      assert.deepEqual(await subject.send(7, null, [packet({})], one), [true]);
    });

    test("servers of one network are not filtered", async () => {
      await apply({ firewall: firewall() });
      const inside = packet({ source: "10.64.0.10", destination: "10.64.0.11" });
      assert.deepEqual(await subject.send(7, one, [inside], two), [true]);
    });

    test("hits are counted since the rules were applied", async () => {
      await apply({ firewall: firewall(web, rule({ protocol: "udp", allow: false })) });
      await router.observe();
      await subject.send(7, null, [http(), http(), packet({}), http({ destinationPort: 81 })], one);
      const first = await status();
      assert.deepEqual(
        first?.rules.map(({ packets }) => packets),
        [2, 1],
      );
      assert.equal(first.rest.packets, 1);
      assert.ok(first.rules.every(({ lastHit }) => lastHit !== null && lastHit <= Date.now()));
      // A change of another part of the spec keeps the counters; new rules start at zero.
      await apply({ bandwidth: 100, firewall: firewall(web, rule({ protocol: "udp", allow: false })) });
      assert.equal((await status())?.rules[0]?.packets, 2);
      await apply({ firewall: firewall(web) });
      const second = await status();
      assert.deepEqual(
        second?.rules.map(({ packets, lastHit }) => [packets, lastHit]),
        [[0, null]],
      );
    });

    test("an invalid rule rejects the whole spec, and the old one stays applied", async () => {
      await apply({ firewall: firewall(web) });
      const before = generation;
      for (const wrong of [
        rule({ source: ["10.0.0.1; drop"] }),
        rule({ destination: ["10.64.0.9/29"] }),
        rule({ protocol: "tcp", destinationPort: [{ first: 2, last: 1 }] }),
        rule({ protocol: "icmp", sourcePort: [{ first: 1, last: 1 }] }),
      ])
        await assert.rejects(apply({ firewall: firewall(web, wrong) }));
      await assert.rejects(apply({ edgeAddress: "10.0.0.1 dev lo" }));
      await assert.rejects(apply({ v4: { cidr: "10.64.0.9/29", gateway: "10.64.0.9" } }));
      await assert.rejects(apply({ bandwidth: 0.5 }));
      assert.equal((await status())?.generation, before);
      assert.deepEqual(await subject.send(7, null, [http(), packet({})], one), [true, false]);
    });

    test("a foreign address is dropped and counted", async () => {
      await apply();
      const spoofed = async () => (await status())?.spoofed.packets ?? 0;
      const count = await spoofed();
      await subject.pose(one, "10.64.0.13");
      const foreign = packet({ source: "10.64.0.13", destination: OUTSIDE });
      assert.deepEqual(await subject.send(7, one, [foreign], null), [false]);
      assert.ok((await spoofed()) > count);
    });

    test("a network that never worked leaves nothing", async () => {
      await assert.rejects(router.apply(image({ id: 8, firewall: firewall(rule({ source: ["nonsense"] })) })));
      assert.equal(await status(8), undefined);
    });

    test("a private network is a switch without a way out", async () => {
      const inner = [port(4, "172.16.0.4"), port(5, "172.16.0.5")] as const;
      const spec = image({
        id: 9,
        kind: "private",
        v4: { cidr: "172.16.0.0/24", gateway: null },
        edgeAddress: null,
        ports: inner,
        dhcp: { enabled: false, router: null, dns: [] },
      });
      for (const each of inner) await subject.plug(spec, each);
      assert.equal(await router.apply(spec), 1);
      const between = packet({ source: "172.16.0.4", destination: "172.16.0.5" });
      assert.deepEqual(await subject.send(9, inner[0], [between], inner[1]), [true]);
      assert.equal((await status(9))?.complete, true);
      await router.remove(9);
      assert.equal(await status(9), undefined);
    });

    test("a banner is read from addresses of the network only", async () => {
      await apply();
      for (const address of ["127.0.0.1", "169.254.1.1", "10.64.255.2", "10.64.0.16"])
        assert.equal(await router.readBanner(7, address, 22), null, address);
    });

    test("removing is complete, and can be repeated", async () => {
      await router.remove(7);
      assert.equal(await status(), undefined);
      await router.remove(7);
      await router.remove(4711);
      assert.equal(await router.apply(image({ generation: 1 })), 1);
      await router.remove(7);
    });
  });
}
