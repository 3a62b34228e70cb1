/**
 * What other programs must receive unchanged: letter case, boundaries of strings, TTL 0, escapes and empty targets. Knot is a secondary of
 * Brume's name server, and another Knot loads the zone file that Brume prints. Then the test parses what each of them returns by AXFR.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fullZone } from "../../service/src/dns/apply.ts";
import { recordKey, type StoredRecord } from "../../service/src/dns/model/record.ts";
import { automaticSoa } from "../../service/src/dns/model/served.ts";
import { parseZone } from "../../service/src/dns/model/zonefile/parse.ts";
import { printZone } from "../../service/src/dns/model/zonefile/print.ts";
import type { Nameserver } from "../../service/src/drivers/nameserver/interface.ts";
import { openServer, run } from "../support/dnstools.ts";
import { freePort, type Knot, startKnot } from "./knot.ts";

const domain = "0/25.2.0.192.in-addr.arpa";
const nameServers = ["ns1.brume.internal"];
const serial = 7;
const soa = automaticSoa(domain, nameServers);

const file = [
  "@ 300 NS Ns.Own.net. ; brume: own",
  '@ 300 TXT "a=1" "b=2"',
  '@ 300 TXT ""',
  `@ 300 TXT "${"x".repeat(300)}"`,
  '@ 300 TXT "a=1b=2"',
  "1 0 CNAME 1.Host.Example.com.",
  "WWW 300 A 192.0.2.1",
  "www 300 TXT text",
  "Mixed.Deep 300 MX 10 Mail.Example.COM.",
  "nomail 300 MX 0 .",
  "_sip._tcp.none 300 SRV 0 0 0 .",
  "_sip._tcp 300 SRV 1 2 5060 Sip.Example.com.",
  "first\\.last 300 A 192.0.2.2",
  "\\032blank\\\\\\255 300 A 192.0.2.3",
  "to 300 CNAME a\\.b.example.com.",
].join("\n");

const { records } = parseZone(file, domain);
const printed = printZone({ ascii: domain, labels: "{}" }, soa, serial, nameServers, records);

let ours: Nameserver;
let address: string;
let folder: string;
const knots: Knot[] = [];

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "brume-exact-"));
  ours = await openServer({ transfer: { addresses: ["127.0.0.1"], keys: [], notify: [] } });
  ({ address } = await ours.observe());
  await ours.publish([fullZone({ id: 1, project_id: 1, ascii: domain, serial }, records, nameServers)]);
});

after(async () => {
  for (const knot of knots) await knot.close();
  await ours.close();
  await rm(folder, { recursive: true });
});

/** Starts a Knot with one zone, and waits until Knot serves it. */
async function openKnot(zone: string, more = ""): Promise<Knot> {
  const config = `${more}zone:\n  - domain: "${domain}."\n${zone}`;
  const knot = await startKnot([], [], { port: await freePort(), config });
  knots.push(knot);
  for (const end = Date.now() + 120_000; Date.now() < end; ) {
    if (/status: NOERROR/.test(await run("kdig", knot.address, domain, "SOA"))) return knot;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return assert.fail("the zone is not served");
}

async function transfer(server: string): Promise<string[]> {
  const text = await run("kdig", server, domain, "AXFR", "+noidn");
  return text.split("\n").filter((line) => /^[^;\s]\S*\s+\d+\s+IN\s/.test(line));
}

/** Parses the lines of a transfer. `fold`: names are compared in lower case, because Knot does not keep their letter case. */
function recordsOf(lines: readonly string[], fold: boolean): string[] {
  const marked = lines.map((line) => (/\sIN\s+NS\s/.test(line) ? `${line} ; brume: own` : line)).join("\n");
  return textsOf(parseZone(marked, domain).records, fold);
}

const textsOf = (list: readonly StoredRecord[], fold = false): string[] =>
  list
    .map((one) => JSON.stringify(fold ? [recordKey(one), one.ttl] : [one.type, one.owner, one.ttl, one.value]))
    .sort();

test("the zone file is parsed, and parsing the printed file gives the same records", () => {
  assert.equal(records.length, 15);
  assert.deepEqual(textsOf(parseZone(printed, domain).records), textsOf(records));
});

test("a transfer contains the same records", async () => {
  // A name has one spelling on the wire: that of its first record.
  const spelled = records.map((one) => (one.owner === "www" ? { ...one, owner: "WWW" } : one));
  assert.deepEqual(recordsOf(await transfer(address), false), textsOf(spelled));
});

test("Knot as a secondary has the same zone", async () => {
  const [host, port] = address.split(":");
  const remote = `remote:\n  - id: primary\n    address: ${host}@${port}\nacl:\n  - id: all\n    address: 127.0.0.1\n    action: transfer\n`;
  const knot = await openKnot(
    "    master: primary\n    acl: all\n    zonefile-sync: -1\n    zonefile-load: none\n",
    remote,
  );
  assert.deepEqual(recordsOf(await transfer(knot.address), true), textsOf(records, true));
});

test("Knot loads the printed zone file, and has the same zone", async () => {
  const path = join(folder, "printed.zone");
  await writeFile(path, printed);
  const acl = "acl:\n  - id: all\n    address: 127.0.0.1\n    action: transfer\n";
  const knot = await openKnot(`    file: ${path}\n    acl: all\n    semantic-checks: on\n`, acl);
  assert.deepEqual(recordsOf(await transfer(knot.address), true), textsOf(records, true));
});

test("kdig and dig show targets in their letter case, separate strings, and a TTL of 0", async () => {
  const dig = (...words: string[]) => run("kdig", address, "+noall", "+answer", ...words);
  assert.match(await dig(`1.${domain}`, "CNAME"), /\s0\s+IN\s+CNAME\s+1\.Host\.Example\.com\.$/m);
  assert.match(await dig(`mixed.deep.${domain}`, "MX"), /^Mixed\.Deep\..*\sMail\.Example\.COM\.$/m);
  assert.match(await dig(domain, "TXT"), /\sTXT\s+"a=1" "b=2"$/m);
  assert.match(await dig(domain, "TXT"), /\sTXT\s+""$/m);
  assert.match(await dig(`nomail.${domain}`, "MX"), /\sMX\s+0 \.$/m);
  assert.match(await dig(`first\\.last.${domain}`, "A"), /^first\\\.last\..*192\.0\.2\.2$/m);
});
