import assert from "node:assert/strict";
import { test } from "node:test";
import { recordSpecs } from "@brume/api/record/types.ts";
import type { ZoneChange } from "../interface.ts";
import { nameOf } from "../wire/name.ts";
import { applyBatch, createBatch } from "./change.ts";
import { entriesOf, snapshotOf } from "./table.ts";
import { createZones } from "./zones.ts";

const soa = { mname: "ns.a", rname: "h.a", ttl: 60, refresh: 1, retry: 2, expire: 3, minimum: 4 };

const image = (zone: string, sets: number): ZoneChange => ({
  zone,
  base: null,
  serial: 1,
  soa,
  sets: Array.from({ length: sets }, (_, i) => ({
    owner: `n${i}.${zone}`,
    type: recordSpecs.A,
    ttl: 60,
    data: [["192.0.2.1"]],
  })),
});

test("loading a large zone yields to other work, and replaces the zone at once", () => {
  const zones = createZones();
  const batch = createBatch();
  batch.add([image("example.com", 5000)]);
  let pauses = 0;
  for (const _ of applyBatch(zones, batch.take(), [])) {
    const zone = zones.get(nameOf("example.com"));
    assert.ok(zone === undefined || zone.owners === 5000);
    pauses++;
  }
  assert.ok(pauses > 10);
  assert.equal(zones.get(nameOf("example.com"))?.owners, 5000);
});

test("a large zone is encoded with yields, to the same bytes", () => {
  const [atOnce, inTurns] = [createBatch(), createBatch()];
  atOnce.add([image("example.com", 5000)]);
  let yields = 0;
  for (const _ of inTurns.addInTurns([image("example.com", 5000)])) yields++;
  assert.ok(yields > 10, `${yields} yields`);
  assert.deepEqual(Buffer.from(inTurns.take()), Buffer.from(atOnce.take()));
});

test("an amendment of any size is applied without a pause inside", () => {
  const zones = createZones();
  const batch = createBatch();
  batch.add([image("example.com", 0), { ...image("example.com", 5000), base: 1, serial: 2 }]);
  for (const _ of applyBatch(zones, batch.take(), [])) {
    assert.ok([0, 5000].includes(zones.get(nameOf("example.com"))?.owners ?? 0));
  }
});

test("a change that does not apply is skipped completely, and the next ones apply", () => {
  const zones = createZones();
  const batch = createBatch();
  const served: number[] = [];
  const changed: string[] = [];
  batch.add([{ ...image("a.test", 300), base: 5 }, image("b.test", 3), image("b.test", 9), image("c.test", 1)]);
  for (const _ of applyBatch(zones, batch.take(), served, (zone) => changed.push(zone.name))) continue;
  assert.deepEqual(served, [0, 1, 1, 1]);
  assert.deepEqual(changed, [nameOf("b.test"), nameOf("c.test")]);
  assert.equal(zones.get(nameOf("b.test"))?.owners, 3);
});

test("the root can be a zone", () => {
  const zones = createZones();
  const batch = createBatch();
  const sets = [
    { owner: "", type: recordSpecs.NS, ttl: 1, data: [["ns"]] },
    { owner: "ns", type: recordSpecs.A, ttl: 1, data: [["192.0.2.1"]] },
  ];
  batch.add([{ zone: "", base: null, serial: 1, soa, sets }]);
  for (const _ of applyBatch(zones, batch.take(), [])) continue;
  assert.equal(zones.find(nameOf("anything.at.all"))?.name, "");
  const root = zones.get("");
  assert.ok(root !== undefined);
  assert.deepEqual(
    [...entriesOf(snapshotOf(root.table, root.generation))].map(([owner]) => owner),
    ["", nameOf("ns")],
  );
});
