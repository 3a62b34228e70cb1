/** Damage by other programs is observed where an observation can see it, and is repaired when the same spec is applied. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { exec } from "../../service/src/drivers/exec.ts";
import type { Router } from "../../service/src/drivers/router/interface.ts";
import { folderOf } from "../../service/src/drivers/router/linux/netns.ts";
import type { TunnelEngine } from "../../service/src/drivers/router/linux/tunnels.ts";
import { namespaceOf } from "../../service/src/drivers/router/model/name.ts";
import type { Packet } from "../../service/src/drivers/router/model/verdict.ts";
import { createLab, type Guest, hindrance, type Lab } from "../support/netnslab.ts";
import { firewall, image, port, rule } from "../support/networkspec.ts";
import { waitUntil } from "../support/waituntil.ts";

if (hindrance !== null) console.log(`router driver, repairs: not tried, ${hindrance}`);

describe("router driver repairs", { skip: hindrance ?? false }, () => {
  let lab: Lab;
  let router: Router;
  let first: Guest;
  const one = port(1, "10.64.0.10");
  const dhcp = { enabled: true, router: "10.64.0.9", dns: [] };
  const spec = image({
    ports: [one],
    firewall: firewall(rule({ protocol: "udp" })),
    bandwidth: 100,
    nat: "always",
    dhcp,
  });
  const edge = () => `brume-${lab.tag}-7`;
  /** The firewall's table has one of two names. The active one contains a digest; the previous one may still exist. */
  const table = async () => {
    const tables = (await lab.run(edge(), ["nft", "list", "counters"])).split(/^(?=table )/m);
    const active = tables.find(
      (one) => one.startsWith("table inet edge") && /counter d_/.test(one) && !/counter past/.test(one),
    );
    return /edge[01]/.exec(active ?? "")?.[0] ?? "";
  };
  const status = async () => {
    const found = (await router.observe()).networks.find(({ id }) => id === 7);
    assert.ok(found);
    return found;
  };

  /** Kills all processes in the namespace. */
  async function killAll(space = edge()): Promise<void> {
    const pids = (await exec.run(["ip", "netns", "pids", space])).split("\n").filter(Boolean);
    const children = pids.map((pid) => exec.find(Number(pid))).filter((child) => child !== null);
    for (const child of children) exec.signal(child, "SIGKILL");
    const alive = () => children.filter((child) => exec.isAlive(child));
    await waitUntil("the end of the processes", alive, ({ length }) => length === 0);
  }

  before(async () => {
    lab = await createLab();
    router = lab.open();
    await router.apply(spec);
    first = await lab.guest(spec, one);
    await router.apply(spec);
  });
  after(() => lab.close());

  const damages: Record<string, { readonly what: string | null; readonly damage: () => Promise<unknown> }> = {
    "a rule deleted": {
      what: null,
      damage: async () => {
        const listing = await lab.run(edge(), ["nft", "-a", "list", "chain", "inet", await table(), "forward"]);
        const [, handle = ""] = /ct state invalid.*handle (\d+)/.exec(listing) ?? [];
        return lab.run(edge(), ["nft", "delete", "rule", "inet", await table(), "forward", "handle", handle]);
      },
    },
    "the table set dormant": {
      what: null,
      damage: async () => lab.run(edge(), ["nft", `add table inet ${await table()} { flags dormant; }`]),
    },
    "all rules flushed": { what: "firewall", damage: () => lab.run(edge(), ["nft", "flush", "ruleset"]) },
    "the bridge deleted": { what: "bridge", damage: () => lab.ip(edge(), ["link del br0"]) },
    "the uplink deleted": { what: "uplink", damage: () => lab.ip(edge(), ["link del up0"]) },
    "the uplink down": { what: "uplink", damage: () => lab.ip(lab.machine, [`link set b${lab.tag}u7 down`]) },
    "a route deleted": { what: null, damage: () => lab.ip(lab.machine, ["route del 10.64.0.8/29"]) },
    "the default route deleted": { what: null, damage: () => lab.ip(edge(), ["route del default"]) },
    "the host's rules flushed": { what: "host guard", damage: () => lab.run(lab.machine, ["nft", "flush", "ruleset"]) },
    "a rule of the host guard deleted": {
      what: "host guard",
      damage: async () => {
        const listing = await lab.run(lab.machine, ["nft", "-a", "list", "chain", "inet", `brume_${lab.tag}`, "guest"]);
        const [, handle = ""] = /fib daddr type.*handle (\d+)/.exec(listing) ?? [];
        return lab.run(lab.machine, ["nft", "delete", "rule", "inet", `brume_${lab.tag}`, "guest", "handle", handle]);
      },
    },
    "a limit removed": { what: null, damage: () => lab.run(edge(), ["tc", "qdisc", "del", "dev", "up0", "root"]) },
    "dnsmasq killed": { what: "dhcp", damage: () => killAll() },
    "the port removed from the bridge": {
      what: null,
      damage: () => lab.ip(edge(), ["link set p1 nomaster", "link set p1 down"]),
    },
  };
  for (const [name, { what, damage }] of Object.entries(damages))
    test(name, async () => {
      await damage();
      if (what !== null) assert.ok((await status()).missing.includes(what), (await status()).missing.join());
      assert.equal(await router.apply(spec), spec.generation);
      assert.equal((await status()).complete, true);
      assert.match(await lab.run(edge(), ["ip", "route", "show", "default"]), /^default via /);
      assert.match(await lab.run(edge(), ["tc", "qdisc", "show", "dev", "up0"]), /tbf/);
      assert.match(await lab.run(lab.machine, ["nft", "list", "ruleset"]), /masquerade/);
      const rules = await lab.run(edge(), ["nft", "list", "table", "inet", await table()]);
      assert.match(rules, /ct state invalid drop/);
      assert.doesNotMatch(rules, /dormant/);
      const packet: Packet = {
        protocol: 17,
        source: "198.51.100.5",
        sourcePort: 8200,
        destination: "10.64.0.10",
        destinationPort: 53,
      };
      await lab.seen(first.space);
      await lab.send(lab.internet, [packet]);
      assert.equal((await lab.seen(first.space)).size, 1);
    });

  test("after the repair of one network, what is missing of the others on the host is observed", async () => {
    const v4 = { cidr: "10.64.1.32/29", gateway: "10.64.1.33" };
    const forwarding = { nat: "always", ports: [], dnsForwarders: ["192.0.2.53"] } as const;
    const other = image({ id: 12, v4, edgeAddress: "10.64.255.7", ...forwarding });
    await router.apply(other);
    const missing = async () => (await router.observe()).networks.map(({ id, missing }) => `${id} ${missing.join()}`);
    const onHost = async () =>
      (await lab.run(lab.machine, ["nft", "list", "ruleset"])).match(/"b\w+uc" \. .*|10\.64\.1\.32.*/g);
    const before = await onHost();
    assert.match(String(before), /192\.0\.2\.53.*masquerade/);
    await lab.run(lab.machine, ["nft", "flush", "ruleset"]);
    await router.apply(spec);
    assert.deepEqual(await missing(), ["7 ", "12 host guard"]);
    await router.apply(other);
    assert.deepEqual(await missing(), ["7 ", "12 "]);
    assert.deepEqual(await onHost(), before);
    await router.remove(12);
  });

  test("only what another program has changed is reported as a repair, and not a changed setting", async () => {
    const parts: string[] = [];
    const apply = async (driver: Router, nat = spec.nat) => {
      parts.length = 0;
      assert.equal(await driver.apply({ ...spec, nat }, (part) => parts.push(part)), spec.generation);
      return parts;
    };
    const changed = lab.open({ limits: { network: 450, server: 77, packets: 123_456 }, opened: ["198.18.0.9"] });
    assert.deepEqual(await apply(changed, "outside-private"), []);
    assert.match(await lab.run(edge(), ["nft", "list", "ruleset"]), /123456\/second/);
    const guard = ["nft", "list", "table", "inet", `brume_${lab.tag}`];
    assert.match(await lab.run(lab.machine, guard), /198\.18\.0\.9/);
    assert.deepEqual(await apply(changed, "outside-private"), []);
    for (const space of [edge(), lab.machine]) await lab.run(space, ["nft", "flush", "ruleset"]);
    assert.deepEqual(await apply(changed, "outside-private"), ["host guard", "firewall", "translation"]);
    // Another driver, since for the first one the second was another program.
    assert.deepEqual(await apply(lab.open()), []);
    assert.doesNotMatch(await lab.run(lab.machine, guard), /198\.18\.0\.9/);
  });

  test("a dnsmasq that cannot serve is reported, and serves when it can", async () => {
    await killAll();
    const taken = `require("dgram").createSocket("udp4").bind(67)`;
    const argv = ["ip", "netns", "exec", edge(), process.execPath, "-e", taken];
    await exec.startDetached(argv, { output: "/dev/null" });
    const sockets = () => lab.run(edge(), ["ss", "-Hlun"]);
    await waitUntil("the program at port 67", sockets, (text) => text.includes(":67 "), 20);
    await assert.rejects(router.apply(spec), /dnsmasq: failed to bind DHCP server socket/);
    assert.deepEqual((await status()).missing, ["dhcp"]);
    await killAll();
    await router.apply(spec);
    assert.deepEqual((await status()).missing, []);
  });

  test("a name without a namespace, which a killed `ip netns add` leaves, is replaced", async () => {
    const name = `brume-${lab.tag}-9`;
    writeFileSync(`/run/netns/${name}`, "", { mode: 0 });
    const v4 = { cidr: "10.64.1.16/29", gateway: "10.64.1.17" };
    await router.apply(image({ id: 9, v4, edgeAddress: "10.64.255.4", ports: [] }));
    assert.ok(await lab.works(name, ["ip", "link", "show", "br0"]));
    await router.remove(9);
    assert.ok(!existsSync(`/run/netns/${name}`));
  });

  test("a network that cannot be created yet does not block the NIC of its server", async () => {
    let refuses = true;
    const tunnels: TunnelEngine = {
      async apply() {
        if (refuses) throw new Error("no engine");
      },
      async remove() {},
      observe: async () => new Map(),
      close() {},
    };
    const second = port(2, "10.64.1.10");
    const v4 = { cidr: "10.64.1.8/29", gateway: "10.64.1.9" };
    const other = image({ id: 8, v4, edgeAddress: "10.64.255.3", ports: [second] });
    const another = lab.open({ tunnels: [tunnels] });
    const guest = await lab.guest(other, second);
    const isThere = () => lab.works(lab.machine, ["ip", "link", "show", second.device]);
    for (const attempt of ["first", "second"]) {
      await assert.rejects(another.apply(other), /no engine/);
      assert.ok(await isThere(), `after the ${attempt} attempt`);
      assert.ok(!(await exec.run(["ip", "netns"])).includes(`brume-${lab.tag}-8`));
    }
    refuses = false;
    await another.apply(other);
    assert.equal(await isThere(), false);
    assert.ok(await lab.works(guest.space, ["ping", "-q", "-c", "1", "-W", "60", v4.gateway]));
    await another.remove(8);
  });

  test("the NIC of a server returns to the host's own namespace, although the programs see no process of the host", async () => {
    const third = port(3, "10.64.1.26");
    const v4 = { cidr: "10.64.1.24/29", gateway: "10.64.1.25" };
    const spec = image({ id: 10, v4, edgeAddress: "10.64.255.5", ports: [third] });
    await lab.guest(spec, third);
    // Its network namespace is that of the lab's host; its names of namespaces are the common ones.
    const enter = ["nsenter", `--net=/run/netns/${lab.machine}`];
    const script = join(import.meta.dirname, "refusedapply.ts");
    const output = await exec.run([...enter, process.execPath, script, lab.tag, lab.runFolder], {
      stdin: JSON.stringify({ spec, capabilities: lab.capabilities }),
      timeout: 60_000,
    });
    assert.match(output, /^\w+: no engine\n$/);
    assert.ok(await lab.works(lab.machine, ["ip", "link", "show", third.device]));
    assert.ok(!existsSync(`/run/netns/${namespaceOf(lab.tag, 10)}`));
  });

  test("a network with more than a thousand leases serves DHCP", async () => {
    const v4 = { cidr: "10.70.0.0/16", gateway: "10.70.0.1" };
    const ports = Array.from({ length: 1001 }, (_, at) =>
      port(at + 100, `10.70.${1 + (at >> 8)}.${at & 255}`, {
        mac: `02:42:00:00:${(at >> 8).toString(16).padStart(2, "0")}:${(at & 255).toString(16).padStart(2, "0")}`,
      }),
    );
    const many = image({ id: 11, v4, edgeAddress: "10.64.255.6", ports, dhcp: { ...dhcp, router: v4.gateway } });
    await router.apply(many);
    await killAll(namespaceOf(lab.tag, 11));
    const file = join(folderOf(lab.runFolder, 11), "leases");
    const leases = ports.map(({ mac, addresses: [address], name }) => `0 ${mac} ${address} ${name} *\n`);
    writeFileSync(file, leases.join(""));
    await router.apply(many);
    const found = (await router.observe(11)).networks[0];
    assert.deepEqual(found?.missing, []);
    assert.equal(readFileSync(file, "utf8").match(/^0 /gm)?.length, ports.length);
    await router.remove(11);
  });
});
