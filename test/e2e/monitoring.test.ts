/** The Prometheus and Grafana examples use only metrics that the service has. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { resolve } from "node:path";
import { after, before, test } from "node:test";
import { parse } from "yaml";
import { createTestService, type TestService } from "../support/testservice.ts";

const folder = resolve(import.meta.dirname, "../../examples/prometheus");
const read = (name: string): string => readFileSync(resolve(folder, name), "utf8");

let brume: TestService;
before(async () => {
  brume = await createTestService("sqlite", { disk: { folder: tmpdir(), low: 0 } });
});
after(() => brume.close());

test("dashboard and alerts name metrics and labels of /metrics", async () => {
  const { panels } = JSON.parse(read("dashboard.json")) as {
    panels: { targets: { expr: string; legendFormat: string }[] }[];
  };
  const { groups } = parse(read("alerts.yml")) as { groups: { rules: { expr: string }[] }[] };
  const expressions = [
    ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ...groups.flatMap(({ rules }) => rules.map(({ expr }) => expr)),
  ];
  await brume.client.createDomain({ body: { Name: "example.com" } });
  await brume.client.createServer({ body: { Name: "web" } });
  // Refreshes the metrics of the name server.
  await brume.client.readReadiness({});
  const { Token } = await brume.client.createToken({ body: { Name: "prometheus", Scopes: ["metrics:read"] } });
  const text = await brume.clientOf(Token).readMetrics({});
  const names = new Set([...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name = ""]) => name));
  const used = new Set(
    expressions.flatMap((expr) => [...expr.matchAll(/\b(?:brume|process)_\w+/g)].map(([name]) => name)),
  );
  assert.ok(used.size > 12, [...used].join());
  // Only with TLS, as test/e2e/tls-acme.test.ts shows.
  names.add("brume_certificate_expiry_timestamp_seconds");
  assert.deepEqual(
    [...used].filter((name) => !names.has(name.replace(/_(?:count|bucket|sum)$/, "")) && !names.has(name)),
    [],
  );
  const labels = panels.flatMap(({ targets }) =>
    targets.flatMap(({ expr, legendFormat }) =>
      [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => [/brume_\w+/.exec(expr)?.[0] ?? "", label]),
    ),
  );
  const lacking = labels.filter(
    ([name, label]) =>
      name !== "brume_dns_secondary_behind_zones" && !new RegExp(`^${name}\\{[^}]*\\b${label}="`, "m").test(text),
  );
  assert.deepEqual(lacking, []);
});

test("the how-to lists every metric of the service, and no other", async () => {
  await brume.client.createServer({ body: { Name: "measured" } });
  const shown = await brume.client.readMetrics({ query: { servers: true } });
  const page = readFileSync(resolve(import.meta.dirname, "../../docs/how-to/monitoring.md"), "utf8");
  const rows = page.split("\n").filter((line) => line.startsWith("| `brume_"));
  const listed = rows.flatMap((row) =>
    [...(row.split(" | ")[0] ?? "").matchAll(/`(brume_\w+)/g)].map(([, name = ""]) => name),
  );
  const present = [...shown.matchAll(/^# TYPE (brume_\w+)/gm)].map(([, name = ""]) => name);
  assert.deepEqual(listed.sort(), [...new Set([...present, "brume_certificate_expiry_timestamp_seconds"])].sort());
});

test("the configuration of Prometheus uses the rules and a token file", () => {
  const config = parse(read("prometheus.yml")) as { rule_files: string[]; scrape_configs: { authorization: object }[] };
  assert.deepEqual(config.rule_files, ["alerts.yml"]);
  assert.deepEqual(config.scrape_configs[0]?.authorization, { credentials_file: "/etc/prometheus/brume.token" });
});
