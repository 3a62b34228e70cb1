/**
 * A real Knot and a real BIND follow the catalog zone (RFC 9432). They add and remove the domains that the API creates and deletes, and
 * accept only signed NOTIFY. Metrics show how far they are.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type DnsClient, decode, openDnsClient, query, target } from "../support/dnsclient.ts";
import { createTestService, type TestService } from "../support/testservice.ts";
import { freePort, type Knot, startKnot } from "./knot.ts";
import { type Named, startNamed } from "./named.ts";

const KEY = { name: "transfer.brume", algorithm: "hmac-sha256", secret: Buffer.alloc(32, 9).toString("base64") };
const catalog = "catalog.brume.invalid";

let brume: TestService;
let knot: Knot;
let named: Named;
const askers: Record<string, DnsClient> = {};

before(async () => {
  const ports = [await freePort(), await freePort()] as const;
  // Each has an address of its own, which it also sends from, so that metrics can distinguish them.
  const hosts = ["127.0.0.2", "127.0.0.1"] as const;
  const notify = hosts.map((host, i) => ({ host, port: ports[i] as number, key: KEY.name }));
  brume = await createTestService("sqlite", { transfer: { addresses: [], keys: [KEY], notify, catalog } });
  const { port } = target(brume.dns);
  const member = `    master: brume
    acl: brume
    zonefile-sync: -1
    zonefile-load: none
    journal-content: all
`;
  const config = `key:
  - id: ${KEY.name}
    algorithm: ${KEY.algorithm}
    secret: ${KEY.secret}
remote:
  - id: brume
    address: 127.0.0.1@${port}
    via: ${hosts[0]}
    key: ${KEY.name}
acl:
  - id: brume
    address: 127.0.0.1
    key: ${KEY.name}
    action: notify
template:
  - id: member
${member}zone:
  - domain: ${catalog}
${member}    catalog-role: interpret
    catalog-template: member
`;
  knot = await startKnot([], [], { host: hosts[0], port: ports[0], config });
  const primary = `{ 127.0.0.1 port ${port} key "${KEY.name}"; }`;
  named = await startNamed(
    ports[1],
    `  allow-new-zones yes; allow-notify { key "${KEY.name}"; };
  catalog-zones { zone "${catalog}" default-primaries ${primary} in-memory yes min-update-interval 1; };`,
    `key "${KEY.name}" { algorithm ${KEY.algorithm}; secret "${KEY.secret}"; };
zone "${catalog}" { type secondary; file "catalog.db"; primaries ${primary}; allow-notify { key "${KEY.name}"; }; };`,
  );
  askers.Knot = await openDnsClient(knot.address);
  askers.BIND = await openDnsClient(named.address);
});

after(async () => {
  for (const dnsClient of Object.values(askers)) dnsClient.close();
  await Promise.all([knot?.close(), named?.close()]);
  await brume?.close();
});

/** Queries a secondary. Returns the response code and the data. */
async function lookUp(secondary: string, name: string): Promise<string> {
  const answer = await askers[secondary]?.exchange(query(name, 1), 1000);
  if (!answer) return "silence";
  const { rcode, answers } = decode(answer);
  return [rcode, ...answers.map(({ data }) => String(data))].join(" ");
}

async function until(name: string, wanted: string): Promise<void> {
  for (const secondary of Object.keys(askers)) {
    const end = Date.now() + 120_000;
    for (let seen = await lookUp(secondary, name); seen !== wanted; seen = await lookUp(secondary, name)) {
      if (Date.now() > end)
        assert.fail(`${secondary} answers ${name} with ${seen}, not ${wanted}\n${named.log().slice(-3000)}`);
      await sleep(20);
    }
  }
}

test("domains are added, changed, removed and added again at Knot and BIND", async () => {
  const { client } = brume;
  const one = await client.createDomain({ body: { Name: "one.example", Ip: "192.0.2.1" } });
  const two = await client.createDomain({ body: { Name: "two.example", Ip: "192.0.2.2" } });
  await until("one.example", "NOERROR 192.0.2.1");
  await until("two.example", "NOERROR 192.0.2.2");
  await client.createRecordA({ body: { DomainId: one.ID, HostName: "www", IP: "192.0.2.3" } });
  await until("www.one.example", "NOERROR 192.0.2.3");
  await client.deleteDomain({ path: { id: one.ID } });
  await until("one.example", "REFUSED");
  await until("two.example", "NOERROR 192.0.2.2");
  await client.createDomain({ body: { Name: "one.example", Ip: "192.0.2.9" } });
  await until("one.example", "NOERROR 192.0.2.9");
  await until("www.one.example", "NXDOMAIN");
  await client.deleteDomain({ path: { id: two.ID } });
  await until("two.example", "REFUSED");
});

test("NOTIFY is signed: Knot accepts no other, and BIND logs the key", async () => {
  const answer = await askers.Knot?.exchange(query(catalog, 6, { flags: 0x2400, edns: 0 }));
  assert.equal(answer && decode(answer).rcode, "NOTAUTH");
  const received = named.log().match(/received notify for zone '[^']+'.*/g) ?? [];
  assert.ok(received.length > 3, named.log());
  for (const line of received) assert.match(line, /TSIG 'transfer\.brume'/);
});

test("metrics show that both have every serial", async () => {
  const [domain] = await brume.client.listDomains();
  assert.ok(domain);
  const wanted = [knot.address, named.address].flatMap((secondary) => [
    `brume_dns_secondary_reachable{secondary="${secondary}"} 1`,
    `brume_dns_secondary_behind_zones{secondary="${secondary}"} 0`,
    `brume_dns_secondary_serial{secondary="${secondary}",zone="${domain.NamePunyCode}"} ${domain.Serial}`,
  ]);
  for (const end = Date.now() + 120_000; ; await sleep(200)) {
    const response = await fetch(`${brume.url}/metrics`, { headers: { Authorization: `Bearer ${brume.token}` } });
    const lines = (await response.text()).split("\n");
    const missing = wanted.filter((line) => !lines.includes(line));
    if (missing.length === 0) break;
    if (Date.now() > end)
      assert.fail(`${missing.join("\n")}\n${lines.filter((line) => /secondary/.test(line)).join("\n")}`);
  }
});
