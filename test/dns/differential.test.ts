/**
 * Brume's name server and Knot serve the same zones, and the test queries every name with every type. Where the RFCs define the response,
 * both must return the same one. Deliberate differences are not compared; a comment below gives each of them.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createBuiltin } from "../../service/src/drivers/nameserver/builtin/builtin.ts";
import type { Nameserver, RecordSet, ZoneChange } from "../../service/src/drivers/nameserver/interface.ts";
import { type Decoded, type DnsClient, decode, openDnsClient, query } from "../support/dnsclient.ts";
import { runsOf } from "../support/random.ts";
import { image, set } from "../support/zone.ts";
import { type Knot, startKnot } from "./knot.ts";

const TYPES = { A: 1, NS: 2, CNAME: 5, SOA: 6, PTR: 12, MX: 15, TXT: 16, AAAA: 28, SRV: 33, DS: 43, HTTPS: 65 };
const LONG = `${"l".repeat(63)}.${"m".repeat(63)}.${"n".repeat(63)}`;
/** 255 bytes on the wire: the maximum. */
const LONGEST = `${LONG}.${"o".repeat(46)}.tricky.example`;

/** The cases that name servers implement wrong, in one zone. */
const tricky = image("tricky.example", 7, [
  set("tricky.example", "NS", "ns1.tricky.example", "ns.outside.test"),
  set("tricky.example", "MX", "10 mail.tricky.example", "20 mail.wild.tricky.example", "30 mx.outside.test"),
  set("tricky.example", "TXT", "apex"),
  set("ns1.tricky.example", "A", "192.0.2.1"),
  set("ns1.tricky.example", "AAAA", "2001:db8::1"),
  set("mail.tricky.example", "A", "192.0.2.2", "192.0.2.3"),
  set("*.wild.tricky.example", "A", "192.0.2.10"),
  set("*.wild.tricky.example", "MX", "5 mail.tricky.example"),
  set("exact.wild.tricky.example", "TXT", "here the wildcard does not count"),
  set("deep.ent.wild.tricky.example", "TXT", "makes ent.wild an empty non-terminal"),
  set("a.*.starent.tricky.example", "A", "192.0.2.11"),
  set("*.starcname.tricky.example", "CNAME", "mail.tricky.example"),
  set("*.starloop.tricky.example", "CNAME", "x.starloop.tricky.example"),
  set("*.*.double.tricky.example", "A", "192.0.2.12"),
  set("one.two.three.tricky.example", "A", "192.0.2.13"),
  set("glued.tricky.example", "NS", "ns.glued.tricky.example", "ns2.glued.tricky.example"),
  set("ns.glued.tricky.example", "A", "192.0.2.20"),
  set("ns2.glued.tricky.example", "AAAA", "2001:db8::20"),
  set("bare.tricky.example", "NS", "ns.outside.test"),
  set("sibling.tricky.example", "NS", "ns.glued.tricky.example", "ns1.tricky.example"),
  set("x.y.below.tricky.example", "NS", "ns.x.y.below.tricky.example"),
  set("ns.x.y.below.tricky.example", "A", "192.0.2.21"),
  set("alias.tricky.example", "CNAME", "mail.tricky.example"),
  set("chain1.tricky.example", "CNAME", "chain2.tricky.example"),
  set("chain2.tricky.example", "CNAME", "chain3.tricky.example"),
  set("chain3.tricky.example", "CNAME", "mail.tricky.example"),
  set("loop1.tricky.example", "CNAME", "loop2.tricky.example"),
  set("loop2.tricky.example", "CNAME", "loop1.tricky.example"),
  set("out.tricky.example", "CNAME", "www.outside.test"),
  set("dangling.tricky.example", "CNAME", "nothing.tricky.example"),
  set("towild.tricky.example", "CNAME", "some.wild.tricky.example"),
  set("toent.tricky.example", "CNAME", "two.three.tricky.example"),
  set("tocut.tricky.example", "CNAME", "www.glued.tricky.example"),
  set("toapex.tricky.example", "CNAME", "tricky.example"),
  set("_sip._tcp.tricky.example", "SRV", "1 2 5060 mail.tricky.example", "2 2 5060 ns.glued.tricky.example"),
  set("_none._tcp.tricky.example", "SRV", "0 0 0 "),
  set("nomail.tricky.example", "MX", "0 "),
  set("_acme-challenge.tricky.example", "TXT", "token", 'other "quoted\\ token'),
  set("long.tricky.example", "TXT", "x".repeat(700)),
  set(LONGEST, "A", "192.0.2.30"),
  set(`a.${"z".repeat(63)}.tricky.example`, "A", "192.0.2.31"),
  set("*.tricky.example", "TXT", "the wildcard at the top"),
]);

/** Random zones with few labels, so that names, wildcards, delegations and empty non-terminals often conflict. */
function randomZone(zone: string, seed: number): ZoneChange {
  let state = seed;
  const below = (n: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  const pick = <T>(items: readonly T[]): T => items[below(items.length)] as T;
  const labels = ["a", "b", "*", "c", "_x", "d"];
  const name = (): string => [...Array.from({ length: 1 + below(3) }, () => pick(labels)), zone].join(".");
  const owners = new Map<string, RecordSet[]>();
  const cuts: string[] = [];
  for (let i = 0; i < 24; i++) {
    const owner = name();
    const sets = owners.get(owner) ?? [];
    owners.set(owner, sets);
    const type = pick(["A", "A", "AAAA", "TXT", "MX", "SRV", "CNAME", "NS"] as const);
    const taken = sets.some((there) => [type, "CNAME", "NS"].includes(there.type.name));
    if (taken || (sets.length > 0 && (type === "CNAME" || type === "NS"))) continue;
    // Delegated wildcards are left out, because RFC 4592 section 4.2 does not define them.
    if (type === "NS" && owner.includes("*")) continue;
    if (type === "NS") cuts.push(owner);
    const host = name().replaceAll("*", "e");
    const data = {
      A: `10.0.0.${i}`,
      AAAA: `2001:db8::${i}`,
      TXT: `t${i}`,
      MX: `${i} ${host}`,
      SRV: `0 0 ${i} ${host}`,
      CNAME: name(),
      NS: host,
    };
    sets.push(set(owner, type, data[type]));
  }
  const apex = [set(zone, "NS", `a.${zone}`, "ns.outside.test")];
  // Below a delegation only addresses (glue) are valid. A server may drop other records when it loads the zone, and Knot does.
  const visible = [...owners.values()].flat().filter(({ owner, type }) => {
    const hidden = cuts.some((cut) => owner.endsWith(`.${cut}`));
    return !hidden || (["A", "AAAA"].includes(type.name) && !owner.includes("*"));
  });
  return image(zone, 1 + seed, [...apex, ...visible]);
}

const zones = [tricky, ...Array.from({ length: runsOf(40, 12) }, (_, i) => randomZone(`r${i}.example`, i * 7919 + 1))];

let ours: Nameserver;
let knot: Knot;
let askers: [DnsClient, DnsClient];

before(async () => {
  ours = await createBuiltin({
    host: "127.0.0.1",
    port: 0,
    rateLimit: 0,
    transfer: { addresses: [], keys: [], notify: [] },
    log: () => {},
  });
  await ours.publish(zones);
  knot = await startKnot(zones);
  askers = [await openDnsClient((await ours.observe()).address), await openDnsClient(knot.address)];
});

after(async () => {
  for (const dnsClient of askers ?? []) dnsClient.close();
  await ours?.close();
  await knot?.close();
});

/** Returns all owners and their parents, and siblings and children that do not exist. */
function namesOf({ zone, sets }: ZoneChange): string[] {
  const names = new Set<string>([zone, `nothing.${zone}`]);
  const add = (name: string): void => {
    if (name.length <= 253) names.add(name);
  };
  for (const { owner } of sets) {
    for (let name = owner; name.length >= zone.length; name = name.slice(name.indexOf(".") + 1)) {
      add(name);
      add(`nothing.${name}`);
      add(`*.${name}`);
      add(`two.down.${name}`);
      add(name.replace(/\*/g, "star"));
      if (name === zone) break;
    }
  }
  return [...names].filter((name) => name.endsWith(zone));
}

const texts = (records: readonly Decoded[]): string[] => {
  const lines = records
    .filter(({ type }) => type !== "OPT")
    .map(({ name, type, ttl, data }) =>
      `${name} ${ttl} ${type} ${JSON.stringify(data, (_, value: unknown) => (Buffer.isBuffer(value) ? value.toString("latin1") : value))}`.toLowerCase(),
    );
  return [...new Set(lines)].sort();
};

function comparable(bytes: Buffer | null): object | null {
  if (bytes === null) return null;
  const { rcode, flag_aa, flag_tc, answers, authorities, additionals } = decode(bytes);
  return {
    rcode,
    aa: flag_aa,
    tc: flag_tc,
    answer: texts(answers),
    authority: texts(authorities),
    additional: texts(additionals),
  };
}

async function compare(name: string, type: number, edns: number): Promise<[object | null, object | null]> {
  const packet = query(name, type, { edns });
  const [a, b] = await Promise.all(askers.map((asker) => asker.exchange(packet)));
  return [comparable(a ?? null), comparable(b ?? null)];
}

for (const zone of zones) {
  test(`${zone.zone} is served as by Knot`, async () => {
    const names = namesOf(zone);
    let compared = 0;
    for (const name of names) {
      const results = await Promise.all(
        Object.entries(TYPES).map(async ([label, type]) => ({ label, pair: await compare(name, type, 1232) })),
      );
      for (const { label, pair } of results) {
        assert.notEqual(pair[1], null, `Knot does not respond to ${name} ${label}`);
        assert.deepEqual(pair[0], pair[1], `${name} ${label}`);
        compared++;
      }
    }
    assert.equal(compared, names.length * Object.keys(TYPES).length);
  });
}
