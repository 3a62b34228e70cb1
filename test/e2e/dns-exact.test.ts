/**
 * Records are returned exactly as sent: separate TXT strings, letter case of names, escapes, a TTL of 0. Tested for single records,
 * changesets, history, restore, zone files and DNS responses.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DnsRecord } from "@brume/api/dns.ts";
import { onSqlite, refused } from "../support/harness.ts";

onSqlite("exact records", (harness) => {
  const fieldsOf = ({ TypeRecord, HostName, MnemonicName, ExtHostName, Text, Target, TTL, Labels }: DnsRecord) =>
    JSON.stringify([TypeRecord, MnemonicName, HostName, ExtHostName, Text, Target, TTL, Labels]);
  const read = (id: number) => harness.client.readDomain({ path: { id } });
  const erase = (id: number) => harness.client.deleteDomain({ path: { id } });
  const strings = (name: string) => harness.brume.resolver.resolveTxt(name);

  test("the strings of a TXT record stay separate", async () => {
    const { ID: DomainId, Name } = await harness.domain();
    const made = await harness.client.createRecordTXT({ body: { DomainId, Name: "a", Text: '"a=1" "b=2"' } });
    assert.equal(made.Text, '"a=1" "b=2" ');
    assert.match(made.CanonicalDescription, / IN TXT "a=1" "b=2"$/);
    assert.deepEqual(await strings(`a.${Name}`), [["a=1", "b=2"]]);
    const { Serial } = await read(DomainId);

    const path = { id: made.ID };
    await harness.client.updateRecordTXT({ path, body: { DomainId, Name: made.HostName, Text: made.Text } });
    assert.equal((await read(DomainId)).Serial, Serial, "what was read and sent back changes nothing");
    await refused(harness.client.createRecordTXT({ body: { DomainId, Name: "a", Text: made.Text } }), "record_exists");
    const joined = await harness.client.createRecordTXT({ body: { DomainId, Name: "a", Text: "a=1b=2" } });
    assert.equal(joined.Text, '"a=1b=2" ');
    const empty = await harness.client.createRecordTXT({ body: { DomainId, Name: "b", Text: '""' } });
    assert.equal(empty.Text, '"" ');
    assert.deepEqual(await strings(`b.${Name}`), [[""]]);

    const after = (await read(DomainId)).LinkedRecords.map(fieldsOf);
    const Changes = [{ Op: "Update" as const, ID: made.ID, Text: '"a=1b" "=2"' }];
    await harness.client.changeRecords({ path: { id: DomainId }, body: { Changes } });
    const sorted = (await strings(`a.${Name}`)).sort((one, other) => other.length - one.length);
    assert.deepEqual(sorted, [["a=1b", "=2"], ["a=1b=2"]]);
    const [version] = await harness.client.listVersions({ path: { id: DomainId }, query: { limit: 1 } });
    assert.equal(version?.Changes[0]?.Before?.Text, '"a=1" "b=2" ');
    const [, before] = await harness.client.listVersions({ path: { id: DomainId } });
    await harness.client.restoreVersion({ path: { id: DomainId }, body: { Serial: before?.Serial ?? 0 } });
    assert.deepEqual((await read(DomainId)).LinkedRecords.map(fieldsOf).sort(), after.sort());
    await erase(DomainId);
  });

  test("names keep their letter case, and are found and compared in any case", async () => {
    const { ID: DomainId, Name, Serial: first } = await harness.domain();
    const made = await harness.client.createRecordCNAME({
      body: { DomainId, MnemonicName: `WWW.${Name.toUpperCase()}`, Name: "Pages.Example.NET" },
    });
    assert.deepEqual([made.MnemonicName, made.HostName], [`WWW.${Name}.`, "Pages.Example.NET."]);
    assert.equal(made.PunyName, `WWW.${Name}.`);
    assert.deepEqual(await harness.lookUp(`www.${Name}`, "CNAME"), ["Pages.Example.NET"]);
    const again = { DomainId, MnemonicName: "www", Name: "pages.example.net" };
    await refused(harness.client.createRecordCNAME({ body: again }), "record_exists");
    await refused(harness.client.createRecordA({ body: { DomainId, Name: "wWw", IP: "192.0.2.1" } }), "cname_conflict");

    const { Serial } = await read(DomainId);
    assert.ok(Serial > first);
    const path = { id: made.ID };
    assert.deepEqual(await harness.client.updateRecordCNAME({ path, body: again }), made, "the spelling stays");
    assert.equal((await read(DomainId)).Serial, Serial);
    const other = { ...again, MnemonicName: "Www2" };
    const moved = await harness.client.updateRecordCNAME({ path, body: other });
    assert.deepEqual([moved.MnemonicName, moved.HostName], [`Www2.${Name}.`, "pages.example.net."]);
    assert.deepEqual(await harness.lookUp(`WWW2.${Name}`, "CNAME"), ["pages.example.net"]);

    const caller = await harness.as(["dns:write"], { DomainID: DomainId, RecordPattern: "_acme-challenge*" });
    const challenge = await caller.client.createRecordTXT({ body: { DomainId, Name: "_ACME-Challenge", Text: "x" } });
    assert.equal(challenge.HostName, `_ACME-Challenge.${Name}.`);
    const top = await harness.client.createRecordMX({ body: { DomainId, HostName: Name.toUpperCase() } });
    assert.equal(top.ExtHostName, `${Name.toUpperCase()}.`);
    await harness.client.updateRecordMX({ path: { id: top.ID }, body: { DomainId, ExtHostName: top.ExtHostName } });
    assert.equal((await harness.client.readRecord({ path: { id: top.ID } })).ExtHostName, `${Name.toUpperCase()}.`);
    await erase(DomainId);
  });

  test("a TTL of 0, escapes, slashes and empty targets are accepted", async () => {
    const { ID: DomainId } = await harness.client.createDomain({ body: { Name: "0/25.2.0.192.in-addr.arpa" } });
    const ptr = await harness.client.createRecordCNAME({
      body: { DomainId, MnemonicName: "1", Name: "1.0/26.2.0.192.in-addr.arpa", TTL: 0 },
    });
    assert.deepEqual([ptr.TTL, ptr.HostName], [0, "1.0/26.2.0.192.in-addr.arpa."]);
    assert.equal((await harness.client.updateRecordCNAME({ path: { id: ptr.ID }, body: {} })).TTL, 0);
    const dotted = await harness.client.createRecordA({ body: { DomainId, Name: "a\\.b\\032c", IP: "192.0.2.1" } });
    assert.equal(dotted.HostName, "a\\.b\\032c.0/25.2.0.192.in-addr.arpa.");
    const same = { DomainId, Name: dotted.HostName, IP: "192.0.2.1" };
    await refused(harness.client.createRecordA({ body: same }), "record_exists");
    await refused(harness.client.createRecordA({ body: { ...same, Name: "a\\" } }), "validation_failed", {
      "/Name": "format_invalid",
    });
    const none = await harness.client.createRecordMX({ body: { DomainId, Name: "none", HostName: ".", Priority: 0 } });
    assert.deepEqual([none.ExtHostName, none.Priority], [".", "0"]);
    // RFC 7505 section 3: a name without mail has no other MX.
    const mail = { DomainId, Name: "none", HostName: "mail.example.net", Priority: 10 };
    await refused(harness.client.createRecordMX({ body: mail }), "validation_failed", { "/Name": "fields_conflict" });
    await harness.client.createRecordSRV({ body: { DomainId, Service: "sip", Proto: "tcp", Port: 0, Target: "." } });
    const text = await harness.client.text("readDomain", { path: { id: DomainId } });
    const { ID } = await harness.client.createDomain({ body: { Name: "128/25.2.0.192.in-addr.arpa" } });
    const ZoneFile = text.replaceAll(" 0/25.2", " 128/25.2").replaceAll(/(^|\.)0\/25\.2/gm, "$1128/25.2");
    await harness.client.importZone({ path: { id: ID }, body: { ZoneFile } });
    assert.deepEqual(
      (await read(ID)).LinkedRecords.map((one) => fieldsOf(one).replaceAll("128/25", "0/25")).sort(),
      (await read(DomainId)).LinkedRecords.map(fieldsOf).sort(),
    );
    await erase(ID);
    await erase(DomainId);
  });

  test("labels of domain and records, and own NS records at the top, survive export and import", async () => {
    const ZoneFile = [
      "@ NS Ns.Own.net. ; brume: own team=dns",
      'a TXT "x" "y" ; brume: env=prod',
      "b A 192.0.2.1",
      "",
    ].join("\n");
    const Labels = { owner: "ops", empty: "" };
    const domain = await harness.domain({ ZoneFile, Labels });
    const path = { id: domain.ID };
    assert.deepEqual(
      domain.LinkedRecords.map(({ Labels }) => Labels),
      [{ team: "dns" }, { env: "prod" }, {}],
    );
    assert.deepEqual(await harness.lookUp(domain.Name, "NS"), ["Ns.Own.net"]);
    const text = await harness.client.text("readDomain", { path });
    const same = await harness.client.importZone({ path, body: { ZoneFile: text, Mode: "Replace" } });
    assert.deepEqual([same.Created, same.Updated, same.Deleted], [0, 0, 0]);
    const before = (await read(domain.ID)).LinkedRecords.map(fieldsOf);
    await erase(domain.ID);
    const again = await harness.client.createDomain({ body: { Name: domain.Name, ZoneFile: text } });
    assert.deepEqual(again.LinkedRecords.map(fieldsOf).sort(), before.sort());
    assert.deepEqual(again.Labels, Labels);

    // A file without NS records at the apex keeps the set; one with the automatic set replaces it.
    const here = { id: again.ID };
    await harness.client.importZone({
      path: here,
      body: { ZoneFile: "@ NS ns.old.net.\nb A 192.0.2.1\n", Mode: "Replace" },
    });
    assert.deepEqual(await harness.lookUp(domain.Name, "NS"), ["Ns.Own.net"]);
    const automatic = "@ NS ns1.brume.internal. ; brume: automatic\n";
    await harness.client.importZone({ path: here, body: { ZoneFile: automatic, Mode: "Replace" } });
    assert.deepEqual(await harness.lookUp(domain.Name, "NS"), ["ns1.brume.internal"]);
    await erase(again.ID);
  });
});
