/** Whatever is broken from outside is seen where a look tells, and is whole again when the same image is applied. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { exec } from "../../service/src/drivers/exec.ts";
import type { Router } from "../../service/src/drivers/router/port.ts";
import type { Packet } from "../../service/src/drivers/router/verdict.ts";
import { firewall, image, port, rule } from "./image.ts";
import { createLab, type Guest, hindrance, type Lab } from "./lab.ts";

if (hindrance !== null) console.log(`router driver, repairs: not tried, ${hindrance}`);

describe("router driver repairs", { skip: hindrance ?? false }, () => {
  let lab: Lab;
  let router: Router;
  let first: Guest;
  const one = port(1, "10.64.0.10");
  const dhcp = { enabled: true, router: "10.64.0.9", dns: [] };
  const wish = image({ ports: [one], firewall: firewall(rule({ protocol: "udp" })), bandwidth: 100, nat: true, dhcp });
  const edge = () => `brume-${lab.tag}-7`;
  /** The firewall's table has one of three names; the one in force bears a digest. */
  const table = async () => {
    const counters = await lab.run(edge(), ["nft", "list", "counters"]);
    return /table inet (edge[012]) \{(?:(?!table )[^])*?counter d_/.exec(counters)?.[1] ?? "";
  };
  const status = async () => {
    const found = (await router.observe()).networks.find(({ id }) => id === 7);
    assert.ok(found);
    return found;
  };

  before(async () => {
    lab = await createLab();
    router = lab.open();
    await router.apply(wish);
    first = await lab.guest(wish, one);
    await router.apply(wish);
  });
  after(() => lab.close());

  const damages: Record<string, { readonly what: string | null; readonly harm: () => Promise<unknown> }> = {
    "a rule taken out": {
      what: null,
      harm: async () => {
        const listing = await lab.run(edge(), ["nft", "-a", "list", "chain", "inet", await table(), "forward"]);
        const [, handle = ""] = /ct state invalid.*handle (\d+)/.exec(listing) ?? [];
        return lab.run(edge(), ["nft", "delete", "rule", "inet", await table(), "forward", "handle", handle]);
      },
    },
    "all rules flushed": { what: "firewall", harm: () => lab.run(edge(), ["nft", "flush", "ruleset"]) },
    "the bridge deleted": { what: "bridge", harm: () => lab.ip(edge(), ["link del br0"]) },
    "the uplink deleted": { what: "uplink", harm: () => lab.ip(edge(), ["link del up0"]) },
    "the uplink down": { what: "uplink", harm: () => lab.ip(lab.machine, [`link set b${lab.tag}u7 down`]) },
    "a route deleted": { what: null, harm: () => lab.ip(lab.machine, ["route del 10.64.0.8/29"]) },
    "the default route deleted": { what: null, harm: () => lab.ip(edge(), ["route del default"]) },
    "translation flushed": { what: null, harm: () => lab.run(lab.machine, ["nft", "flush", "ruleset"]) },
    "a limit removed": { what: null, harm: () => lab.run(edge(), ["tc", "qdisc", "del", "dev", "up0", "root"]) },
    "dnsmasq killed": {
      what: "dhcp",
      harm: async () => {
        const pids = await exec.run(["ip", "netns", "pids", edge()]);
        const killed = pids
          .split("\n")
          .filter(Boolean)
          .map((pid) => exec.find(Number(pid)));
        for (const child of killed) {
          if (child !== null) exec.signal(child, "SIGKILL");
          while (child !== null && exec.isAlive(child)) await sleep(5);
        }
      },
    },
    "the port taken off the bridge": {
      what: null,
      harm: () => lab.ip(edge(), ["link set p1 nomaster", "link set p1 down"]),
    },
  };
  for (const [name, { what, harm }] of Object.entries(damages))
    test(name, async () => {
      await harm();
      if (what !== null) assert.ok((await status()).missing.includes(what), (await status()).missing.join());
      assert.equal(await router.apply(wish), wish.generation);
      assert.equal((await status()).whole, true);
      assert.match(await lab.run(edge(), ["tc", "qdisc", "show", "dev", "up0"]), /tbf/);
      assert.match(await lab.run(lab.machine, ["nft", "list", "ruleset"]), /masquerade/);
      assert.match(await lab.run(edge(), ["nft", "list", "table", "inet", await table()]), /ct state invalid drop/);
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
});
