/** The first set-up: `brume init` writes a settings file and a unit that work, and `brume config` shows and validates the settings. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { type CommandLine, createCommandLine, type Situation } from "../support/commandline.ts";

const root = resolve(import.meta.dirname, "../..");
const env = { BRUME_URL: "", BRUME_TOKEN: "", BRUME_CONFIG: "" };
const capture = (program: string, args: readonly string[]) =>
  execFileSync(program, args, {
    encoding: "utf8",
    stdio: "pipe",
    env: { PATH: process.env["PATH"], BRUME_CONFIG: "" },
  });
const here: Situation = { installation: root, env, capture };

let cli: CommandLine;
let settings: string;
let unit: string;
before(() => {
  cli = createCommandLine("", "");
  settings = join(cli.home, "etc/brume.toml");
  unit = join(cli.home, "etc/brume.service");
});
after(() => cli.close());

const init = (more: readonly string[], situation: Situation = {}) =>
  cli(["init", "--file", settings, "--unit", unit, ...more], { ...here, ...situation });

/** Returns the values of a unit by their key; a key may occur several times. */
function parseUnit(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#") || /^\[\w+\]$/.test(line)) continue;
    const [, key = "", value = ""] = /^([A-Z]\w+)=(.+)$/.exec(line) ?? assert.fail(`not a line of a unit: ${line}`);
    found.set(key, [...(found.get(key) ?? []), value]);
  }
  return found;
}

/** The unit has every option of the unit of the Debian package, except paths. */
function assertSameOptions(parsed: Map<string, string[]>, name: string): void {
  const paths = /^(ExecStart|StateDirectory|StateDirectoryMode|ProtectHome)$/;
  const missing = [...parseUnit(readFileSync(join(root, "packaging", name), "utf8"))].flatMap(([key, values]) =>
    values
      .filter(
        (value) => !paths.test(key) && !value.startsWith("BRUME_DATA=") && parsed.get(key)?.includes(value) !== true,
      )
      .map((value) => `${key}=${value}`),
  );
  assert.deepEqual(missing, []);
}

test("flags alone are enough, and the service starts with the command line of the unit", async () => {
  const data = join(cli.home, "data of brume");
  const flags = [
    "--listen",
    "127.0.0.1:0",
    "--dns-listen",
    "127.0.0.1:0",
    "--dns-names",
    "ns1.example.com",
    "--data",
    data,
  ];
  const { code, out, err } = await init([...flags, "--yes", "--dns-only"]);
  assert.equal(code, 0, err);
  assert.match(out, /At the registrar of your domain: name server ns1\.example\.com, glue record 127\.0\.0\.1\./);
  assert.deepEqual([statSync(settings).mode & 0o777, statSync(unit).mode & 0o777], [0o600, 0o644]);
  const parsed = parseUnit(readFileSync(unit, "utf8"));
  assert.deepEqual(parsed.get("LoadCredential"), [`brume.toml:${settings}`]);
  assert.deepEqual(parsed.get("ReadWritePaths"), [`"${data}"`]);
  assertSameOptions(parsed, "brume-dns.service");
  const [program = "", ...args] = (parsed.get("ExecStart")?.[0] ?? "").split(" ");
  appendFileSync(settings, "simulate = true\n");
  const variables = { PATH: process.env["PATH"], BRUME_CONFIG: settings };
  const service = spawn(program, args, {
    cwd: parsed.get("WorkingDirectory")?.[0],
    env: variables,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(service, "exit");
  try {
    const file = join(data, "url");
    for await (const _ of service.stdout) if (existsSync(file)) break;
    // The command line finds the token through the settings file.
    const local = { ...here, env: { ...env, BRUME_CONFIG: settings } };
    assert.equal((await cli("domain create first.example --quiet", local)).code, 0);
    assert.match((await cli("domain list -o json", local)).out, /"ns1\.example\.com"/);
  } finally {
    service.kill();
    await ended;
  }
});

test("on a terminal every answer is prompted for, with its default", async () => {
  const certificate = join(cli.home, "a.pem");
  writeFileSync(certificate, "");
  const answers = [
    "0.0.0.0:8443",
    "",
    certificate,
    certificate,
    "",
    "192.0.2.53:53",
    "ns1.example.com",
    "",
    "192.0.2.64/26",
    "",
    "",
  ];
  const { code, err } = await init(["--data", join(cli.home, "data")], { terminal: 80, input: [...answers, "y", "y"] });
  assert.equal(code, 0, err);
  assert.match(
    err,
    /Address and port of the API \[127\.0\.0\.1:8080\]: TLS: name of the API.*TLS: file of the certificate/,
  );
  const text = readFileSync(settings, "utf8");
  assert.match(text, /\nlisten = "0\.0\.0\.0:8443"\n/);
  assert.ok(text.includes(`\n# certificate of the API\ntls_cert = "${certificate}"\n`), text);
  assert.match(text, /\npublic_pool = "192\.0\.2\.64\/26"\n/);
  assert.doesNotMatch(text, /token|public_address/);
  const parsed = parseUnit(readFileSync(unit, "utf8"));
  assert.equal(parsed.get("User"), undefined);
  assert.ok(parsed.get("Environment")?.includes(`BRUME_CONFIG=${settings}`));
  assertSameOptions(parsed, "brume.service");
});

test("an existing settings file keeps its mode and group, by which the user of a unit reads it", async () => {
  const file = join(cli.home, "kept.toml");
  writeFileSync(file, "");
  // Only root can give the file to another group.
  const gid = process.getuid?.() === 0 ? 7 : statSync(file).gid;
  chownSync(file, statSync(file).uid, gid);
  chmodSync(file, 0o640);
  const { code, err } = await cli(["init", "--file", file, "--unit", "none", "--data", cli.home, "--yes"], here);
  assert.equal(code, 0, err);
  const { mode, gid: group } = statSync(file);
  assert.deepEqual([mode & 0o777, group], [0o640, gid]);
  assert.match(readFileSync(file, "utf8"), /\nlisten = /);
});

test("a wrong answer is prompted for again, with the reason", async () => {
  const [file, none] = [join(cli.home, "again/brume.toml"), join(cli.home, "none.pem")];
  const answers = ["abc", "0.0.0.0:8443", "x y", "", none, "", "", "ns1", "", "nope", "", "", ""];
  const { code, err } = await cli(["init", "--file", file, "--unit", "none", "--data", "x"], {
    ...here,
    terminal: 80,
    input: answers,
  });
  assert.equal(code, 0, err);
  assert.match(err, /listen must be an address and a port such as 127\.0\.0\.1:8080, not "abc"\.\n/);
  assert.match(err, /none\.pem does not exist\.\n/);
  assert.match(err, /public_pool must be IPv4 blocks/);
  assert.match(readFileSync(file, "utf8"), /\nlisten = "0\.0\.0\.0:8443"\n/);
});

test("an invalid answer changes nothing, and an existing file is replaced only after a prompt", async () => {
  const text = readFileSync(settings, "utf8");
  const wrong = await init(["--yes", "--public-pool", "192.0.2.0/31"]);
  assert.equal(wrong.code, 2);
  assert.match(
    wrong.err,
    /brume\.toml:\d+: public_pool must be IPv4 blocks of \/8 to \/28.*\nremedy: Nothing was changed/,
  );
  const declined = await init(["--data", "x"], { terminal: 80, input: [...Array<string>(8).fill(""), "n"] });
  assert.match(declined.err, /Replace .*brume\.toml\? \[y\/N\] .*Declined/s);
  assert.match((await init([])).err, /no terminal for the questions/);
  assert.equal((await cli("init --yes", { env })).code, 2);
  assert.equal(readFileSync(settings, "utf8"), text);
});

test("config check names the line of an error, and config show the source of each value", async () => {
  mkdirSync(join(cli.home, "etc"), { recursive: true });
  writeFileSync(settings, `nat = "never"\nkey = "${"b".repeat(64)}"\n`);
  const valid = await cli(["config", "check", "-f", settings], here);
  assert.equal(valid.out, `Valid: 2 settings, file ${settings}.\n`, valid.err);
  const shown = await cli(["config", "show", "--source", "-f", settings], here);
  assert.match(shown.out, /^SETTING +VALUE +SOURCE\n/);
  assert.match(shown.out, /\nnat +never +.*brume\.toml:1\n/);
  assert.match(shown.out, /\nkey +\(hidden\) +.*brume\.toml:2\n/);
  assert.match(shown.out, /\nlog +info +default\n/);
  writeFileSync(settings, "[dns]\nlisten = 'x y'\n");
  const invalid = await cli(["config", "check", "-f", settings], here);
  assert.deepEqual([invalid.code, invalid.out], [2, ""]);
  assert.match(invalid.err, /error: .*brume\.toml:2: dns_listen must be an address and a port/);
});

test("the container image runs the command line of the DNS unit as its user, with its settings", () => {
  const dnsUnit = parseUnit(readFileSync(join(root, "packaging/brume-dns.service"), "utf8"));
  const image = readFileSync(join(root, "packaging/Containerfile"), "utf8");
  const [, entry = "[]"] = /^ENTRYPOINT (.*)$/m.exec(image) ?? [];
  assert.equal((JSON.parse(entry) as string[]).join(" "), dnsUnit.get("ExecStart")?.[0]);
  assert.match(image, new RegExp(`^USER ${dnsUnit.get("User")?.[0]}$`, "m"));
  const variables = /^ENV (.*)$/m.exec(image)?.[1]?.split(" ") ?? [];
  const wanted = dnsUnit.get("Environment")?.filter((one) => one.startsWith("BRUME_")) ?? [];
  assert.deepEqual(
    wanted.filter((one) => !variables.includes(one)),
    [],
  );
  assert.match(image, new RegExp(`^VOLUME ${variables[0]?.split("=")[1]}$`, "m"));
});

test("a certificate that does not exist and a folder as file are errors, and nothing is written", async () => {
  const [none, file] = [join(cli.home, "none.pem"), join(cli.home, "wrong.toml")];
  const wrong = await init(["--yes", "--file", file, "--listen", "0.0.0.0:443", "--tls-cert", none, "--tls-key", none]);
  assert.deepEqual([wrong.code, existsSync(file)], [2, false]);
  assert.match(wrong.err, /^error: --tls-cert: .*none\.pem does not exist\.\n/);
  // `mkdir` with `recursive` never ends there.
  const nowhere = await init(["--yes", "--file", "/proc/brume/etc/brume.toml"]);
  assert.equal(nowhere.err, "error: /proc/brume does not exist.\n");
  assert.notEqual(nowhere.code, 0);
  const folder = await cli(["plan", "--file", cli.home], here);
  assert.equal(folder.code, 1);
  assert.match(folder.err, /is a folder, not a file\./);
});
