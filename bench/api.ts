/**
 * Compares the API with a bare node:http server that returns as many constant bytes, and with the HTTP API of PowerDNS with its SQLite
 * backend, on the same core, under the same load, in one run. `npm run bench -- api`
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Brume, freePort, startBrume } from "./lib/brume.ts";
import { missing, start, untilReady } from "./lib/process.ts";
import { loadInTurns, type Measured } from "./lib/wrk.ts";

const connections = 64;
const listed = 20;

const lua = (token: string, request: string) => (run: string) =>
  `
local run = "${run}"
local headers = { ["Authorization"] = "Bearer ${token}", ["Content-Type"] = "application/json", ["X-API-Key"] = "bench" }
local count = 0
request = function()
  count = count + 1
  ${request}
end
`;
const get = (path: string): string => `return wrk.format("GET", ${path}, headers)`;

interface Server {
  readonly url: string;
  stop(): Promise<void>;
}

async function startBare(bytes: number): Promise<Server> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const program = start([process.execPath, join(import.meta.dirname, "lib/bare.ts"), String(port), String(bytes)]);
  await untilReady(url);
  return { url, stop: () => program.stop() };
}

const rows: Record<string, object> = {};
const ratio = (one: Measured, other: Measured): string => (one.rate / other.rate).toFixed(2);
const show = ({ rate, p50, p99 }: Measured) => ({ "per second": Math.round(rate), "p50 ms": p50, "p99 ms": p99 });

async function size(brume: Brume, path: string): Promise<number> {
  const answer = await fetch(brume.url + path, { headers: { authorization: `Bearer ${brume.token}` } });
  return (await answer.arrayBuffer()).byteLength;
}

/** Compares a read with the bare server and a response of the same length. */
async function compareRead(name: string, brume: Brume, path: string, sample: string): Promise<void> {
  const script = lua(brume.token, get(path));
  const bytes = await size(brume, sample);
  const bare = await startBare(bytes);
  const [limit, ours] = await loadInTurns([
    { url: bare.url, connections, script },
    { url: brume.url, connections, script },
  ]);
  await bare.stop();
  rows[`bare node:http, ${bytes} bytes`] = show(limit);
  rows[name] = { ...show(ours), "of bare": ratio(ours, limit) };
}

const createBody = (domain: string): string =>
  `return wrk.format("POST", "/dns/recorda", headers, '{"DomainId":${domain},"Name":"' .. run .. count .. '","IP":"192.0.2.1"}')`;

/** Starts PowerDNS with its own zone; `powerdnsRequest` creates the records. */
async function startPowerdns(): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), "brume-pdns-"));
  const database = new DatabaseSync(join(folder, "pdns.db"));
  database.exec(readFileSync("/usr/share/doc/pdns-backend-sqlite3/schema.sqlite3.sql", "utf8"));
  database.close();
  const [port, dnsPort] = [await freePort(), await freePort()];
  writeFileSync(
    join(folder, "pdns.conf"),
    `launch=gsqlite3
gsqlite3-database=${folder}/pdns.db
gsqlite3-pragma-synchronous=2
local-address=127.0.0.1
local-port=${dnsPort}
socket-dir=${folder}
webserver=yes
api=yes
api-key=bench
webserver-address=127.0.0.1
webserver-port=${port}
webserver-allow-from=127.0.0.1
webserver-loglevel=none
loglevel=0
daemon=no
guardian=no
disable-syslog=yes
security-poll-suffix=
`,
  );
  const program = start(["pdns_server", `--config-dir=${folder}`]);
  const url = `http://127.0.0.1:${port}`;
  await untilReady(`${url}/api/v1/servers/localhost`, { "x-api-key": "bench" });
  const made = await fetch(`${url}/api/v1/servers/localhost/zones`, {
    method: "POST",
    headers: { "x-api-key": "bench" },
    body: JSON.stringify({ name: "bench.example.", kind: "Native", nameservers: ["ns1.bench.example."] }),
  });
  if (!made.ok) throw new Error(`PowerDNS makes no zone: ${await made.text()}`);
  return {
    url,
    async stop() {
      await program.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
const powerdnsRequest = `return wrk.format("PATCH", "/api/v1/servers/localhost/zones/bench.example.", headers, '{"rrsets":[{"name":"' .. run .. count .. '.bench.example.","type":"A","ttl":3600,"changetype":"REPLACE","records":[{"content":"192.0.2.1","disabled":false}]}]}')`;

const absent = missing("wrk");
if (absent !== null) throw new Error(`${absent}: npm run bench brings it`);
const brume = await startBrume();
await brume.client.updateProject({
  path: { id: 1 },
  body: { Quotas: { RecordsPerDomain: 1_000_000, Domains: 100_000 } },
});
const domain = await brume.client.createDomain({ body: { Name: "read.example" } });
const lines = Array.from({ length: 1000 }, (_, i) => `h${i} 300 IN A 192.0.2.${i % 250}`).join("\n");
await brume.client.importZone({ path: { id: domain.ID }, body: { ZoneFile: lines } });
for (let i = 0; i < listed; i++)
  await brume.client.createDomain({ body: { Name: `list-${i}.example`, Ip: "192.0.2.1" } });

await compareRead("read one record of 1,000", brume, `"/dns/record/" .. (count % 1000 + 1)`, "/dns/record/500");
const list = `/dns?name=list-*&limit=${listed}`;
await compareRead(`list ${listed} domains with a record each`, brume, `"${list}"`, list);

const target = await brume.client.createDomain({ body: { Name: "write.example" } });
const second = await brume.client.createDomain({ body: { Name: "alone.example" } });
const noPowerdns = missing("pdns_server");
if (noPowerdns !== null) console.log(`No comparison with PowerDNS: ${noPowerdns}; npm run bench installs it.`);
const bare = await startBare(450);
const powerdns = noPowerdns === null ? await startPowerdns() : null;
const many = lua(brume.token, createBody(String(target.ID)));
const few = lua(brume.token, createBody(String(second.ID)));
const [limit, created, alone, theirs] = await loadInTurns([
  { url: bare.url, connections, script: many },
  { url: brume.url, connections, script: many },
  { url: brume.url, connections: 1, script: few },
  // One connection: with more, its SQLite backend returns 500, "database is locked".
  ...(powerdns === null ? [] : [{ url: powerdns.url, connections: 1, script: lua("", powerdnsRequest) }]),
]);
const ofPowerdns = (ours: Measured) =>
  theirs === undefined ? {} : { "of PowerDNS": (ours.rate / theirs.rate).toFixed(1) };
rows["bare node:http, 450 bytes, POST"] = show(limit);
rows["create a record, durable and served"] = {
  ...show(created),
  "of bare": ratio(created, limit),
  ...ofPowerdns(created),
};
rows["create a record, one connection"] = { ...show(alone), ...ofPowerdns(alone) };
if (theirs !== undefined) rows["PowerDNS with SQLite: create a record, one connection"] = show(theirs);
for (const server of [bare, powerdns, brume]) await server?.stop();
brume.remove();
console.table(rows);
