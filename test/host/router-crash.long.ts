/**
 * The service is killed at every command of the router driver: after 0, 1, 2 … commands a new driver takes over. Applying again then
 * completes the network, and removing it leaves the host as it was.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Exec, exec } from "../../service/src/drivers/exec.ts";
import type { NetworkSpec, Router } from "../../service/src/drivers/router/interface.ts";
import { withoutPackets } from "../../service/src/drivers/router/linux/snapshot.ts";
import { createLab, hindrance, type Lab } from "../support/netnslab.ts";
import { firewall, image, port, rule } from "../support/networkspec.ts";

if (hindrance !== null) console.log(`router driver, killed: not tried, ${hindrance}`);

/** Returns an `Exec` that runs `commands` commands after `arm` and then fails every further one. `ended`: those that run have ended, as they have before the next service starts. */
function killAfter(commands: number) {
  let left = Number.POSITIVE_INFINITY;
  const running = new Set<Promise<unknown>>();
  const track = <T>(command: Promise<T>): Promise<T> => {
    running.add(command);
    const end = () => void running.delete(command);
    command.then(end, end);
    return command;
  };
  const live = () => {
    if (left-- <= 0) throw new Error("killed");
  };
  return {
    arm: () => void (left = commands),
    died: () => left < 0,
    ended: () => Promise.allSettled(running),
    exec: {
      ...exec,
      async run(argv, options) {
        live();
        return track(exec.run(argv, options));
      },
      async startDetached(argv, options) {
        live();
        return track(exec.startDetached(argv, options));
      },
    } satisfies Exec,
  };
}

/** Returns the listing of a table with its sets and chains in an order that does not depend on when each was added. */
const inOrder = (table: string): string =>
  table
    .trimEnd()
    .replace(/\}$/, "")
    // The first one is in the same block as the name of the table.
    .replace(/^.*\{\n/, "$&\n")
    .split("\n\n")
    .map((block) => block.trim())
    .sort()
    .join("\n\n");

describe("router driver, killed at every command", { skip: hindrance ?? false }, () => {
  let lab: Lab;
  before(async () => {
    lab = await createLab();
  });
  after(() => lab.close());

  const v6 = { cidr: "fd24:1::/64", gateway: "fd24:1::1" };
  const dhcp = { enabled: true, router: "10.64.0.9", dns: [] };
  const small = image({ nat: "always", v6, dhcp, bandwidth: 100 });
  const ports = [{ ...port(1, "10.64.0.10", { bandwidth: 100 }), addresses: ["10.64.0.10", "fd24:1::a"] }];
  const large = image({ ...small, generation: 2, ports, bandwidth: 50, firewall: firewall(rule({ protocol: "udp" })) });

  const [other, changed] = [2, 1].map((id) => ({
    ...port(id, `10.64.0.1${id}`, { bandwidth: id === 2 ? 20 : null }),
    addresses: [`10.64.0.1${id}`, `fd24:1::1${id}`],
  }));
  assert.ok(other && changed);
  const ported = image({ ...large, generation: 3, ports: [changed, other] });
  const emptied = image({ ...large, generation: 3, ports: [] });

  /** Returns the state of the host, without what differs each time: link numbers, MAC addresses, ages, counters. */
  async function state(): Promise<string> {
    const edge = `brume-${lab.tag}-7`;
    const observations = await Promise.all([
      // The order is that of the link numbers.
      lab.run(edge, ["ip", "-br", "-d", "addr"]).then((links) => links.split("\n").sort().join("\n")),
      lab.run(edge, ["ip", "route"]),
      lab.run(edge, ["ip", "-6", "route"]),
      lab.run(edge, ["tc", "qdisc"]),
      // Tables alternate between two names.
      lab.run(edge, ["nft", "-s", "list", "ruleset"]).then((rules) =>
        withoutPackets(rules)
          .replaceAll(/(edge|guard|lock|flows)[012]/g, "$1")
          .split(/^(?=table )/m)
          .map(inOrder)
          .sort()
          .join(""),
      ),
      lab.run(lab.machine, ["ip", "route"]),
      lab.run(lab.machine, ["ip", "-6", "route"]),
      lab.run(lab.machine, ["nft", "-s", "list", "ruleset"]),
    ]);
    // Last, because each command above is a process in the namespace too.
    const pids = (await exec.run(["ip", "netns", "pids", edge])).trim().split("\n");
    return (
      [...observations, `${pids.length} processes`]
        .join("\n")
        .replaceAll(/@if\d+/g, "")
        .replaceAll(/\bfe80::(?![12]\/64)\S+/g, "")
        .replaceAll(/qdisc (\w+) \w+:/g, "qdisc $1")
        .replaceAll(/[ \t]+/g, " ")
        // A bridge without ports is down, after a moment.
        .replaceAll(/^br0 (UP|DOWN)|linkdown /gm, "")
    );
  }

  async function applyCompletely(router: Router, spec: NetworkSpec): Promise<string> {
    assert.equal(await router.apply(spec), spec.generation);
    const status = (await router.observe()).networks.find(({ id }) => id === spec.id);
    assert.deepEqual([status?.generation, status?.missing], [spec.generation, []]);
    return state();
  }

  /** A change of a network. The service that is killed first does `begin`. */
  interface Work {
    readonly prepare?: (router: Router) => Promise<unknown>;
    readonly begin?: (router: Router) => Promise<unknown>;
    readonly work: (router: Router) => Promise<unknown>;
    /** The network after the change; null: removed. */
    readonly spec: NetworkSpec | null;
  }
  const prepareLarge = async (router: Router): Promise<void> => {
    await router.apply(small);
    for (const each of ports) await lab.guest(large, each);
  };
  const works: Record<string, Work> = {
    "making a network": { work: (router) => router.apply(small), spec: small },
    "changing it": { prepare: prepareLarge, work: (router) => router.apply(large), spec: large },
    "changing one port and adding another": {
      async prepare(router) {
        await prepareLarge(router);
        await router.apply(large);
        await lab.guest(ported, other);
      },
      begin: (router) => router.apply(large),
      work: (router) => router.applyPorts({ id: 7, from: 2, generation: 3, ports: [other, changed], removed: [] }),
      spec: ported,
    },
    "removing a port": {
      async prepare(router) {
        await prepareLarge(router);
        await router.apply(large);
      },
      begin: (router) => router.apply(large),
      work: (router) => router.applyPorts({ id: 7, from: 2, generation: 3, ports: [], removed: [1] }),
      spec: emptied,
    },
    "removing it": { prepare: (router) => router.apply(small), work: (router) => router.remove(7), spec: null },
  };

  for (const [name, { prepare = async () => {}, begin = async () => {}, work, spec }] of Object.entries(works))
    test(name, async () => {
      const router = lab.open();
      const clean = await lab.traces();
      await prepare(router);
      const right = spec && (await applyCompletely(router, spec));
      await router.remove(7);
      assert.equal(await lab.traces(), clean);
      let deaths = 0;
      for (let commands = 0; ; commands++) {
        await prepare(router);
        const killed = killAfter(commands);
        const victim = lab.open({ exec: killed.exec });
        await begin(victim);
        killed.arm();
        const outcome = await work(victim).then(
          (result) => (result === false ? "refused" : "done"),
          () => "failed",
        );
        await killed.ended();
        if (!killed.died()) {
          assert.equal(outcome, "done");
          if (spec !== null) assert.equal(await state(), right);
          break;
        }
        deaths++;
        const next = lab.open();
        if (spec === null) {
          // A partly removed network is still observed, so that the drift check removes it.
          const left = (await next.observe()).networks.length;
          if ((await lab.traces()) !== clean && left === 0)
            assert.fail(`after ${commands} commands something is left, and unseen`);
        } else assert.equal(await applyCompletely(next, spec), right, `after ${commands} commands`);
        await next.remove(7);
        assert.equal(await lab.traces(), clean, `after ${commands} commands`);
      }
      assert.ok(deaths >= 4, `${deaths} deaths`);
      await lab.open().remove(7);
      assert.equal(await lab.traces(), clean);
    });
});
