import assert from "node:assert/strict";
import { test } from "node:test";
import { image, port } from "../../../../../test/support/networkspec.ts";
import { type Exec, exec } from "../../exec.ts";
import { namespaceOf, portOf, uplinkOf } from "../model/name.ts";
import type { Capabilities } from "./detect.ts";
import { createObserver } from "./observer.ts";
import { markText } from "./snapshot.ts";
import type { TunnelEngine } from "./tunnels.ts";

const tag = "abc";
const link = (ifname: string, more: object = {}) => ({
  ifname,
  flags: ["UP"],
  link_type: "ether",
  addr_info: [],
  stats64: { rx: { bytes: 0, packets: 0 }, tx: { bytes: 0, packets: 0 } },
  ...more,
});

/** A host with this number of networks, the last of which has a server. Records the commands. */
function createMachine(count: number, tunnels: readonly TunnelEngine[] = []) {
  const ids = Array.from({ length: count }, (_, index) => index + 1);
  const broken = new Set<number>();
  let received = 0;
  let commands: string[] = [];
  const answer = (line: string): string => {
    const id = ids.find((each) => line.includes(`${namespaceOf(tag, each)} `));
    if (id === undefined) return JSON.stringify(ids.map((each) => link(uplinkOf(tag, each))));
    if (line.includes(" ip ")) {
      const links = [link("lo", { ifalias: markText(id, 1) }), link("br0"), link("up0")];
      if (id !== count) return JSON.stringify(links);
      const stats64 = { rx: { bytes: ++received, packets: 1 }, tx: {} };
      return JSON.stringify([...links, link(portOf(9), { master: "br0", stats64 })]);
    }
    const tables = broken.has(id) ? ["guard0", "flows0"] : ["edge0", "guard0", "lock0", "flows0"];
    return tables.map((table) => `table inet ${table} {\n\tcounter d_1 {\n\t\tpackets 0 bytes 0\n\t}\n}`).join("\n");
  };
  const countingExec: Exec = {
    ...exec,
    async run(_, { stdin = "" } = {}) {
      commands = (await stdin).trim().split("\n");
      await new Promise(setImmediate);
      return commands.map(answer).join("\n");
    },
  };
  const observer = createObserver({
    exec: countingExec,
    tag,
    hostNamespace: null,
    capabilities: { dhcp: true } as Capabilities,
    tunnels,
    now: () => 0,
    networks: () => ids.map((network) => ({ network, space: namespaceOf(tag, network) })),
    isGuarded: async () => () => true,
    dhcpRuns: () => true,
    occupiedPorts: () => [],
  });
  const spec = (id: number) => image({ id, ports: id === count ? [port(9, "10.64.0.10")] : [] });
  for (const id of ids) observer.know(spec(id), "1");
  return {
    observer,
    spec,
    broken,
    /** Observes the host, and returns the number of namespaces whose rules were read. */
    async observe() {
      const { networks } = await observer.observe();
      const missing = networks.filter(({ complete }) => !complete).map(({ id }) => id);
      return { networks, missing, visits: commands.filter((line) => line.includes(" nft ")).length };
    },
  };
}

test("few networks are all read at every observation", async () => {
  const { observe, broken } = createMachine(8);
  assert.equal((await observe()).visits, 8);
  broken.add(5);
  const { visits, missing } = await observe();
  assert.deepEqual([visits, missing], [8, [5]]);
});

test("many networks are all read once and then in turn, while ports are counted every time", async () => {
  const { observe, broken } = createMachine(40);
  const first = await observe();
  assert.deepEqual([first.visits, first.missing], [40, []]);
  broken.add(20);
  const observations = [await observe(), await observe(), await observe()];
  assert.deepEqual(
    observations.map(({ visits, missing }) => [visits, missing]),
    [
      [8, []],
      [8, [20]],
      [8, [20]],
    ],
  );
  const bytes = observations.map(({ networks }) => networks.at(-1)?.ports[0]?.sent.bytes ?? 0);
  assert.deepEqual(
    bytes.map((each) => each - (bytes[0] ?? 0)),
    [0, 1, 2],
  );
});

test("a network that was applied during an observation is read again at the next", async () => {
  const { observe, broken, observer, spec } = createMachine(40);
  await observe();
  broken.add(12);
  const half = observe();
  observer.know(spec(12), "1");
  await half;
  broken.clear();
  const { visits, missing } = await observe();
  assert.deepEqual([visits, missing], [9, []]);
});

test("an observation of one network reads only that one", async () => {
  const { observer, broken } = createMachine(40);
  broken.add(7);
  const { networks } = await observer.observe(7);
  assert.deepEqual(
    networks.map(({ id, missing }) => [id, missing]),
    [[7, ["firewall", "lock"]]],
  );
});

test("an observation of a network without a namespace queries no tunnels", async () => {
  const queried: (string | undefined)[] = [];
  const engine: TunnelEngine = {
    apply: async () => {},
    remove: async () => {},
    async observe(namespace) {
      queried.push(namespace);
      return new Map();
    },
    close: () => {},
  };
  const { observer, spec } = createMachine(2, [engine]);
  observer.know(spec(3), "1");
  const { networks } = await observer.observe(3);
  assert.deepEqual(
    networks.map(({ id, missing }) => [id, missing]),
    [[3, ["namespace"]]],
  );
  assert.deepEqual(queried, []);
  await observer.observe(2);
  await observer.observe();
  assert.deepEqual(queried, [namespaceOf(tag, 2), undefined]);
});
