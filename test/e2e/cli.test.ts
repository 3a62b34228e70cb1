/** The command line on a real service: objects by name, tables and data, waiting, prompts, errors with exit codes, contexts. */
import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Server } from "@brume/api/server.ts";
import { parse } from "yaml";
import { type CommandLine, createCommandLine } from "../support/commandline.ts";
import { createTestService, type TestService } from "../support/testservice.ts";
import { until } from "../support/waituntil.ts";

let brume: TestService;
let cli: CommandLine;
before(async () => {
  brume = await createTestService("sqlite");
  cli = createCommandLine(brume.url, brume.token);
});
after(async () => {
  cli.close();
  await brume.close();
});

const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDHb1tJ9pSGUYAoFA9TJ5wJzqrzlHTuMwuiYjo0R2vGH me@example.com";

/** Runs a line that must succeed, and returns its output. */
async function ok(line: string | readonly string[], situation = {}): Promise<string> {
  const { code, out, err } = await cli(line, situation);
  assert.equal(code, 0, err);
  return out;
}

test("a server is created with names, and the command returns when it runs", async () => {
  const file = join(cli.home, "key.pub");
  writeFileSync(file, key);
  await ok(["ssh-key", "create", "me", "--public-key", `@${file}`]);
  const table = await ok("server create web-1 --ram 256 --hdd 1 --ssh-key me --label env=prod --label team=a");
  const [header = "", row = ""] = table.split("\n");
  assert.match(header, /^ID {2}NAME {3}STATE {3}POWER {2}IP/);
  assert.match(row, /^1 {3}web-1 {2}Active {2}on/);
  const server = JSON.parse(await ok("server get web-1 -o json")) as Server;
  assert.deepEqual(server.Labels, { env: "prod", team: "a" });
  assert.equal(server.LinkedSshKeys[0]?.Title, "me");
});

test("the output has a form for people and stable forms for programs", async () => {
  const servers = await brume.client.listServers();
  assert.deepEqual(JSON.parse(await ok("server list -o json")), servers);
  assert.deepEqual(parse(await ok("server list --output=yaml")), servers);
  assert.equal(await ok("server list -o name"), "web-1\n");
  assert.match(await ok("server list -o wide"), /HOST .*LABELS/);
  assert.match(await ok("server get web-1"), /\nLinkedNetworks 1:\n {2}LinkID: {6}1\n/);
  assert.equal(await ok("server list --quiet"), "");
  assert.match(await ok("service metrics"), /^# HELP .*\n# TYPE /);
  assert.match(await ok("project list"), /^ID +NAME +BLOCKED\n1 +default +no\n/);
  assert.ok(!(await ok("server list")).includes("\u001B"));
  assert.match(await ok("server list", { terminal: 100 }), /\p{Cc}\[32mActive/u);
  assert.ok(!(await ok("server list", { terminal: 100, env: { NO_COLOR: "1" } })).includes("\u001B"));
});

test("power actions wait and show their steps on a terminal", async () => {
  const { code, err } = await cli("server shutdown web-1", { terminal: 100 });
  assert.equal(code, 0);
  assert.match(err, /web-1: .*Shutdown/);
  assert.equal((await brume.client.readServer({ path: { id: 1 } })).IsPowerOn, false);
  const { err: silent } = await cli("server power-on web-1");
  assert.equal(silent, "");
  const action = JSON.parse(await ok("server reset web-1 --no-wait -o json")) as { State: string };
  assert.ok(["InProgress", "Postponed", "Completed"].includes(action.State), action.State);
});

test("the value of a new token is shown", async () => {
  const shown = await ok("token create ci --scopes dns:read,dns:write");
  const [, value = ""] = /^Token: +(\S+)$/m.exec(shown) ?? [];
  assert.equal((await cli("domain list", { env: { BRUME_TOKEN: value } })).code, 0);
  await ok("token delete ci --yes");
});

test("a dry run changes nothing", async () => {
  const { code, err } = await cli("server create other --ram 256 --dry-run");
  assert.equal(code, 0);
  assert.match(err, /Nothing was changed/);
  assert.equal(await ok("server list -o name"), "web-1\n");
});

test("deletion prompts, and without a terminal it needs --yes", async () => {
  const refused = await cli("server delete web-1");
  assert.equal(refused.code, 2);
  assert.match(refused.err, /remedy: Add --yes\./);
  const declined = await cli("server delete web-1", { terminal: 80, input: ["n"] });
  assert.equal(declined.code, 2);
  assert.match(declined.err, /Delete a server: web-1\? \[y\/N\]/);
  assert.equal(await ok("server list -o name"), "web-1\n");
  assert.equal((await cli("server create web-2 --ram 256")).code, 0);
  assert.equal((await cli("server delete web-2", { terminal: 80, input: ["y"] })).code, 0);
  assert.equal(await ok("server list -o name"), "web-1\n");
});

test("records have their own arguments, and are found by name and type", async () => {
  await ok("domain create example.com --ip 192.0.2.1");
  await ok("record create a example.com www 192.0.2.10 --ttl 60");
  await ok("record create cname example.com blog --target www");
  await ok("record create mx example.com @ --mail-server mail.example.net --priority 10");
  await ok("record create ns example.com lab --name-server ns.example.net");
  await ok(["record", "create", "txt", "example.com", "@", "--text", "v=spf1 -all"]);
  const { LinkedRecords } = await brume.client.readDomain({ path: { id: 1 } });
  assert.deepEqual(LinkedRecords.map(({ CanonicalDescription }) => CanonicalDescription).toSorted(), [
    "@ 3600 IN A 192.0.2.1",
    '@ 3600 IN TXT "v=spf1 -all"',
    "@ 3600 MX 10 mail.example.net.",
    "blog.example.com. 3600 IN CNAME www.example.com.",
    "lab.example.com. 3600 IN NS ns.example.net.",
    "www.example.com. 60 IN A 192.0.2.10",
  ]);
  await ok("record update a www.example.com/A --ip 192.0.2.11");
  assert.match(await ok("record get www.example.com/a"), /IP: +192\.0\.2\.11/);
  await ok("record delete example.com www.example.com/A --yes");
  assert.equal((await cli("record get www.example.com/A")).code, 2);
});

test("a public network: firewall from a file, check of a packet", async () => {
  await ok("public-network create dmz --prefix 28");
  const rules = join(cli.home, "rules.yaml");
  writeFileSync(rules, "- { Name: web, Action: Allow, Protocol: Tcp, DestinationPort: '80,443' }\n");
  await ok(["firewall", "set", "dmz", "--rules", `@${rules}`]);
  const check = (port: number) =>
    ok(`firewall check dmz --protocol tcp --source 192.0.2.7 --destination 10.64.0.2 --destination-port ${port}`);
  assert.match(await check(22), /\nDeny +- /);
  assert.match(await check(443), /\nAllow +1 /);
  await ok("server attach web-1 --network dmz");
  const inUse = await cli("public-network delete dmz --yes");
  assert.equal(inUse.code, 4);
  assert.match(inUse.err, /network_in_use\)\nremedy: brume server list --network/);
  await ok("server detach web-1 --network dmz");
  await ok("public-network delete dmz --yes");
  assert.equal(await ok("public-network list -o name"), "");
});

test("errors have a cause, a remedy and an exit code of their kind", async () => {
  const cases: readonly (readonly [line: string, code: number, text: RegExp])[] = [
    ["serv list", 2, /no command "serv"\.\nremedy: Did you mean server or service\?/],
    ["server lsit", 2, /Did you mean list\?/],
    ["webhook deliveries 99", 3, /\(webhook_not_found\)\nremedy: brume webhook list shows all of them\./],
    ["image upload /no/such/file", 2, /^error: \/no\/such\/file does not exist\.\n/],
    ["context add", 2, /^error: NAME is missing\.\n/],
    ["server create x --rams 5", 2, /no flag --rams\.\nremedy: Did you mean --ram\?/],
    ["server create", 2, /NAME is missing\.\nremedy: Usage: brume server create NAME \[flags\]/],
    ["server create x --ram many", 2, /--ram takes an integer, not "many"/],
    ["server create x --ram 300", 6, /validation_failed\)\n {2}--ram: /],
    ["server get web-9", 2, /There is no server "web-9"\.\nremedy: Did you mean web-1\?/],
    ["server get 999", 3, /server_not_found/],
    ["domain create example.com", 4, /domain_exists\)\nremedy: brume domain get/],
    ["server list", 5, /token_invalid/],
    ["server list --context nowhere", 2, /no context "nowhere"/],
  ];
  for (const [line, code, text] of cases) {
    const env = code === 5 ? { BRUME_TOKEN: "wrong" } : {};
    const outcome = await cli(line, { env });
    assert.match(outcome.err, text, line);
    assert.equal(outcome.code, code, line);
    assert.equal(outcome.out, "", line);
  }
  const closed = await cli("server list", { env: { BRUME_URL: "http://127.0.0.1:1" } });
  assert.equal(closed.code, 7);
  assert.match(closed.err, /127\.0\.0\.1:1 does not respond .*\nremedy: Is the service running\?/);
});

test("a wait has an end, and an action that does not complete has its own exit code", async () => {
  brume.machines.fail("ensureRunning", 1000);
  const late = await cli("server create broken --ram 256 --timeout 1");
  assert.equal(late.code, 9, late.err);
  assert.match(late.err, /The work continues\.\nremedy: .*--timeout/);
  const [action] = JSON.parse(await ok("action list broken -o json")) as { ID: number }[];
  const canceled = await cli(`action cancel broken ${action?.ID}`);
  brume.machines.fail("ensureRunning", 0);
  assert.equal(canceled.code, 8, canceled.err);
  assert.match(canceled.err, /Create of server \d+: Canceled, step Boot: It was canceled by token 1\./);
});

test("a group with BestEffort is waited for as a whole; its failed servers are in the result", async () => {
  /** Creates a group of two servers, and cancels the creation of the named ones. */
  const create = async (name: string, policy: string, canceled: readonly string[]) => {
    brume.machines.fail("ensureRunning", 1000);
    const creation = cli(`group create ${name} --count 2 --ram 256 --policy ${policy} -o json`);
    for (const server of canceled) {
      const { ID: id } = await until(`${server} exists`, async () =>
        (await brume.client.listServers()).find(({ Name }) => Name === server),
      );
      const actions = await brume.client.listActions({ path: { id } });
      await brume.client.cancelAction({ path: { id, actionID: actions[0]?.ID ?? 0 } });
    }
    brume.machines.fail("ensureRunning", 0);
    return creation;
  };
  const { code, out, err } = await create("some", "BestEffort", ["some-1"]);
  assert.equal(code, 0, err);
  const { State, Servers } = JSON.parse(out) as { State: string; Servers: Server[] };
  assert.deepEqual([State, ...Servers.map((one) => one.State)], ["Active", "Failed", "Active"]);
  assert.equal((await create("none", "BestEffort", ["none-1", "none-2"])).code, 8);
  assert.equal((await create("all", "Atomic", ["all-1"])).code, 8);
});

test("contexts: tokens are stored for their user only, or printed by a program", async () => {
  const none = { env: { BRUME_URL: "", BRUME_TOKEN: "" } };
  const nothing = await cli("server list", none);
  assert.equal(nothing.code, 2);
  assert.match(nothing.err, /No installation is known\.\nremedy: .*brume context add/);
  assert.equal((await cli(`context add work --url ${brume.url}`, { ...none, input: `${brume.token}\n` })).code, 0);
  const file = join(cli.home, ".config/brume/contexts.json");
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.match(await ok("server list -o name", none), /^web-1/);

  await ok(["context", "add", "vault", "--url", brume.url, "--", "pass", "show", "brume"], none);
  assert.ok(!readFileSync(file, "utf8").includes('"show brume"'));
  let ran: unknown;
  const capture = (program: string, args: readonly string[]) => {
    ran = [program, ...args];
    return `${brume.token}\n`;
  };
  assert.match(await ok("-c vault server list -o name", { ...none, capture }), /^web-1/);
  assert.deepEqual(ran, ["pass", "show", "brume"]);
  const listed = await ok("context list", none);
  assert.match(listed, /work +yes .*\n.*vault +no .* printed by pass/);
  assert.ok(!listed.includes(brume.token));
  await ok("context use vault", none);
  await ok("context remove work", none);
  assert.deepEqual(JSON.parse(await ok("context list -o json", none)), [
    { Name: "vault", Current: true, Url: brume.url, Token: "printed by pass" },
  ]);
});
