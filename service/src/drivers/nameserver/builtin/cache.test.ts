import assert from "node:assert/strict";
import { test } from "node:test";
import { parseQuery, type Query } from "../wire/message.ts";
import { nameOf } from "../wire/name.ts";
import { createCache, type Reply } from "./cache.ts";
import { createZone } from "./zone.ts";

const zone = createZone(nameOf("example.com"), { serial: 1, ttl: 1, negativeTtl: 1, rdata: "" }, []);

function queryFor(text: string, type = 1): [Buffer, Query] {
  const labels = text.split(".").map((label) => String.fromCharCode(label.length) + label);
  const packet = Buffer.from(
    `\0\0\0\0\0\x01\0\0\0\0\0\0${labels.join("")}\0\0${String.fromCharCode(type)}\0\x01`,
    "latin1",
  );
  return [packet, parseQuery(packet) as Query];
}

/** A reply that begins as its question, as all do, and ends with a text. */
function reply(packet: Buffer, text: string): Reply {
  return { message: Buffer.concat([packet, Buffer.from(text)]), zone, sameness: 0 };
}

const textOf = (found: Reply | undefined, packet: Buffer): string | undefined =>
  found?.message.toString("latin1", packet.length);

test("a response is found by name (in any letter case), type and variant", () => {
  const cache = createCache();
  const [packet, query] = queryFor("www.example.com");
  cache.put(query, 2, reply(packet, "it"));
  assert.equal(textOf(cache.get(packet, query, 2), packet), "it");
  assert.equal(textOf(cache.get(...queryFor("WWW.example.COM"), 2), packet), "it");
  assert.equal(cache.get(packet, query, 3), undefined);
  assert.equal(cache.get(...queryFor("www.example.com", 28), 2), undefined);
  assert.equal(cache.get(...queryFor("wwx.example.com"), 2), undefined);
});

test("a change of the zone and a clear remove an entry", () => {
  const cache = createCache();
  const [packet, query] = queryFor("www.example.com");
  cache.put(query, 0, reply(packet, "old"));
  zone.generation++;
  assert.equal(cache.get(packet, query, 0), undefined);
  cache.put(query, 0, reply(packet, "new"));
  assert.equal(textOf(cache.get(packet, query, 0), packet), "new");
  cache.clear();
  assert.equal(cache.get(packet, query, 0), undefined);
});

test("ten thousand names fit, and a million exceed no limit", () => {
  const cache = createCache();
  const fill = (count: number): number => {
    for (let i = 0; i < count; i++) {
      const [packet, query] = queryFor(`n${i}.example.com`);
      cache.put(query, 0, reply(packet, `${i}`));
    }
    let found = 0;
    for (let i = 0; i < count; i++) {
      const [packet, query] = queryFor(`n${i}.example.com`);
      const hit = cache.get(packet, query, 0);
      if (hit === undefined) continue;
      assert.equal(textOf(hit, packet), `${i}`);
      found++;
    }
    return found;
  };
  assert.ok(fill(10_000) > 9_900);
  assert.ok(fill(200_000) <= 1 << 15);
});
