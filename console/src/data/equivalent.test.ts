import assert from "node:assert/strict";
import { test } from "node:test";
import { operationCommands } from "../../../cli/src/model/commands.ts";
import { parseLine } from "../../../cli/src/model/parse.ts";
import { equivalentsOf } from "./equivalent.ts";

const textsOf = (...args: Parameters<typeof equivalentsOf>) =>
  Object.fromEntries(equivalentsOf(...args).map(({ name, text }) => [name, text]));

test("a long text is read from a file in each form", () => {
  const shown = textsOf(
    {
      operation: "importZone",
      path: { id: 3 },
      body: { ZoneFile: "www 60 IN A 192.0.2.1\n", Mode: "Replace" },
      files: { ZoneFile: "example.com.zone" },
    },
    "http://brume",
  );
  assert.equal(shown["CLI"], "brume domain import 3 example.com.zone --mode Replace");
  assert.equal(
    shown["curl"],
    `jq -Rs '{ZoneFile: .} + {"Mode":"Replace"}' example.com.zone |
  curl -sS -X PUT http://brume/dns/3/zonefile \\
  -H "Authorization: Bearer $BRUME_TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d @-`,
  );
  assert.match(shown["TypeScript"] ?? "", /ZoneFile: await readFile\("example\.com\.zone", "utf8"\)/);
});

test("a flag takes the file by its name, and a field that is absent is not shown", () => {
  const request = { operation: "createDomain", files: { ZoneFile: "zone" } } as const;
  const withFile = textsOf({ ...request, body: { Name: "example.com", ZoneFile: "…" } }, "http://brume");
  assert.equal(withFile["CLI"], "brume domain create example.com --zone-file @zone");
  const without = textsOf({ ...request, body: { Name: "example.com" } }, "http://brume");
  assert.equal(without["CLI"], "brume domain create example.com");
  assert.doesNotMatch(without["curl"] ?? "", /jq/);
});

test("a text that begins with a hyphen is no flag", () => {
  const server = { Name: "-1", ImageID: "-image", HostName: "web" };
  const line = textsOf({ operation: "createServer", body: server }, "http://brume")["CLI"] ?? "";
  assert.equal(line, "brume server create --host-name web --image=-image -- -1");
  const parsed = parseLine(line.split(" ").slice(1), operationCommands());
  assert.ok("command" in parsed);
  assert.deepEqual([parsed.args, parsed.flags.get("image")], [["-1"], ["-image"]]);
});

test("secrets are not shown, at any depth of the body", () => {
  const tunnel = { Id: 1, Name: "office", SharedKey: "correct horse battery" };
  const webhook = { Url: "https://example.com/", Secret: "correct horse battery" };
  const shown = [
    textsOf({ operation: "configureVpn", path: { id: 3 }, body: { Tunnels: [tunnel] } }, "http://brume"),
    textsOf({ operation: "createWebhook", body: webhook }, "http://brume"),
  ];
  for (const [index, name] of ["SharedKey", "Secret"].entries())
    for (const text of Object.values(shown[index] ?? {})) {
      assert.match(text, new RegExp(`<${name}>`));
      assert.doesNotMatch(text, /horse/);
    }
});
