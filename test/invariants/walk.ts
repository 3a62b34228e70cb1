/**
 * Random changes of one domain. After every step the API, the responses, the serial and the name server (UDP and TCP) must agree. The same
 * seed gives the same changes.
 */
import assert from "node:assert/strict";
import { ApiError, type Client } from "@brume/api/client.ts";
import {
  type ChangeInput,
  type DnsRecord,
  type Domain,
  type RecordFields,
  type RecordType,
  recordTypes,
} from "@brume/api/dns.ts";
import { type Decoded, type DnsClient, decode, openDnsClient, query } from "../support/dnsclient.ts";
import { openStream, type Stream } from "../support/dnstools.ts";
import type { Random } from "../support/random.ts";

export interface Walk {
  /** Makes one random change; resolves to its kind and whether it was accepted. */
  step(): Promise<{ readonly kind: string; readonly taken: boolean }>;
  /** Asserts that the name server serves exactly the records of the domain. */
  checkAll(): Promise<void>;
  close(): void;
}

const typeNumbers: Record<RecordType | "SOA", number> = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
};

/** Few names and values, so that they meet: most of what can be refused is refused on the way. */
const owners = ["@", "a", "b", "a.b", "x.cut", "*", "*.b", "ж", "_tcp.a"];
const targets = ["a", "mail.example.net", "@", "b.example.org."];

/** The name at which a record is served. */
function servedName(record: DnsRecord, zone: string): string {
  const owner = record.PunyName === "@" ? zone : record.PunyName.slice(0, -1);
  return record.TypeRecord === "SRV" ? `${record.Service}_${record.Proto}.${owner}` : owner;
}

const plain = (name: string, zone: string): string =>
  name === "@" ? zone : name === "." ? "." : name.replace(/\.$/, "");

/** Data of a record in a DNS response. */
const served: Readonly<Record<RecordType, (record: DnsRecord, zone: string) => string>> = {
  A: ({ IP }) => IP,
  AAAA: ({ IP }) => IP,
  CNAME: ({ HostName }, zone) => plain(HostName, zone),
  NS: ({ ExtHostName }, zone) => plain(ExtHostName, zone),
  MX: ({ Priority, ExtHostName }, zone) => `${Priority} ${plain(ExtHostName, zone)}`,
  SRV: ({ Priority, Weight, Port, Target }, zone) => `${Priority} ${Weight} ${Port} ${plain(Target, zone)}`,
  TXT: ({ Text }) => Text.replace(/^"|" $/g, "").replaceAll('" "', ""),
};
const servedData = (record: DnsRecord, zone: string): string => served[record.TypeRecord](record, zone);

function receivedData({ type, data }: Decoded): string {
  if (type === "MX")
    return Object.values(data as object)
      .slice(0, 2)
      .join(" ");
  if (type === "SRV") {
    const { priority, weight, port, target } = data as Record<string, string | number>;
    return [priority, weight, port, target].join(" ");
  }
  return type === "TXT" ? Buffer.concat(data as Buffer[]).toString() : String(data);
}

/** Everything visible about a record: two that print alike are alike to DNS. */
const visible = (record: DnsRecord): string => `${record.ID} ${record.CanonicalDescription}`;
const linesOf = (domain: Domain): string[] => domain.LinkedRecords.map((record) => record.CanonicalDescription).sort();

export async function openWalk(client: Client, dns: string, domain: Domain, random: Random): Promise<Walk> {
  const { below, chance, pick } = random;
  const udp: DnsClient = await openDnsClient(dns);
  const tcp: Stream = await openStream(dns);
  const path = { id: domain.ID };
  const zone = domain.NamePunyCode;
  /** Content of the domain at each serial. */
  const past = new Map<number, string[]>();
  let now = domain;
  past.set(now.Serial, linesOf(now));

  const owner = () => pick(owners);
  const anyFields: Readonly<Record<RecordType, () => RecordFields>> = {
    A: () => ({ Name: owner(), IP: `192.0.2.${1 + below(4)}` }),
    AAAA: () => ({ Name: owner(), IP: `2001:db8::${1 + below(3)}` }),
    CNAME: () => ({ MnemonicName: owner(), Name: pick(targets) }),
    MX: () => ({ Name: owner(), HostName: pick(targets), Priority: below(3) * 10 }),
    NS: () => ({ HostName: pick(["cut", "cut", "@", "b"]), Name: pick(["ns1.example.net", "ns2.example.net"]) }),
    SRV: () => ({ Name: owner(), Service: pick(["sip", "xmpp"]), Proto: "tcp", Port: below(3), Target: pick(targets) }),
    TXT: () => ({ Name: owner(), Text: pick(["a", "b", "ж", "x".repeat(300)]) }),
  };
  const fieldsOf = (type: RecordType): RecordFields => ({ ...anyFields[type](), TTL: pick([60, 300, 3600]) });

  const anyType = () => pick(recordTypes);
  /** Returns a random part of the fields of a new record, as an edit. */
  const editOf = (type: RecordType): RecordFields =>
    Object.fromEntries(Object.entries(fieldsOf(type)).filter(() => chance(50)));

  function anyChange(): ChangeInput {
    const record = now.LinkedRecords[below(now.LinkedRecords.length)];
    const kind = below(4);
    if (record === undefined || kind < 2) {
      const type = anyType();
      return { Op: "Create", TypeRecord: type, ...fieldsOf(type) };
    }
    if (kind === 2) return { Op: "Update", ID: record.ID, ...editOf(record.TypeRecord) };
    return { Op: "Delete", ID: record.ID };
  }

  /** Each makes one change, and returns a function that checks the domain after it. */
  const kinds: Readonly<Record<string, () => Promise<((after: Domain) => void) | undefined>>> = {
    async create() {
      const type = anyType();
      const body = { DomainId: domain.ID, ...fieldsOf(type) };
      const made = await client[`createRecord${type}`]({ body });
      return (after: Domain) =>
        assert.deepEqual(
          after.LinkedRecords.find(({ ID }) => ID === made.ID),
          made,
        );
    },
    async update() {
      const record = now.LinkedRecords[below(now.LinkedRecords.length)];
      if (record === undefined) return undefined;
      const made = await client[`updateRecord${record.TypeRecord}`]({
        path: { id: record.ID },
        body: editOf(record.TypeRecord),
      });
      return (after: Domain) =>
        assert.deepEqual(
          after.LinkedRecords.find(({ ID }) => ID === record.ID),
          made,
        );
    },
    async delete() {
      const record = now.LinkedRecords[below(now.LinkedRecords.length)];
      if (record === undefined) return undefined;
      await client.deleteRecord({ path: { domainid: domain.ID, recordId: record.ID } });
      return (after: Domain) => assert.ok(after.LinkedRecords.every(({ ID }) => ID !== record.ID));
    },
    async changeset() {
      const Changes = Array.from({ length: 1 + below(5) }, anyChange);
      const made = await client.changeRecords({ path, body: { Changes } });
      return (after: Domain) => {
        assert.equal(after.Serial, made.Serial);
        for (const { Op, Before, After } of made.Records) {
          const shown = after.LinkedRecords.find(({ ID }) => ID === (After ?? Before)?.ID);
          assert.deepEqual(shown, After ?? undefined, Op);
        }
      };
    },
    async zonefile() {
      const text = await client.text("readDomain", { path });
      const kept = text.split("\n").filter(() => chance(80));
      const added = Array.from({ length: below(3) }, () =>
        `${pick(owners)} 60 TXT ${pick(["a", "b"])}`.replace(/^ж/, "xn--f1a"),
      );
      const ZoneFile = [`$ORIGIN ${zone}.`, ...kept, ...added, ""].join("\n");
      await client.importZone({ path, body: { ZoneFile, Mode: pick(["Merge", "Replace"]) } });
      return undefined;
    },
    async restore() {
      const Serial = pick([...past.keys()]);
      await client.restoreVersion({ path, body: { Serial } });
      return (after: Domain) => assert.deepEqual(linesOf(after), past.get(Serial));
    },
  };
  const weights = [
    "create",
    "create",
    "create",
    "update",
    "update",
    "delete",
    "changeset",
    "changeset",
    "zonefile",
    "restore",
  ];

  async function resolve(name: string, type: RecordType | "SOA") {
    const bytes = query(name, typeNumbers[type]);
    tcp.write(bytes);
    const [short, long] = [await udp.exchange(bytes), await tcp.next()];
    assert.ok(short && long, `no answer for ${name} ${type}`);
    return [decode(short), decode(long)] as const;
  }

  async function assertServed(name: string, type: RecordType): Promise<void> {
    const set = now.LinkedRecords.filter((one) => one.TypeRecord === type && servedName(one, zone) === name);
    const ttl = Math.min(...set.map(({ TTL }) => TTL));
    const wanted = set.map((one) => `${ttl} ${servedData(one, zone)}`).sort();
    const isCut = type === "NS" && name !== zone;
    const cuts = now.LinkedRecords.filter((one) => one.TypeRecord === "NS" && one.PunyName !== "@").map((one) =>
      one.PunyName.slice(0, -1),
    );
    // Below and at a cut addresses are glue, which is not answered for.
    if (!isCut && cuts.some((cut) => name === cut || name.endsWith(`.${cut}`))) return;
    // Where there is nothing of its own, a wildcard, an alias or the automatic set may answer.
    if (wanted.length === 0) return;
    const response = await resolve(name, type);
    // What is too long for UDP is cut there, and comes by TCP.
    for (const packet of response.filter(({ flag_tc }) => !flag_tc)) {
      const section = isCut ? packet.authorities : packet.answers;
      const found = section.filter((one) => one.type === type && one.name.toLowerCase() === name);
      assert.deepEqual(found.map((one) => `${one.ttl} ${receivedData(one)}`).sort(), wanted, `${name} ${type}`);
    }
  }

  async function assertNotServed(record: DnsRecord): Promise<void> {
    const name = servedName(record, zone);
    for (const packet of await resolve(name, record.TypeRecord)) {
      const found = packet.answers.filter((one) => one.type === record.TypeRecord && one.name.toLowerCase() === name);
      const data = found.map(receivedData);
      // A wildcard may produce the same data for the deleted name.
      const stored = now.LinkedRecords.map((one) => servedData(one, zone));
      if (data.includes(servedData(record, zone)))
        assert.ok(stored.includes(servedData(record, zone)), `${name} is still served`);
    }
  }

  async function assertSerial(): Promise<void> {
    for (const packet of await resolve(zone, "SOA"))
      assert.equal((packet.answers[0]?.data as { serial: number } | undefined)?.serial, now.Serial);
  }

  /** docs/spec.md#stored-records-are-valid-dns, implemented independently of the service. */
  function assertRules({ LinkedRecords }: Domain): void {
    const seen = new Set<string>();
    for (const one of LinkedRecords) {
      const name = servedName(one, zone);
      const description = `${one.TypeRecord} ${name} ${servedData(one, zone)}`;
      assert.ok(!seen.has(description), `${description} is stored twice`);
      seen.add(description);
      assert.ok(name.length <= 253);
      const beside = LinkedRecords.filter((other) => other !== one && servedName(other, zone) === name);
      if (one.TypeRecord === "CNAME") assert.ok(beside.length === 0 && name !== zone, `${description} is not alone`);
      if (one.TypeRecord !== "NS" || name === zone) continue;
      for (const other of LinkedRecords) {
        const where = servedName(other, zone);
        const allowed = where === name ? ["NS", "A", "AAAA"] : where.endsWith(`.${name}`) ? ["A", "AAAA"] : recordTypes;
        assert.ok(
          (allowed as readonly string[]).includes(other.TypeRecord),
          `${other.TypeRecord} at ${where} under ${name}`,
        );
      }
    }
  }

  return {
    async step() {
      const kind = pick(weights);
      const before = now;
      let hold: ((after: Domain) => void) | undefined;
      let taken = true;
      try {
        hold = await kinds[kind]?.();
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 400) throw error;
        taken = false;
      }
      now = await client.readDomain({ path });
      if (!taken) assert.deepEqual(now, before, "what is refused changes nothing");
      hold?.(now);
      const was = new Set(before.LinkedRecords.map(visible));
      const is = new Set(now.LinkedRecords.map(visible));
      const added = now.LinkedRecords.filter((record) => !was.has(visible(record)));
      const gone = before.LinkedRecords.filter((record) => !is.has(visible(record)));
      if (added.length + gone.length > 0)
        assert.ok(now.Serial > before.Serial, "the serial grows with every visible change");
      else assert.equal(now.Serial, before.Serial, "and only then");
      past.set(now.Serial, linesOf(now));
      assertRules(now);
      await assertSerial();
      for (const record of added) await assertServed(servedName(record, zone), record.TypeRecord);
      for (const record of gone) await assertNotServed(record);
      return { kind, taken };
    },
    async checkAll() {
      for (const record of now.LinkedRecords) {
        assert.equal(record.State, "Active");
        await assertServed(servedName(record, zone), record.TypeRecord);
      }
    },
    close() {
      udp.close();
      tcp.socket.destroy();
    },
  };
}
