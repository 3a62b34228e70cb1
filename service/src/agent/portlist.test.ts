import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { NetworkSpec, Port } from "../drivers/router/interface.ts";
import type { PortList, PortRow } from "./contract/router.ts";
import { AgentError } from "./error.ts";
import { createKeptPorts, createSentPorts } from "./portlist.ts";

const port = (id: number, bandwidth: number | null = null): Port => ({
  id,
  device: `vm${id}`,
  mac: `02:42:00:00:00:${String(id).padStart(2, "0")}`,
  addresses: [`10.0.0.${id}`],
  bandwidth,
  name: `server-${id}`,
});
const fromRow = ([id, mac, addresses, bandwidth, name]: PortRow): Port => ({
  id,
  device: `vm${id}`,
  mac,
  addresses,
  bandwidth,
  name,
});
const spec = (ports: readonly Port[], id = 7): NetworkSpec => ({ id, ports }) as NetworkSpec;
const rowsOf = (list: PortList): number => (Array.isArray(list) ? list : list.rows).length;

test("only the ports that changed are sent, and the agent has all of them", async () => {
  const sent = createSentPorts();
  const kept = createKeptPorts();
  let got: readonly Port[] = [];
  const lengths: number[] = [];
  const apply = (ports: readonly Port[]) =>
    sent.apply(spec(ports), async (list) => {
      lengths.push(rowsOf(list));
      got = kept(7, structuredClone(list), fromRow);
      return 1;
    });
  const lists = [
    [port(1), port(2), port(3)],
    [port(1), port(2, 100), port(3)],
    [port(2, 100), port(3), port(4)],
    [port(2, 100), port(3), port(4)],
    // Another order: all are sent.
    [port(4), port(2, 100), port(3)],
    [],
  ];
  for (const ports of lists) {
    await apply(ports);
    assert.deepEqual(got, ports);
  }
  assert.deepEqual(lengths, [3, 1, 1, 0, 3, 0]);
});

test("after lost requests and responses, restarts and other control planes, the agent has what was sent last", async () => {
  const ids = fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.constantFrom(null, 1, 2)), {
    selector: ([id]) => id,
  });
  const step = fc.record({
    ports: ids,
    client: fc.nat(1),
    network: fc.constantFrom(7, 8),
    error: fc.constantFrom("none", "none", "request lost", "response lost", "restart"),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const clients = [createSentPorts(), createSentPorts()];
      // So few ports that the lists of one network displace those of the other.
      let kept = createKeptPorts(8);
      for (const { ports, client, network, error } of steps) {
        if (error === "restart") kept = createKeptPorts(8);
        const wanted = ports.map(([id, bandwidth]) => port(id, bandwidth));
        let got: readonly Port[] | null = null;
        const away = new AgentError("away", "the host agent does not respond");
        const applied = clients[client]?.apply(spec(wanted, network), async (list) => {
          if (error === "request lost") throw away;
          got = kept(network, structuredClone(list), fromRow);
          if (error === "response lost") throw away;
          return 1;
        });
        if (error.endsWith("lost")) await assert.rejects(applied ?? Promise.resolve(), /does not respond/);
        else await applied;
        if (error !== "request lost") assert.deepEqual(got, wanted);
      }
    }),
  );
});

test("an agent that knows no keys gets rows, and its refusal of them is passed on", async () => {
  const sent = createSentPorts();
  const old = async (list: PortList): Promise<number> => {
    if (!Array.isArray(list)) throw new AgentError("input_invalid", "spec/ports must be array");
    return list.length;
  };
  assert.equal(await sent.apply(spec([port(1), port(2)]), old), 2);
  assert.equal(await sent.apply(spec([port(1)]), old), 1);
  const refuse = () => Promise.reject(new AgentError("input_invalid", "spec/mtu must be >= 576"));
  await assert.rejects(sent.apply(spec([port(1)]), refuse), /mtu/);
});

test("networks without ports are forgotten too", () => {
  const kept = createKeptPorts(8);
  const key = crypto.randomUUID();
  for (let network = 1; network <= 9; network++) kept(network, { key, from: null, rows: [], removed: [] }, fromRow);
  const repeat = (network: number) => kept(network, { key, from: key, rows: [], removed: [] }, fromRow);
  assert.deepEqual(repeat(9), []);
  assert.throws(() => repeat(1), { code: "ports_unknown" });
});

test("a list that grows beyond the limit is refused", () => {
  const kept = createKeptPorts();
  const row = (id: number): PortRow => [id, "02:42:00:00:00:01", [], null, "a"];
  const rows = Array.from({ length: 65_536 }, (_, at) => row(at + 1));
  const [key, next] = [crypto.randomUUID(), crypto.randomUUID()];
  kept(7, { key, from: null, rows, removed: [] }, fromRow);
  assert.throws(() => kept(7, { key: next, from: key, rows: [row(70_000)], removed: [] }, fromRow), /more than 65536/);
  assert.equal(kept(7, { key: next, from: key, rows: [row(70_000)], removed: [1] }, fromRow).length, 65_536);
});
