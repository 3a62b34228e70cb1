import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nameOf } from "../wire/name.ts";
import { entriesOf, snapshotOf } from "./table.ts";
import { createZone, entryOf, putSet, TYPE, type Zone } from "./zone.ts";

const authority = { serial: 1, ttl: 60, negativeTtl: 60, rdata: "" };
const empty = (seed = 7): Zone => createZone(nameOf("example.com"), authority, [], { seed });

/** A packed set with one record. */
function packed(type: number, data: string): string {
  const header = Buffer.alloc(12);
  header.writeUInt16BE(type, 0);
  header.writeUInt32BE(data.length + 2, 6);
  header.writeUInt16BE(data.length & 0xffff, 10);
  return header.toString("latin1") + data;
}

const entries = (zone: Zone): Map<string, string> => new Map(entriesOf(snapshotOf(zone.table, zone.generation)));
const used = (zone: Zone): number =>
  zone.table.chunks.reduce((sum, chunk) => sum + (chunk === undefined ? 0 : chunk.bytes.length), 0);

test("twenty thousand names are found, also after half of them were removed", () => {
  const zone = empty();
  const count = 20_000;
  for (let i = 0; i < count; i++) putSet(zone, nameOf(`n${i}`), TYPE.A, packed(TYPE.A, `${i}`));
  for (let i = 0; i < count; i += 2) putSet(zone, nameOf(`n${i}`), TYPE.A, "");
  assert.equal(zone.owners, count / 2);
  for (let i = 0; i < count; i++) {
    const found = entryOf(zone, nameOf(`n${i}`))?.sets;
    assert.equal(found, i % 2 === 0 ? undefined : packed(TYPE.A, `${i}`));
  }
  for (let i = 1; i < count; i += 2) putSet(zone, nameOf(`n${i}`), TYPE.A, "");
  assert.equal(zone.owners, 0);
  assert.ok(used(zone) < 1 << 20, `${used(zone)} bytes left`);
});

test("names that are changed again and again do not make the table grow", () => {
  const zone = empty();
  for (let i = 0; i < 200; i++) putSet(zone, nameOf(`n${i}`), TYPE.TXT, packed(TYPE.TXT, "x"));
  for (let round = 0; round < 100; round++)
    for (let i = 0; i < 200; i++) putSet(zone, nameOf(`n${i}`), TYPE.TXT, packed(TYPE.TXT, `${round}`));
  assert.ok(used(zone) <= 1 << 16, `${used(zone)} bytes`);
  assert.equal(entryOf(zone, nameOf("n7"))?.sets, packed(TYPE.TXT, "99"));
});

test("sets larger than a chunk are kept and released", () => {
  const zone = empty();
  for (const size of [60_000, 300_000, 700_000, 5]) {
    const data = "x".repeat(size);
    putSet(zone, nameOf("big"), TYPE.TXT, packed(TYPE.TXT, data));
    putSet(zone, nameOf(`n${size}`), TYPE.A, packed(TYPE.A, "1234"));
    assert.equal(entryOf(zone, nameOf("big"))?.sets, packed(TYPE.TXT, data));
  }
  assert.ok(used(zone) < 1 << 20);
});

const change = fc.record({
  name: fc.integer({ min: 0, max: 40 }),
  size: fc.option(fc.integer({ min: 0, max: 3000 }), { nil: null }),
});

test("a snapshot contains the names of its generation, also after later changes", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 80 }), fc.array(change, { maxLength: 200 }), (before, after) => {
      const zone = empty();
      const apply = ({ name, size }: { name: number; size: number | null }): void => {
        zone.generation++;
        putSet(zone, nameOf(`n${name}`), TYPE.TXT, size === null ? "" : packed(TYPE.TXT, "x".repeat(size)));
      };
      before.forEach(apply);
      const snapshot = snapshotOf(zone.table, zone.generation);
      const expected = entries(zone);
      after.forEach(apply);
      assert.deepEqual(new Map(entriesOf(snapshot)), expected);
      assert.equal([...entriesOf(snapshot)].length, expected.size);
    }),
  );
});
