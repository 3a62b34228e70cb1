/** Zones with many sets: they are encoded in slices, so that the event loop turns in between, and keep their order with other calls. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { createBuiltin } from "../../service/src/drivers/nameserver/builtin/builtin.ts";
import type { Nameserver, RecordSet } from "../../service/src/drivers/nameserver/interface.ts";
import { image, SOA, set } from "../support/zone.ts";

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
const setsOf = (zone: string, count: number): RecordSet[] =>
  range(count).map((index) => set(`n${index}.${zone}`, "A", "192.0.2.1"));

describe("long zones", () => {
  let server: Nameserver;
  beforeEach(async () => {
    const transfer = { addresses: [], keys: [], notify: [] };
    server = await createBuiltin({ host: "127.0.0.1", port: 0, rateLimit: 0, transfer, log: () => {} });
  });
  afterEach(() => server.close());

  test("are encoded in slices", async () => {
    let done = 0;
    let most = 0;
    let isOver = false;
    const count = (): void => {
      most = Math.max(most, done);
      done = 0;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const slow = { ...set("slow.large.test", "A", "192.0.2.1") };
    Object.defineProperty(slow, "ttl", {
      get() {
        for (const until = performance.now() + 3; performance.now() < until; );
        done += 1;
        return 300;
      },
    });
    const sets = setsOf("large.test", 12_800).map((one, index) => (index % 640 === 0 ? slow : one));
    assert.deepEqual(await server.publish([image("large.test", 1, sets)]), [1]);
    isOver = true;
    assert.ok(most <= 4, `${most} of 20 slow sets in one turn`);
  });

  test("keep their order with the calls before and after them", async () => {
    const large = (serial: number) => image("large.test", serial, setsOf("large.test", 20_000));
    const step = (base: number) => ({ zone: "large.test", base, serial: base + 1, soa: SOA, sets: [] });
    const served = await Promise.all([
      server.publish([image("large.test", 1, [])]),
      server.publish([step(1)]),
      server.publish([large(3)]),
      server.publish([step(3)]),
      server.withdraw("large.test", 4),
      server.publish([large(2)]),
      server.publish([step(2), image("other.test", 9, [])]),
      server.observe(),
    ]);
    assert.deepEqual(served.slice(0, -1), [[1], [2], [3], [4], undefined, [2], [3, 9]]);
    const { zones } = served.at(-1) as Awaited<ReturnType<Nameserver["observe"]>>;
    const serials = zones.map(({ zone, serial }) => `${zone} ${serial}`);
    assert.deepEqual(serials.sort(), ["large.test 3", "other.test 9"]);
  });

  test("that cannot be encoded reject their call only, and so does a closed server", async () => {
    const sets = setsOf("large.test", 5000);
    const broken = image("large.test", 1, [...sets, set("a.other.test", "A", "192.0.2.1")]);
    const [before, bad, after] = await Promise.allSettled([
      server.publish([image("one.test", 1, [])]),
      server.publish([broken]),
      server.publish([image("two.test", 1, [])]),
    ]);
    assert.deepEqual([before?.status, bad?.status, after?.status], ["fulfilled", "rejected", "fulfilled"]);
    assert.deepEqual((await server.observe()).zones.map(({ zone }) => zone).sort(), ["one.test", "two.test"]);
    const late = server.publish([image("large.test", 1, setsOf("large.test", 20_000))]);
    const closing = server.close();
    await assert.rejects(late, /closed/);
    await closing;
  });
});
