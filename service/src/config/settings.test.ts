import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { loadSettings } from "../config.ts";
import { readSources, readToml } from "./file.ts";
import { placesOf, reportSettings, showSettings } from "./report.ts";
import { keyOf, renderSettings, settingNames } from "./settings.ts";

const folder = mkdtempSync(join(tmpdir(), "brume-settings-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const path = join(folder, "brume.toml");

/** Reads settings of a file with this text, and of variables. */
function load(text: string, environment: Record<string, string> = {}) {
  writeFileSync(path, text);
  return loadSettings({ BRUME_CONFIG: path, ...environment });
}

test("the reference contains the table of settings, and the code reads no other ones", () => {
  const page = readFileSync(new URL("../../../docs/operate.md", import.meta.url), "utf8");
  assert.ok(page.includes(`\n${renderSettings()}\n`), "run: node scripts/settings-reference.ts");
  assert.equal(new Set(settingNames.map(keyOf)).size, settingNames.length);
  const { unknown } = loadSettings({
    BRUME_CONFIG: "",
    BRUME_PORT: "1",
    ...Object.fromEntries(settingNames.map((name) => [name, ""])),
  });
  assert.deepEqual(unknown, ["BRUME_PORT"]);
});

test("a file sets each kind of value, flat or in tables, and variables win", () => {
  const text = `listen = "127.0.0.1:1"
lenient_http = true
locations = ["a", "b"]
wireguard_port = 50000
[dns]
listen = "127.0.0.1:2" # comment
names = ["ns1.example.com", "ns2.example.com"]
[public]
pool = "192.0.2.0/24"
`;
  const config = load(text, { BRUME_LISTEN: "127.0.0.1:9", BRUME_NAT: "" });
  assert.deepEqual([config.listen.port, config.lenientHttp, config.locations], [9, true, ["a", "b"]]);
  assert.deepEqual([config.dns.listen.port, config.dns.names.length, config.network.wireguardPort], [2, 2, 50_000]);
  assert.deepEqual(config.network.publicPools, ["192.0.2.0/24"]);
  assert.deepEqual(config.unknown, []);
});

test("every error of a file names its line", () => {
  const cases: [string, RegExp][] = [
    ["\nlisten = 1\nnat = 'maybe'", /brume\.toml:3: nat must be one of never/],
    ["[dns]\nlissten = 'a'", /brume\.toml:2: there is no setting "dns_lissten"\. Did you mean dns_listen\?$/],
    ["xyzzy = 1", /brume\.toml:1: there is no setting "xyzzy"\.$/],
    ["dns_listen = '1'\n[dns]\nlisten = '2'", /brume\.toml:[13]: dns_listen is set twice\.$/],
    ["nat = 'a'\nnat = 'b'", /brume\.toml:2:\d+: /],
    ["listen = ", /brume\.toml:1:\d+: /],
    ["listen = 1\ntls_key = '/k.pem'", /brume\.toml:2: tls_cert and tls_key belong together\. Set both or neither\.$/],
    ["tls_cert = '/c.pem'", /brume\.toml:1: tls_cert and tls_key belong together\. Set both or neither\.$/],
    [
      "tls_cert = '/c.pem'\ntls_key = '/k.pem'\ntls_domain = 'a.example'",
      /brume\.toml:3: Set tls_domain or tls_cert, not both\.$/,
    ],
    ["tls_redirect = 80", /brume\.toml:1: tls_redirect needs TLS\. Set tls_domain or tls_cert, or remove it\.$/],
    ["locations = [{ a = 1 }]", /brume\.toml:1: locations must be a text/],
  ];
  for (const [text, expected] of cases) assert.throws(() => load(text), { message: expected }, text);
  assert.throws(
    () => loadSettings({ BRUME_CONFIG: join(folder, "none.toml") }),
    /The settings file .*none\.toml does not exist\./,
  );
  assert.throws(
    () => load("key = 'short'"),
    (error: Error) => !error.message.includes("short"),
  );
});

test("without BRUME_CONFIG the first default place with a file is used, and an empty text means none", () => {
  writeFileSync(path, "log = 'warn'");
  const places = [join(folder, "none.toml"), path];
  assert.equal(readSources({}, places).environment["BRUME_LOG"], "warn");
  assert.equal(readSources({ BRUME_CONFIG: "" }, places).file, null);
  assert.equal(readToml("[dns]\nlisten='1'", "x").get("BRUME_DNS_LISTEN")?.place, "x:2");
});

test("the report shows each value with its source and hides secrets", () => {
  writeFileSync(path, `nat = "never"\ntoken = "${"a".repeat(64)}"\n`);
  const sources = readSources({ BRUME_CONFIG: path, BRUME_LOG: "warn", BRUME_DATABASE: "postgres://u:secret@h/n" });
  const report = reportSettings(sources);
  const of = (name: string) => report.find(({ Setting }) => Setting === name);
  assert.deepEqual([of("nat")?.Value, of("nat")?.Source], ["never", `${path}:1`]);
  assert.deepEqual([of("token")?.Value, of("token")?.Source], ["(hidden)", `${path}:2`]);
  assert.deepEqual([of("log")?.Source, of("listen")?.Source, of("backups")?.Value], ["variable", "default", null]);
  assert.doesNotMatch(JSON.stringify(report), /aaaa|secret@/);
});

test("clients of the API see values and their source, but no secret, path or folder", () => {
  writeFileSync(
    path,
    'nat = "never"\ntls_cert = "/root/secret.pem"\n[dns]\ntransfer_keys = ["hmac-sha256:a:c2VjcmV0"]\n',
  );
  const sources = readSources({ BRUME_CONFIG: path, BRUME_LOG: "warn", BRUME_TLS_KEY: "/root/secret.key" });
  const shown = showSettings(sources.environment, placesOf(sources));
  assert.deepEqual(
    shown.map(({ Name }) => Name),
    settingNames.map(keyOf),
  );
  const of = (name: string) => {
    const found = shown.find(({ Name }) => Name === name);
    return [found?.Value, found?.Source, found?.Place, found?.IsHidden];
  };
  assert.deepEqual(of("nat"), ["never", "File", "brume.toml:1", false]);
  assert.deepEqual(of("log"), ["warn", "Variable", null, false]);
  assert.deepEqual(of("listen"), ["127.0.0.1:8080", "Default", null, false]);
  assert.deepEqual(of("tls_cert"), [null, "File", "brume.toml:2", true]);
  assert.deepEqual(of("tls_key"), [null, "Variable", null, true]);
  assert.deepEqual(of("dns_transfer_keys"), [null, "File", "brume.toml:4", true]);
  assert.doesNotMatch(JSON.stringify(shown), /secret\.|c2Vj|\/root|tmp|\]\(/);
  assert.equal(shown.find(({ Name }) => Name === "disk_low")?.Unit, "MB");
});

test("a process that receives settings as variables shows where they come from", () => {
  const [data] = showSettings({ BRUME_LISTEN: "[::1]:1", BRUME_DATA: "/x" }, { BRUME_LISTEN: "brume.toml:2" });
  assert.deepEqual([data?.Value, data?.Place], ["[::1]:1", "brume.toml:2"]);
  const folder = showSettings({ BRUME_DATA: "/x" }, {}).find(({ Name }) => Name === "data");
  assert.deepEqual([folder?.Value, folder?.Source], ["data", "Default"]);
});
