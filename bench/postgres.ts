/**
 * Compares the service on PostgreSQL with the service on SQLite, both durable on the same disk, in one run: records created per second,
 * and reads of records, with one connection and with 64. `npm run bench -- postgres`
 */
import { startPostgres } from "../test/support/postgresserver.ts";
import { type Brume, startBrume } from "./lib/brume.ts";
import { type Line, report } from "./lib/figures.ts";
import { missing } from "./lib/process.ts";
import { type Load, loadInTurns, type Measured } from "./lib/wrk.ts";

const connections = 64;
/** Required share of the rate of SQLite. */
const wanted = 0.5;

const absent = missing("wrk");
if (absent !== null) throw new Error(`${absent}: npm run bench installs it`);

const script = (token: string, request: string) => (run: string) =>
  `
local run = "${run}"
local headers = { ["Authorization"] = "Bearer ${token}", ["Content-Type"] = "application/json" }
local count = 0
request = function()
  count = count + 1
  ${request}
end
`;

interface Subject {
  readonly brume: Brume;
  readonly loads: readonly Load[];
}

async function prepare(settings: Readonly<Record<string, string>>): Promise<Subject> {
  const brume = await startBrume(undefined, settings);
  const { client, url, token } = brume;
  const Quotas = { RecordsPerDomain: 1_000_000, Domains: 1000 };
  await client.updateProject({ path: { id: 1 }, body: { Quotas } });
  const ZoneFile = Array.from({ length: 1000 }, (_, i) => `h${i} 300 IN A 192.0.2.${i % 250}`).join("\n");
  await client.createDomain({ body: { Name: "read.example", ZoneFile } });
  const create = async (name: string, count: number): Promise<Load> => {
    const { ID } = await client.createDomain({ body: { Name: name } });
    const body = `'{"DomainId":${ID},"Name":"' .. run .. count .. '","IP":"192.0.2.1"}'`;
    return {
      url,
      connections: count,
      script: script(token, `return wrk.format("POST", "/dns/recorda", headers, ${body})`),
    };
  };
  const read = script(token, `return wrk.format("GET", "/dns/record/" .. (count % 1000 + 1), headers)`);
  const loads = [
    await create("many.example", connections),
    await create("one.example", 1),
    { url, connections, script: read },
    { url, connections: 1, script: read },
  ];
  return { brume, loads };
}

const server = await startPostgres([]);
const sqlite = await prepare({});
const postgres = await prepare({ BRUME_DATABASE: server.url });
const names = [
  `create, ${connections} connections`,
  "create, 1 connection",
  `read, ${connections} connections`,
  "read, 1 connection",
];
const measured: readonly Measured[] = await loadInTurns(
  sqlite.loads.flatMap((load, at) => [load, postgres.loads[at] ?? load]),
);
const rows: Record<string, object> = {};
const lines: Line[] = [];
for (const [at, name] of names.entries()) {
  const [one, other] = [measured[2 * at], measured[2 * at + 1]];
  if (one === undefined || other === undefined) throw new Error(`${name}: not measured`);
  const ratio = other.rate / one.rate;
  lines.push({ what: `${name}, part of SQLite`, value: ratio, limit: wanted, unit: "", atLeast: true });
  rows[name] = {
    "SQLite per second": Math.round(one.rate),
    "PostgreSQL per second": Math.round(other.rate),
    "p50 ms": other.p50,
    "p99 ms": other.p99,
    "of SQLite": ratio.toFixed(2),
  };
}
for (const { brume } of [sqlite, postgres]) {
  await brume.stop();
  brume.remove();
}
await server.close();
console.table(rows);
process.exitCode = report(lines) ? 0 : 1;
