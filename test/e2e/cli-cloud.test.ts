/** Declarative use on a real service with simulated servers and networks: plan, apply, export, failures, other owners. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { cloudSchema } from "../../cli/src/model/cloud/shape.ts";
import { type CommandLine, createCommandLine } from "../support/commandline.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

const root = resolve(import.meta.dirname, "../..");

let brume: TestService;
let cli: CommandLine;
beforeEach(async () => {
  brume = await createTestService("sqlite");
  cli = createCommandLine(brume.url, brume.token);
});
afterEach(async () => {
  cli.close();
  await brume.close();
});

/** Writes a cloud file and returns its path. */
function file(text: string): string {
  const path = join(cli.home, "cloud.yaml");
  writeFileSync(path, text);
  return path;
}

const planOf = (path: string) => cli(["plan", "-f", path]);
const applyOf = (path: string, ...more: string[]) => cli(["apply", "-f", path, "--yes", ...more]);

async function applied(path: string): Promise<string> {
  const { code, out, err } = await applyOf(path);
  assert.equal(code, 0, out + err);
  return out;
}

/** Asserts that nothing is left to do. */
async function requireNothing(path: string): Promise<void> {
  const { code, out, err } = await planOf(path);
  assert.deepEqual([code, out], [0, "Nothing to do.\n"], err);
}

test("the example is planned, applied once, exported, and removed object by object", async () => {
  const example = readFileSync(join(root, "examples/cloud.yaml"), "utf8");
  const path = file(example);
  const plan = await planOf(path);
  assert.equal(plan.code, 2, plan.err);
  assert.match(plan.out, /^\+ public network dmz\n {4}\+ Bandwidth: 200\n {4}\+ NetworkCapacity: 28\n/);
  assert.match(plan.out, /\+ Firewall rule 1: Allow Tcp any → internal:80,443 \(web\)\n/);
  assert.match(plan.out, /\n\+ server web-1\n[^]*\+ Network: backend 172\.20\.0\.10\n/);
  assert.match(plan.out, /\n5 to create\.\n$/);
  assert.deepEqual(await brume.client.listServers(), []);

  assert.match(await applied(path), /✓ Create server web-1 {2}\d+ s\n/);
  await requireNothing(path);
  const [web] = await brume.client.listServers({ query: { name: "web-1" } });
  assert.deepEqual(web?.Labels, { role: "web", "brume/file": "shop" });
  assert.deepEqual(
    web?.LinkedNetworks.map(({ NetworkName }) => NetworkName),
    ["dmz", "backend"],
  );
  assert.equal((await brume.resolver.resolveMx("shop.example"))[0]?.exchange, "mail.example.net");

  const own = file((await cli("export --label shop")).out);
  await requireNothing(own);

  const smaller = example
    .replace(/ {2}- Name: db-1\n[^]*?\n\n/, "\n")
    .replace("RAM: 256", "RAM: 384")
    .replace(/ +- \{ Type: TXT.*\n/, "")
    .replace("IP: 192.0.2.10", "IP: 192.0.2.11");
  const less = file(smaller);
  const refused = await planOf(less);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /The service rejects the server db-1: .*\(server_protected\)/);
  const [db] = await brume.client.listServers({ query: { name: "db-1" } });
  await cli(["server", "update", String(db?.ID), "--no-protected"]);
  const change = await planOf(less);
  assert.match(change.out, /^~ server web-1\n {4}~ RAM: 256 → 384\n/, change.err);
  assert.match(change.out, /~ record @: A 192\.0\.2\.10 \(TTL 3600\) → A 192\.0\.2\.11 \(TTL 3600\)\n/);
  assert.match(change.out, /- record @: TXT v=spf1 mx -all/);
  assert.match(change.out, /\n- server db-1\n/);
  await applied(less);
  await requireNothing(less);
  await applied(file("Label: shop\n"));
  const { client } = brume;
  const left = await Promise.all([
    client.listServers(),
    client.listNetworks(),
    client.listPublicNetworks(),
    client.listDomains(),
  ]);
  assert.deepEqual(left, [[], [], [], []]);
});

test("a file changes nothing that it does not name, and takes over objects with its label only", async () => {
  const { client } = brume;
  const { ID } = await client.createDomain({ body: { Name: "own.example", Ip: "192.0.2.1", Labels: { team: "a" } } });
  await client.createRecordTXT({ body: { DomainId: ID, Name: "_acme-challenge", Text: "made by another program" } });
  const text =
    "Domains:\n  - Name: OWN.example.\n    Records:\n      - { Type: a, Name: own.example., IP: 192.0.2.1 }\n";
  const wrong = await planOf(file(text));
  assert.match(wrong.err, /cloud\.yaml:4:17: .*Type must be one of A, AAAA/);
  const number = await planOf(file(text.replace("Type: a", "Type: 5")));
  assert.match(number.err, /cloud\.yaml:4:17: .*Type must be one of A, AAAA[^.]*\.\n/);
  const missing = await planOf(file(text.replace("Type: a, ", "")));
  assert.match(missing.err, /Type must be one of A, AAAA[^.]*\. It is missing\.\n/);
  const plain = text.replace("Type: a", "Type: A");
  await requireNothing(file(plain));
  const labelled = `Label: one\n${plain}`;
  const taken = await applied(file(labelled));
  assert.match(taken, /~ domain own\.example\n {4}~ Labels: team=a → team=a brume\/file=one\n/);
  assert.equal((await client.readDomain({ path: { id: ID } })).LinkedRecords.length, 2);
  const other = await applyOf(file(labelled.replace("one", "two")));
  assert.match(other.err, /:3:5: The domain own\.example belongs to the file with Label "one"\./);
  const emptied = await applied(file("Label: one\nDomains:\n  - { Name: own.example, Records: [] }\n"));
  assert.match(emptied, /- record @: A 192\.0\.2\.1/);
  const { LinkedRecords } = await client.readDomain({ path: { id: ID } });
  assert.deepEqual(
    LinkedRecords.map(({ TypeRecord }) => TypeRecord),
    ["TXT"],
  );
});

test("records are compared as the service stores them", async () => {
  const path = file(`Domains:
  - Name: bücher.example
    Records:
      - { Type: AAAA, Name: WWW.bücher.example, IP: "2001:DB8:0:0::1" }
      - { Type: CNAME, Name: blog, Target: www }
      - { Type: TXT, Name: "@", Text: '"a=1" "b=2"' }
      - { Type: SRV, Name: "@", Service: _Sip., Proto: _TCP, Port: 5060, Target: sip.example.net }
      - { Type: NS, Name: lab, Target: ns.example.net., TTL: 60 }
`);
  await applied(path);
  await requireNothing(path);
  await requireNothing(file((await cli("export")).out));
  const rejected = await planOf(
    file("Domains:\n  - Name: bücher.example\n    Records:\n      - { Type: A, Name: blog, IP: 192.0.2.1 }\n"),
  );
  assert.match(rejected.err, /cloud\.yaml:4:9: |cloud\.yaml:\d+:\d+: .*CNAME/);
  assert.equal(rejected.code, 1);
});

test("all problems of a file are shown with line, column and a suggestion", async () => {
  const { code, err } = await planOf(
    file(`Label: shop
Server: []
Servers:
  - Name: web
    RAM: 300
    Image: brume-tiny
    Networks: [dnz]
    Labels: { n: 1 }
`),
  );
  assert.equal(code, 1);
  assert.match(err, /^error: .* has 3 problems\.\n/);
  assert.match(err, /cloud\.yaml:2:1: There is no field "Server"\. Did you mean Servers\?\n/);
  assert.match(err, /cloud\.yaml:5:10: Servers\[0\]\.RAM must be a multiple of 128, not 300\.\n/);
  assert.match(err, /cloud\.yaml:8:18: Servers\[0\]\.Labels\.n must be a text\. Put it in quotes\.\n/);
  const values = await planOf(file("Label: a b\nServers: [{ Name: web, RAM: abc, CPU: 1.5, Labels: { x y: z } }]\n"));
  assert.match(values.err, /Servers\[0\]\.RAM must be an integer, not "abc"\.\n/);
  assert.match(values.err, /Servers\[0\]\.CPU must be an integer, not 1\.5\.\n/);
  assert.match(
    values.err,
    /:1:8: Label must be text with 1-63 letters, digits, dots, underscores and hyphens, with a /,
  );
  assert.match(
    values.err,
    /Servers\[0\]\.Labels\.x y must be text with 1-63 letters, .*, after an optional prefix and slash\.\n/,
  );
  assert.match(values.err, /remedy: brume apply --schema prints the JSON Schema of the file\./);
  const named = await planOf(file("Networks: [{ Name: dmz }]\nServers: [{ Name: web, Networks: [dnz] }]\n"));
  assert.match(named.err, /cloud\.yaml:2:35: There is no network "dnz"\. Did you mean dmz\?/);
  assert.match(named.err, /remedy: Nothing was changed\. Correct the file, and repeat\./);
  assert.match((await planOf(file("Servers: [{ Name: a }, { Name: a }]"))).err, /:1:32: Servers has "a" twice\./);
  assert.match((await planOf(file("Servers:\n - Name: [a\n"))).err, /cloud\.yaml:\d+:\d+: /);
  assert.match(
    (await planOf(file("Servers: [{ Name: a, CPU: 2, Image: nothing }]"))).err,
    /:1:37: The service rejects the server a: /,
  );
  const noPrompt = await cli(["apply", "-f", file("Networks: [{ Name: a }]")]);
  assert.deepEqual([noPrompt.code, (await brume.client.listNetworks()).length], [2, 0]);
});

test("a secret comes from a file and is never printed", async () => {
  writeFileSync(join(cli.home, "key"), "secret-of-the-tunnel\n");
  const text = (key: string) =>
    `PublicNetworks:\n  - Name: vpn\n    Tunnels: [{ Name: office, PeerEndpoint: 203.0.113.9, PeerNetwork: 10.9.0.0/24, SharedKey: ${key} }]\n`;
  const path = file(text('"@key"'));
  const first = await applyOf(path);
  const [network] = await brume.client.listPublicNetworks();
  assert.equal(network?.Vpn.Tunnels[0]?.SharedKey, "secret-of-the-tunnel", first.err);
  await requireNothing(path);
  const changed = await applyOf(file(text("another-secret-of-the-tunnel")), "-o", "json");
  assert.match(
    changed.out,
    /"Field": "Tunnel office SharedKey",\n\s+"Before": "\(secret\)",\n\s+"After": "\(secret\)"/,
  );
  assert.match(changed.out, /"State": "Completed"/);
  for (const { out, err } of [first, changed, await cli("export")]) assert.doesNotMatch(out + err, /secret-of-the/);
});

test("after a failure in the middle the next apply completes the file", async () => {
  const path = file(`Label: half
PublicNetworks:
  - { Name: front, Firewall: { Rules: [{ Action: Allow, Protocol: Icmp }] } }
Servers:
  - { Name: one, Networks: [front] }
  - { Name: two, Networks: [front, shared] }
Domains:
  - { Name: half.example, Records: [{ Type: A, Name: www, IP: 192.0.2.7 }] }
`);
  // Each server fits into the quota, and both together do not.
  const { client } = brume;
  await client.updateProject({ path: { id: 1 }, body: { Quotas: { Servers: 1 } } });
  const failed = await applyOf(path);
  assert.equal(failed.code, 5, failed.err);
  assert.match(
    failed.err,
    /Create server \w+ failed; 2 of 4 changes are done, 1 were not started\. The next apply continues\.\nerror: .*quota/,
  );
  await client.updateProject({ path: { id: 1 }, body: { Quotas: { Servers: 5 } } });
  assert.match((await planOf(path)).out, /^\+ server \w+\n[^]*\+ domain half\.example\n[^]*2 to create\.\n$/);
  await applied(path);
  await requireNothing(path);
  const servers = await brume.client.listServers();
  assert.deepEqual(
    servers.map(({ Name, State }) => `${Name} ${State}`),
    ["one Active", "two Active"],
  );
});

test("a server that could not be created is created again", async () => {
  const { client, machines } = brume;
  const release = machines.hold("ensureRunning");
  const { ID } = await client.createServer({ body: { Name: "late" } });
  const [action] = await client.listActions({ path: { id: ID } });
  await client.cancelAction({ path: { id: ID, actionID: action?.ID ?? 0 } });
  release();
  await client.waitFor("readServer", { path: { id: ID } }, { until: ({ State }) => State === "Failed" });
  const path = file("Servers: [{ Name: late, RAM: 256 }]\n");
  assert.match((await planOf(path)).out, /^± server late {2}\(its creation failed\)\n/);
  await applied(path);
  await requireNothing(path);
  assert.deepEqual(
    (await client.listServers()).map(({ State }) => State),
    ["Active"],
  );
});

test("after Ctrl-C the next apply waits for what was started and does the rest", async () => {
  const path = file("Label: cut\nNetworks: [{ Name: a }]\nServers: [{ Name: s, Networks: [a] }]\n");
  const stop = new AbortController();
  const release = brume.machines.hold("ensureRunning");
  const cut = cli(["apply", "-f", path, "--yes"], { signal: stop.signal });
  const isStarted = (servers: readonly { readonly Name: string }[]) => servers.some(({ Name }) => Name === "s");
  await brume.client.waitFor("listServers", {}, { until: isStarted });
  stop.abort();
  assert.equal((await cut).code, 130);
  const next = await planOf(path);
  assert.match(next.out, /^… server s {2}\(it is being created\)\n/);
  release();
  await applied(path);
  await requireNothing(path);
  assert.deepEqual(
    (await brume.client.listServers()).map(({ State }) => State),
    ["Active"],
  );
});

test("the published schema is that of the contract, and the command prints it", async () => {
  const published = readFileSync(join(root, "docs/cloud.schema.json"), "utf8");
  assert.equal(published, `${JSON.stringify(cloudSchema, null, 2)}\n`, "run: node scripts/cli-reference.ts");
  assert.equal((await cli("apply --schema")).out, published);
});
