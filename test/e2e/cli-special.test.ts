/** Commands that are no single operation, on a real service: SSH, logs, events, zone files, tunnels, completion, load, diagnosis. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type CommandLine, createCommandLine } from "../support/commandline.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

let brume: TestService;
let cli: CommandLine;
before(async () => {
  brume = await createTestService("sqlite");
  cli = createCommandLine(brume.url, brume.token);
  await ok("server create web-1 --ram 256");
  await ok("domain create example.com --ip 192.0.2.1");
});
after(async () => {
  cli.close();
  await brume.close();
});

/** Runs a line that must succeed, and returns its output. */
async function ok(line: string | readonly string[], situation = {}): Promise<string> {
  const { code, out, err } = await cli(line, situation);
  assert.equal(code, 0, `${String(line)}: ${err}`);
  return out;
}

test("ssh runs the program with address, user and the arguments after --", async () => {
  const calls: unknown[] = [];
  const run = (program: string, args: readonly string[]) => {
    calls.push([program, ...args]);
    return 7;
  };
  const { IP } = await brume.client.readServer({ path: { id: 1 } });
  const { code } = await cli(["ssh", "web-1", "-p", "2222", "--", "uptime", "-p"], { run });
  assert.equal(code, 7);
  const accept = ["-o", "StrictHostKeyChecking=accept-new"];
  assert.deepEqual(calls, [["ssh", ...accept, "-l", "root", "-p", "2222", "--", IP, "uptime", "-p"]]);
  await ok("server power-off web-1");
  const off = await cli("ssh web-1", { run });
  assert.match(off.err, /web-1 is powered off\.\nremedy: brume server power-on web-1/);
  await ok("server power-on web-1");
});

test("logs prints the serial log without control characters", async () => {
  const log = await ok("logs web-1");
  assert.ok(log.length > 0 && !/[^\P{Cc}\n\t]|\uFFFD/u.test(log), JSON.stringify(log));
  assert.equal((await ok("logs web-1 --tail 1")).split("\n").length, 2);
});

test("logs --follow prints each part once", async () => {
  const long = "x".repeat(2000);
  const logs = [
    "first\nready \uFFFD",
    "first\nready ✓ \u001B[3",
    `first\nready ✓ \u001B[32mok\u001B[0m\n${long}\n`,
    `first\n[900 bytes are left out here]\n${long}\nafter\n`,
    "another boot\n",
  ];
  const stop = new AbortController();
  let out = "";
  const respond: typeof fetch = async (input, init) =>
    typeof input === "string" && input.includes("/log")
      ? new Response(logs.shift() ?? "another boot\n")
      : fetch(input, init);
  const onOut = (text: string) => {
    out += text;
    if (out.endsWith("another boot\n")) stop.abort();
  };
  assert.equal((await cli("logs web-1 --follow", { fetch: respond, signal: stop.signal, onOut })).code, 0);
  assert.equal(out, `first\nready ✓ ok\n${long}\nafter\nanother boot\n`);
});

test("console connects this terminal with the serial console until Ctrl-]", async () => {
  let press: (text: string) => void = () => {};
  let shown = "";
  const onOut = (text: string) => {
    const before = shown;
    shown += text;
    if (!before.includes("login: ") && shown.includes("login: ")) press("root\r");
    if (shown.includes("root\r\nlogin: ")) press("\u001D");
  };
  const onKeys = (type: (text: string) => void) => {
    press = type;
    if (shown.includes("login: ")) type("root\r");
  };
  await ok("console web-1", { terminal: 80, input: [], onOut, onKeys });
  assert.match(shown, /login: root\r\nlogin: /);
  assert.match(await ok("console web-1 --vnc"), /^ws:\/\/127\.0\.0\.1:\d+\/console\//);
});

test("events are a list, and a stream with --follow", async () => {
  assert.match(await ok("events --type server.*"), /^ID +DATE +TYPE .*\n.*server\.created +server:1 +web-1/);
  const stop = new AbortController();
  let streamed = "";
  const call = cli("events --follow --after 0 --type domain.* -o json", {
    signal: stop.signal,
    onOut: (text: string) => {
      streamed += text;
      if (streamed.includes("second.example")) stop.abort();
    },
  });
  await ok("domain create second.example");
  await call;
  const events = streamed
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { Type: string });
  assert.ok(events.length >= 2 && events.every(({ Type }) => Type.startsWith("domain.")), streamed);
});

test("the last events are read with one request, also of many", async () => {
  const { ID: id } = await brume.client.createDomain({ body: { Name: "many.example" } });
  const Changes = Array.from({ length: 1100 }, (_, index) => ({
    Op: "Create" as const,
    TypeRecord: "A" as const,
    Name: `host-${index}`,
    IP: "192.0.2.1",
  }));
  await brume.client.changeRecords({ path: { id }, body: { Changes } });
  const sent: string[] = [];
  const counted: typeof fetch = (input, init) => {
    sent.push(new Request(input).url);
    return fetch(input, init);
  };
  const events = async (flags: string) =>
    JSON.parse(await ok(`events --type record.* -o json ${flags}`, { fetch: counted })) as { ID: number }[];
  const last = await events("");
  assert.deepEqual([sent.length, last.length], [1, 50], sent.join(" "));
  const all = await events("--after 0");
  assert.ok(all.length >= 1100);
  assert.deepEqual(last, all.slice(-50));
});

test("a zone file is exported, compared and imported", async () => {
  const file = join(cli.home, "zone");
  const zone = await ok("dns export example.com");
  assert.match(zone, /SOA/);
  writeFileSync(file, zone);
  assert.equal(await ok(["dns", "diff", "example.com", file]), "");
  writeFileSync(file, `${zone.replace("192.0.2.1", "192.0.2.9")}\nwww 60 IN A 192.0.2.10\n`);
  const differs = await cli(["dns", "diff", "example.com", file]);
  assert.equal(differs.code, 1, differs.err);
  const expected = ["+ @ 3600 A 192.0.2.9", "+ www.example.com. 60 A 192.0.2.10", "- @ 3600 A 192.0.2.1"];
  assert.deepEqual(differs.out.trim().split("\n").toSorted(), expected.toSorted());
  const refused = await cli(["dns", "import", "example.com", file, "--replace"]);
  assert.equal(refused.code, 2);
  assert.match(refused.err, /"Import into example\.com: remove 1 record" must be confirmed/);
  assert.match(
    await ok(["dns", "import", "example.com", file, "--replace", "--yes"]),
    /2 created, 0 updated, 1 deleted/,
  );
  assert.match(await ok("record list example.com --type a"), /www\.example\.com\. +A +60 +192\.0\.2\.10/);
  await ok(["dns", "import", "new.example", "-"], { input: "@ 300 IN A 192.0.2.5\n" });
  assert.match(await ok("record list new.example"), /A +300 +192\.0\.2\.5/);
  const added = await ok(["dns", "import", "new.example", "-"], { input: "www 300 IN A 192.0.2.6\n" });
  assert.match(added, /^\+ www\.new\.example\. 300 A 192\.0\.2\.6\n1 created, 0 updated, 0 deleted/);
  const broken = await cli(["dns", "import", "example.com", "-"], { input: "www 60 IN A nonsense\n" });
  assert.equal(broken.code, 6);
  assert.match(broken.err, /zone_file_invalid/);
});

test("the configuration of a tunnel is a file or a QR code, with secrets only on request", async () => {
  await ok("public-network create dmz");
  const tunnels = "[{ Name: phone, Type: WireGuard, PeerNetwork: 10.99.0.2/32 }]";
  await ok(["vpn", "set", "dmz", "--tunnels", tunnels]);
  const masked = await cli("vpn config dmz");
  assert.match(masked.out, /PrivateKey = <private key>/);
  assert.match(masked.err, /--issue/);
  assert.equal((await cli("vpn config dmz phone --issue")).code, 2);
  const issued = await ok("vpn config dmz phone --issue --yes");
  assert.match(issued, /PrivateKey = [A-Za-z0-9+/]{43}=/);
  assert.match(await ok("vpn config dmz --qr"), /^[█▀▄ \n]+$/);
  assert.match(await ok("vpn status dmz"), /TUNNEL +STATE/);
  assert.match(await ok("firewall get dmz"), /Enabled: +no/);
});

test("completion offers commands, flags, choices and names of objects", async () => {
  const complete = async (...words: string[]) => (await ok(["__complete", "--", ...words])).split("\n").filter(Boolean);
  assert.ok((await complete("ser")).includes("server"));
  assert.ok((await complete("server", "po")).includes("power-on"));
  assert.deepEqual(await complete("server", "get", ""), ["web-1"]);
  assert.deepEqual(await complete("domain", "get", "ex"), ["example.com"]);
  assert.ok((await complete("server", "create", "x", "--ra")).includes("--ram"));
  assert.deepEqual(await complete("server", "power-on", "web-1", "--wait-for", "S"), ["Ssh"]);
  assert.deepEqual(await complete("server", "list", "-o", "j"), ["json"]);
  assert.ok((await complete("server", "create", "x", "--network", "")).includes("dmz"));
  assert.deepEqual(await complete("record", "create", "a", "exa"), ["example.com"]);
  const script = await ok("completion bash");
  assert.equal(spawnSync("bash", ["-n"], { input: script }).status, 0);
  const probe = `brume() { shift 2; echo "$*" >&2; printf 'one\\ntwo words\\n'; }\n${script}\nCOMP_WORDS=(brume server ''); COMP_CWORD=2; _brume; printf '[%s]' "\${COMPREPLY[@]}"`;
  assert.equal(spawnSync("bash", ["-c", probe], { encoding: "utf8" }).stdout, "[one][two words]");
  for (const shell of ["zsh", "fish"]) assert.match(await ok(`completion ${shell}`), /brume __complete/);
  assert.equal((await cli("completion tcsh")).code, 2);
});

test("top shows servers and capacity, doctor shows each check with its remedy", async () => {
  const top = await ok("top");
  assert.match(top, /^Local: free \d+ of \d+ CPUs/);
  assert.match(top, /\nweb-1 +Active +/);
  const capture = () => "";
  const healthy = await ok("doctor -o json", { capture });
  const findings = JSON.parse(healthy) as { Check: string; State: string; Remedy: string }[];
  const stateOf = (name: string) => findings.find(({ Check }) => Check === name)?.State;
  assert.deepEqual(["API", "Clock", "Service", "Token", "Orphans", "ssh"].map(stateOf), Array(6).fill("ok"));
  assert.equal(stateOf("Engine Machine"), "warning");
  assert.match(
    findings.find(({ Check }) => Check === "Engine Machine")?.Remedy ?? "",
    /apt-get install \$\(sh \/usr\/lib\/brume\/scripts\/setup missing\)$/,
  );
  assert.deepEqual(["Port 53", "Upgrade"].map(stateOf), ["warning", "ok"]);
  assert.ok(findings.every(({ State, Remedy }) => State === "ok" || Remedy !== ""));
  assert.match(await ok("doctor", { capture }), /No problem found\.\n$/);
  const dead = await cli("doctor", { capture, env: { BRUME_URL: "http://127.0.0.1:1" } });
  assert.equal(dead.code, 1);
  assert.match(dead.out, /✗ +API +http:\/\/127\.0\.0\.1:1 does not respond .*→/);
});

test("a domain and its records are found by their name in Unicode and in ASCII, also with a final dot", async () => {
  const { ID: id } = await brume.client.createDomain({ body: { Name: "bücher.example" } });
  await brume.client.createRecordA({ body: { DomainId: id, Name: "www", IP: "192.0.2.7" } });
  await brume.client.createReservation({ body: { Name: "straße.example" } });
  for (const name of ["bücher.example", "xn--bcher-kva.example", "Bücher.EXAMPLE.", "XN--BCHER-KVA.example."]) {
    assert.match(await ok(["domain", "get", name]), /bücher\.example/, name);
    assert.match(await ok(["record", "get", `www.${name.replace(/\.$/, "")}/A`]), /192\.0\.2\.7/, name);
    await ok(["acme", "present", `_acme-challenge.${name}`, "token"]);
    await ok(["acme", "cleanup", `_acme-challenge.${name}`, "token"]);
    assert.doesNotMatch(await ok(["record", "list", name]), /TXT/, name);
  }
  assert.match(await ok("domain get example.com."), /example\.com/);
  for (const name of ["straße.example.", "xn--strae-oqa.example"]) {
    const dry = await cli(["reservation", "delete", name, "--yes", "--dry-run"]);
    assert.equal(dry.code, 0, dry.err);
  }
  // Other objects may end with a dot, which is part of their name.
  await ok(["server", "create", "web-1.", "--ram", "256", "--no-wait"]);
  assert.match(await ok("server get web-1. -o json"), /"Name": "web-1\."/);
});
