import assert from "node:assert/strict";
import { test } from "node:test";
import { recordSpecs } from "@brume/api/record/types.ts";
import { applyBatch, createBatch } from "../builtin/change.ts";
import { TYPE, type Zone } from "../builtin/zone.ts";
import { createZones, type Zones } from "../builtin/zones.ts";
import type { RecordSet } from "../interface.ts";
import { nameOf, textOf } from "../wire/name.ts";
import { resolve } from "./answer.ts";

const soa = { mname: "ns.a", rname: "h.a", ttl: 60, refresh: 1, retry: 2, expire: 3, minimum: 4 };

function zonesOf(...sets: RecordSet[]): Zones {
  return zonesFrom({ "example.com": sets });
}

function zonesFrom(images: Record<string, RecordSet[]>): Zones {
  const zones = createZones();
  const batch = createBatch();
  batch.add(Object.entries(images).map(([zone, sets]) => ({ zone, base: null, serial: 1, soa, sets })));
  for (const _ of applyBatch(zones, batch.take(), [])) continue;
  return zones;
}

const hosts = Array.from({ length: 2000 }, (_, i) => `m${i}.example.com`);
const addresses: RecordSet[] = hosts.map((owner) => ({ owner, type: recordSpecs.A, ttl: 60, data: [["192.0.2.1"]] }));

/** Counts how often a name is looked up in the zone. */
function countLookups(zone: Zone | undefined): () => number {
  assert.ok(zone !== undefined);
  const { table } = zone;
  const { directory } = table;
  let count = 0;
  Object.defineProperty(table, "directory", {
    get() {
      count++;
      return directory;
    },
  });
  return () => count;
}

test("addresses of thousands of targets are resolved one by one, only until the message is full", () => {
  const mail: RecordSet = {
    owner: "mail.example.com",
    type: recordSpecs.MX,
    ttl: 60,
    data: hosts.map((exchange) => [10, exchange]),
  };
  const cut: RecordSet = {
    owner: "cut.example.com",
    type: recordSpecs.NS,
    ttl: 60,
    data: hosts.map((target) => [target]),
  };
  const zones = zonesOf(mail, cut, ...addresses);
  const lookups = countLookups(zones.get(nameOf("example.com")));
  for (const [name, type] of [
    ["mail.example.com", TYPE.MX],
    ["www.cut.example.com", TYPE.A],
  ] as const) {
    const before = lookups();
    const { extra } = resolve(zones, nameOf(name), type);
    assert.ok(lookups() - before < 10, `${lookups() - before} look-ups for ${name} alone`);
    const taken = [...extra].map(({ owner }) => textOf(owner));
    assert.deepEqual(taken, hosts);
    assert.ok(lookups() - before < 2010);
  }
});

test("an address is added once, for any number of records that point to it", () => {
  const [owner = ""] = hosts;
  const priorities = [1, 2, 3].map((preference) => [preference, owner]);
  const zones = zonesOf({ owner: "mail.example.com", type: recordSpecs.MX, ttl: 60, data: priorities }, ...addresses);
  const { extra } = resolve(zones, nameOf("mail.example.com"), TYPE.MX);
  assert.deepEqual(
    [...extra].map((records) => textOf(records.owner)),
    [owner],
  );
});

test("addresses of a name in a child zone are not taken from its parent zones", () => {
  const hidden = "ns.deep.example.com";
  const nsName = "ns.example.com";
  const address = (owner: string): RecordSet => ({ owner, type: recordSpecs.A, ttl: 60, data: [["192.0.2.1"]] });
  const to = (owner: string): RecordSet => ({
    owner,
    type: recordSpecs.NS,
    ttl: 60,
    data: [[hidden], [nsName], ["mail.deep.example.com"]],
  });
  const zones = zonesFrom({
    "example.com": [
      to("example.com"),
      to("cut.example.com"),
      address(hidden),
      address(nsName),
      address("*.example.com"),
    ],
    "deep.example.com": [],
  });
  for (const name of ["example.com", "www.cut.example.com"]) {
    const { extra, glue } = resolve(zones, nameOf(name), TYPE.NS);
    assert.deepEqual(
      [...glue, ...extra].map(({ owner }) => textOf(owner)),
      [nsName],
      name,
    );
  }
});
