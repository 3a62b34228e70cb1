import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { nameOf } from "../wire/name.ts";
import { restoreZones, type SavedZones, saveZones } from "./saved.ts";
import { entriesOf, snapshotOf } from "./table.ts";
import { createZone, locate, putSet, TYPE, type Zone } from "./zone.ts";

const folder = mkdtempSync(join(tmpdir(), "brume-saved-"));
after(() => rmSync(folder, { recursive: true }));
const file = join(folder, "zones");
const authority = { serial: 7, ttl: 60, negativeTtl: 60, rdata: "\u0000\u00ffab" };

/** A packed set with one record. */
function packed(type: number, data: string): string {
  const header = Buffer.alloc(12);
  header.writeUInt16BE(type, 0);
  header.writeUInt32BE(data.length + 2, 6);
  header.writeUInt16BE(data.length & 0xffff, 10);
  return header.toString("latin1") + data;
}

function read(): SavedZones | null {
  const running = restoreZones(file, 99);
  for (;;) {
    const { done, value } = running.next();
    if (done === true) return value;
  }
}

const contents = ({ table, generation, ...zone }: Zone) => ({
  ...zone,
  counts: [],
  entries: new Map(entriesOf(snapshotOf(table, generation))),
});

const change = fc.record({
  name: fc.constantFrom("", "a", "b.a", "*.a", "c.b.a", "*", "d", "x.y.z", "*.x.y.z"),
  type: fc.constantFrom(TYPE.A, TYPE.NS, TYPE.TXT),
  data: fc.constantFrom("", "1", "x".repeat(300), "y".repeat(70_000)),
});

test("restored zones have the contents and the behaviour of the saved ones, also after more changes", async () => {
  const isEqual = async (before: readonly { name: string; type: number; data: string }[][], more: typeof before) => {
    const zones = before.map((changes, index) => {
      const zone = createZone(nameOf(`z${index}.example`), authority, [1], { group: index, identity: 9, seed: 3 });
      for (const { name, type, data } of changes) {
        zone.generation++;
        putSet(zone, nameOf(name), type, data === "" ? "" : packed(type, data));
      }
      return zone;
    });
    await saveZones(file, "mark", zones);
    const restored = read();
    assert.equal(restored?.mark, "mark");
    assert.deepEqual(restored.zones.map(contents), zones.map(contents));
    for (const [index, zone] of restored.zones.entries()) {
      const original = zones[index] as Zone;
      for (const { name, type, data } of more[index] ?? [])
        for (const each of [zone, original]) {
          each.generation++;
          putSet(each, nameOf(name), type, data === "" ? "" : packed(type, data));
        }
      assert.deepEqual(contents(zone), contents(original));
      for (const name of ["a", "b.a", "q.a", "c.b.a", "y.z", "z", "q.x.y.z", "nothing"])
        assert.deepEqual(locate(zone, nameOf(name)), locate(original, nameOf(name)));
    }
  };
  const changes = fc.array(fc.array(change, { maxLength: 30 }), { maxLength: 4 });
  await fc.assert(fc.asyncProperty(changes, changes, isEqual), { numRuns: 60 });
});

test("a zone is saved as it was when its turn came, also while it changes", async () => {
  const zone = createZone(nameOf("large.example"), authority, [], { seed: 3 });
  const set = (name: string, data: string) =>
    putSet(zone, nameOf(name), TYPE.A, data === "" ? "" : packed(TYPE.A, data));
  for (let i = 0; i < 20_000; i++) set(`n${i}.sub${i % 7}`, "before");
  let before: unknown;
  const saving = saveZones(
    file,
    "",
    (function* () {
      before = contents(zone);
      yield zone;
    })(),
  );
  let isDone = false;
  const done = saving.finally(() => {
    isDone = true;
  });
  for (let i = 0; !isDone; i = (i + 1) % 20_000) {
    zone.generation++;
    set(`n${i}.sub${i % 7}`, i % 3 === 0 ? "" : "after");
    set(`new${i}`, "after");
    if (i % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await done;
  const [restored] = read()?.zones ?? [];
  assert.ok(restored !== undefined && zone.generation > restored.generation);
  assert.deepEqual(contents(restored), before);
});

test("a damaged, short, foreign or missing file counts as none", async () => {
  const zone = createZone(nameOf("example.com"), authority, [], { seed: 3 });
  for (let i = 0; i < 100; i++) putSet(zone, nameOf(`n${i}`), TYPE.A, packed(TYPE.A, "1234"));
  await saveZones(file, "mark", [zone]);
  const whole = readFileSync(file);
  assert.notEqual(read(), null);
  for (const at of [3, 20, 60, 400, 900, whole.length - 2]) {
    const damaged = Buffer.from(whole);
    damaged[at] = (damaged[at] as number) ^ 1;
    writeFileSync(file, damaged);
    assert.equal(read(), null, `byte ${at}`);
  }
  for (const size of [0, 3, 100, whole.length - 5, whole.length - 1]) {
    writeFileSync(file, whole);
    truncateSync(file, size);
    assert.equal(read(), null, `${size} bytes`);
  }
  rmSync(file);
  assert.equal(read(), null);
});
