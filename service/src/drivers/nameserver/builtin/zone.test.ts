import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { labelStarts, nameOf } from "../wire/name.ts";
import { entriesOf, snapshotOf } from "./table.ts";
import { createZone, entryOf, findSet, isNewer, locate, putSet, TYPE, type Zone } from "./zone.ts";

const authority = { serial: 1, ttl: 60, negativeTtl: 60, rdata: "" };
const empty = (): Zone => createZone(nameOf("example.com"), authority, []);

/** A packed set with one record of one byte. */
const packed = (type: number, data: string): string =>
  `\0${String.fromCharCode(type)}\0\0\0\x3c\0\0\0\x03\0\x01${data}`;

const label = fc.constantFrom("a", "b", "c", "*", "_x");
const owner = fc.array(label, { maxLength: 4 }).map((labels) => nameOf(labels.join(".")));
const change = fc.record({
  owner,
  type: fc.constantFrom(TYPE.A, TYPE.TXT, TYPE.NS),
  data: fc.option(fc.constantFrom("1", "2"), { nil: null }),
});

const suffixes = (name: string): string[] => [...labelStarts(name).map((start) => name.substring(start)), ""];

test("a zone amended step by step is equal to the zone created from the result", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const zone = empty();
      const model = new Map<string, string>();
      for (const { owner, type, data } of changes) {
        putSet(zone, owner, type, data === null ? "" : packed(type, data));
        if (data === null) model.delete(`${type} ${owner}`);
        else model.set(`${type} ${owner}`, data);
      }
      const owners = new Set([...model.keys()].map((key) => key.slice(key.indexOf(" ") + 1)));
      const entries = new Map(entriesOf(snapshotOf(zone.table, zone.generation)));
      assert.deepEqual(new Set(entries.keys()), owners);
      assert.equal(zone.owners, owners.size);
      for (const [key, data] of model) {
        const at = key.indexOf(" ");
        const owner = key.slice(at + 1);
        const sets = entryOf(zone, owner)?.sets ?? "";
        assert.equal(entries.get(owner), sets);
        const start = findSet(sets, Number(key.slice(0, at)));
        assert.equal(sets.at(start + 12), data);
      }
      const existing = new Set([...owners].flatMap(suffixes));
      existing.add("");
      for (const name of [...existing, nameOf("no.such.name")]) {
        const expected = existing.has(name) ? (entries.get(name) ?? "") : undefined;
        if (zone.cuts === 0 && zone.stars === 0) assert.equal(locate(zone, name).sets, expected);
      }
      assert.equal(zone.stars, [...existing].filter((name) => name.startsWith("\x01*")).length);
      assert.equal(
        zone.cuts,
        [...model.keys()].filter((key) => key.startsWith(`${TYPE.NS} `) && key !== `${TYPE.NS} `).length,
      );
    }),
  );
});

test("lookup agrees with a simple implementation of RFC 4592", () => {
  fc.assert(
    fc.property(fc.array(owner, { maxLength: 12 }), owner, (owners, asked) => {
      const zone = empty();
      for (const name of owners) putSet(zone, name, TYPE.A, packed(TYPE.A, "1"));
      const existing = new Set(["", ...owners.flatMap(suffixes)]);
      const place = locate(zone, asked);
      assert.equal(place.cut, null);
      if (existing.has(asked)) {
        assert.deepEqual([place.sets, place.wildcard], [entryOf(zone, asked)?.sets ?? "", false]);
        return;
      }
      const encloser = suffixes(asked).find((name) => existing.has(name)) as string;
      const star = `\x01*${encloser}`;
      const expected = existing.has(star) ? (entryOf(zone, star)?.sets ?? "") : undefined;
      assert.deepEqual([place.sets, place.wildcard], [expected, existing.has(star)]);
    }),
  );
});

test("a cut hides everything below it and is found before any wildcard", () => {
  const zone = empty();
  putSet(zone, "", TYPE.NS, packed(TYPE.NS, "1"));
  putSet(zone, nameOf("cut"), TYPE.NS, packed(TYPE.NS, "1"));
  putSet(zone, nameOf("host.cut"), TYPE.A, packed(TYPE.A, "1"));
  putSet(zone, nameOf("*"), TYPE.A, packed(TYPE.A, "1"));
  for (const name of ["cut", "host.cut", "nothing.cut", "a.b.cut"])
    assert.equal(locate(zone, nameOf(name)).cut, nameOf("cut"));
  assert.equal(locate(zone, "").cut, null);
  assert.equal(locate(zone, nameOf("other")).wildcard, true);
});

test("serials compare modulo 2^32 (RFC 1982)", () => {
  for (const [a, b, newer] of [
    [2, 1, true],
    [1, 2, false],
    [1, 1, false],
    [0, 0xffffffff, true],
    [0xffffffff, 0, false],
    [0x7fffffff, 0, true],
    [0x80000000, 0, false],
  ] as const) {
    assert.equal(isNewer(a, b), newer, `${a} after ${b}`);
  }
});
