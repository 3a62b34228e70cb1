/**
 * The Debian package as an operator uses it: installed, started by the command lines of its systemd units with their capabilities, upgraded
 * while a server runs, removed and purged. The host is a copy of this one: its files with all writes in memory, in namespaces of its own.
 */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { tagOf } from "../../service/src/drivers/router/model/name.ts";
import { whyNot } from "../support/hindrance.ts";
import { copyAccelerator } from "../support/machinelab.ts";
import { memoryFolder } from "../support/memoryfolder.ts";
import { parseUnit, type Unit } from "../support/systemdunit.ts";
import { until } from "../support/waituntil.ts";
import { hindrance as serverHindrance } from "./serverhost.ts";

const hindrance =
  serverHindrance ?? (whyNot("dpkg", "dpkg-deb", "unshare", "nsenter", "setpriv", "userdel", "dig") || null);
if (hindrance !== null) console.log(`the Debian package: not tried, ${hindrance}`);

const project = resolve(import.meta.dirname, "../..");
/** Files that dpkg and useradd write and keep by themselves. */
const kept =
  /^\.\/(var\/(lib\/dpkg|lib\/systemd|log|cache\/(ldconfig|man|debconf)|backups)(\/|$)|etc\/(passwd|group|shadow|gshadow|subuid|subgid)-?$|etc\/\.pwd\.lock$)/;

/** Returns a copy of a package with another version and the same files, of an archive of three members as deb(5) describes. */
function withVersion(path: string, version: string): Buffer {
  const folder = mkdtempSync(join(tmpdir(), "brp-"));
  execFileSync("dpkg-deb", ["--control", path, folder]);
  const file = join(folder, "control");
  writeFileSync(file, readFileSync(file, "utf8").replace(/^Version: .*/m, `Version: ${version}`));
  const control = execFileSync("tar", ["-C", folder, "--owner=0", "--group=0", "-cf", "-", "."]);
  rmSync(folder, { recursive: true });
  const archive = readFileSync(path);
  const after = (at: number): number => {
    const size = Number(archive.toString("latin1", at + 48, at + 58));
    return at + 60 + size + (size % 2);
  };
  const start = after(8);
  const header = ["control.tar".padEnd(16), "0".padEnd(12), "0".padEnd(6), "0".padEnd(6), "100644".padEnd(8)].join("");
  const size = String(control.length).padEnd(10);
  return Buffer.concat([
    archive.subarray(0, start),
    Buffer.from(`${header}${size}\`\n`),
    control,
    archive.subarray(after(start)),
  ]);
}

describe("the Debian package", { skip: hindrance ?? false, concurrency: false }, () => {
  let base = "";
  let packages = "";
  let scene: ChildProcess;
  let pid = "";
  let service: ChildProcess | null = null;
  let output = "";

  /** Command line that enters the scene. */
  const enter = (argv: readonly string[], environment: Readonly<Record<string, string>> = {}): string[] => [
    "nsenter",
    "-t",
    pid,
    "-m",
    "-p",
    "-n",
    "env",
    "-i",
    ...Object.entries({ PATH: "/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/root", LC_ALL: "C.UTF-8", ...environment }).map(
      ([name, value]) => `${name}=${value}`,
    ),
    ...argv,
  ];
  /** Runs a command in the scene; rejects with its output when it fails. */
  function run(...argv: string[]): Promise<string> {
    const [program = "", ...args] = enter(argv);
    const { promise, resolve: done, reject } = Promise.withResolvers<string>();
    execFile(program, args, { timeout: 240_000 }, (error, stdout, stderr) =>
      error === null
        ? done(stdout)
        : reject(new Error(`${argv.join(" ")}: ${error.message}\n${stdout}${stderr}\n${output.slice(-2000)}`)),
    );
    return promise;
  }
  const shell = (line: string): Promise<string> => run("sh", "-c", line);
  const readUnit = async (name: string): Promise<Unit> => parseUnit(await run("cat", `/lib/systemd/system/${name}`));

  /** Starts the service as systemd does: folders, variables, user, capabilities and command line of the unit. */
  async function start(name: string): Promise<void> {
    const { Service = {} } = await readUnit(name);
    const only = (key: string): string | undefined => Service[key]?.[0];
    const user = only("User") ?? "root";
    for (const [parent, key] of [
      ["/var/lib", "StateDirectory"],
      ["/var/cache", "CacheDirectory"],
    ] as const)
      await run(
        "install",
        "-d",
        "-m",
        only("StateDirectoryMode") ?? "755",
        "-o",
        user,
        "-g",
        user,
        `${parent}/${only(key)}`,
      );
    const capabilities = (key: string) =>
      (only(key) ?? "")
        .split(" ")
        .filter((each) => each !== "")
        .map((each) => `,+${each.slice(4).toLowerCase()}`)
        .join("");
    const environment = Object.fromEntries(
      (Service["Environment"] ?? []).map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]),
    );
    const [program = "", ...args] = enter(
      [
        "setpriv",
        "--no-new-privs",
        `--bounding-set=-all${capabilities("CapabilityBoundingSet")}`,
        ...(user === "root"
          ? []
          : [
              `--reuid=${user}`,
              `--regid=${user}`,
              "--clear-groups",
              `--inh-caps=-all${capabilities("AmbientCapabilities")}`,
              `--ambient-caps=-all${capabilities("AmbientCapabilities")}`,
            ]),
        ...(only("ExecStart") ?? "").split(" "),
      ],
      environment,
    );
    output = "";
    service = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [service.stdout, service.stderr]) stream?.on("data", (part) => (output += String(part)));
    await until(`${name} is ready: ${output}`, async () => output.includes('"msg":"ready"'));
    await run("env", `BRUME_DATA=${environment["BRUME_DATA"] ?? "/var/lib/brume"}`, "brume", "service", "ready");
  }
  async function stop(): Promise<void> {
    const child = service;
    service = null;
    if (child === null || child.exitCode !== null) return;
    // nsenter does not pass signals on.
    await shell("kill -TERM $(pgrep -of '[b]rume/service/dist/(launch-supervisor|main).js')");
    await once(child, "close");
  }
  const guests = () => shell("pgrep -f '[q]emu-system.*guest=brume' || true").then((text) => text.trim());

  const install = "dpkg -i /mnt/packages/brume_1.1_*.deb";
  /** The script that dpkg runs after it has unpacked an upgrade. */
  const configure = "/var/lib/dpkg/info/brume.postinst configure 1.1";

  /** Runs a command with a systemd that only records calls; `active` and `enabled` are names of units. Returns what is started. */
  async function runWithSystemd(
    command: string,
    { active, enabled }: Readonly<Record<string, string>>,
  ): Promise<string[]> {
    const systemctl = `case $2 in is-active) [ "$3" = "${active}" ];; is-enabled) [ "$3" = "${enabled}" ];; esac`;
    await shell("mkdir -p /run/systemd/system /mnt/stubs && : >/mnt/stubs/log");
    for (const [name, text] of [
      ["systemctl", systemctl],
      ["deb-systemd-helper", ":"],
      ["deb-systemd-invoke", 'echo "$*" >>/mnt/stubs/log'],
    ] as const)
      await run(
        "sh",
        "-c",
        'printf "#!/bin/sh\n%s\n" "$2" >"/mnt/stubs/$1" && chmod 755 "/mnt/stubs/$1"',
        "sh",
        name,
        text,
      );
    await shell(`PATH=/mnt/stubs:$PATH ${command} && rm -r /run/systemd/system`);
    return (await run("cat", "/mnt/stubs/log")).split("\n").slice(0, -1);
  }

  before(async () => {
    base = mkdtempSync(join(tmpdir(), "brp-"));
    // In memory: a disk needs seconds to create and delete ten thousand files.
    const temporary = memoryFolder(2 ** 31) ?? tmpdir();
    packages = mkdtempSync(join(temporary, "brp-"));
    const argv = [join(project, "scripts/package.ts"), "--out", packages, "--version", "1.0"];
    const env = { ...process.env, TMPDIR: temporary };
    const first = execFileSync(process.execPath, argv, { encoding: "utf8", env });
    writeFileSync(join(packages, "brume_1.1_all.deb"), withVersion(first.trim(), "1.1"));
    const host = join(import.meta.dirname, "packagescene.sh");
    const namespaces = ["-mpfn", "--kill-child", "--propagation", "private"];
    scene = spawn("unshare", [...namespaces, "sh", host, base, packages]);
    let text = "";
    for (const stream of [scene.stdout, scene.stderr]) stream?.on("data", (part) => (text += String(part)));
    await until("the host is made", async () => text !== "" || scene.exitCode !== null);
    assert.equal(text, "ready\n");
    pid = readFileSync(`/proc/${scene.pid}/task/${scene.pid}/children`, "latin1").trim();
    await shell("! id brume >/dev/null 2>&1 || userdel brume");
  });
  after(async () => {
    scene?.stdin?.end();
    if (scene !== undefined && scene.exitCode === null) await once(scene, "close");
    for (const folder of [base, packages]) rmSync(folder, { recursive: true, force: true });
  });

  test("dpkg installs it, with command, manual, completions, units and settings", async () => {
    await shell("dpkg -i /mnt/packages/brume_1.0_*.deb");
    assert.match(await run("dpkg-query", "-W", "-f", "${Status}", "brume"), /^install ok installed$/);
    assert.match(await run("brume", "--version"), /^brume \d/);
    assert.match(await shell("zcat /usr/share/man/man1/brume.1.gz"), /^\.TH BRUME 1/im);
    for (const path of [
      "bash-completion/completions/brume",
      "zsh/vendor-completions/_brume",
      "fish/vendor_completions.d/brume.fish",
    ])
      assert.match(await run("cat", `/usr/share/${path}`), /__complete/);
    assert.match(await run("id", "brume"), /^uid=[1-9]/);
    assert.equal(
      await run("dpkg-query", "-W", "-f", "${Conffiles}", "brume").then((text) => text.trim().split(" ")[0]),
      "/etc/brume/brume.toml",
    );
    await assert.rejects(run("brume", "server", "list"), /no installation|npm start|systemctl start brume/);
    assert.equal(await shell("find /usr/lib/brume -name node -type f"), "/usr/lib/brume/bin/node\n");
    assert.equal(await shell("find /usr/lib/brume/node_modules -name '*.d.ts'"), "");
    assert.equal(await shell("find /usr/lib/brume -xtype l"), "", "links without target");
  });

  test("the units are correct", async () => {
    for (const name of ["brume.service", "brume-dns.service"]) {
      const { Service = {}, Install, Unit } = await readUnit(name);
      assert.deepEqual(Unit?.["StartLimitIntervalSec"], ["0"], "a service that cannot start yet is started again");
      assert.deepEqual(Install, { WantedBy: ["multi-user.target"] });
      await shell(`test -x ${Service["ExecStart"]?.[0]?.split(" ")[0]}`);
    }
    // Networks are mounts of the host: an option that creates a mount namespace would end them with the service.
    const { Service = {} } = await readUnit("brume.service");
    assert.deepEqual(Service["KillMode"], ["process"]);
    const forbidden =
      /^(Private|Protect(?!Proc)|ReadOnly|ReadWrite|Inaccessible|TemporaryFile|Bind|Root|Mount|DynamicUser)/;
    assert.deepEqual(
      Object.keys(Service).filter((key) => forbidden.test(key)),
      [],
    );
    const analyze = await shell("command -v systemd-analyze || true");
    if (analyze === "") console.log("systemd-analyze is not installed: units are only parsed");
    else
      assert.equal(
        (
          await shell(
            "systemd-analyze verify /lib/systemd/system/brume.service /lib/systemd/system/brume-dns.service 2>&1 || true",
          )
        )
          .split("\n")
          .filter((line) => line.includes("brume"))
          .join("\n"),
        "",
      );
  });

  test("the DNS unit answers on port 53 without root", async () => {
    await shell("printf '[dns]\\nlisten = \"127.0.0.1:53\"\\n' >>/etc/brume/brume.toml");
    await start("brume-dns.service");
    const brume = (...words: string[]) => run("env", "BRUME_DATA=/var/lib/brume-dns", "brume", ...words);
    await brume("domain", "create", "packaged.example", "--ip", "192.0.2.7");
    assert.equal((await run("dig", "+short", "@127.0.0.1", "packaged.example")).trim(), "192.0.2.7");
    assert.match(await shell("ps -o user= -p $(pgrep -f '[b]rume/service/dist/main.js')"), /^brume\n$/);
    await stop();
    await shell("sed -i '/^\\[dns]/,$d' /etc/brume/brume.toml");
  });

  test("brume init keeps the rights of the settings and the unit of the package", async () => {
    await shell("cp -p /etc/brume/brume.toml /root/brume.toml");
    const shown = await shell("brume init --yes --dns-listen 127.0.0.1:53 2>&1");
    assert.match(shown, /brume\.service of the Debian package stays/);
    assert.equal(await run("stat", "-c", "%a %U %G", "/etc/brume/brume.toml"), "640 root brume\n");
    await assert.rejects(run("test", "-e", "/etc/systemd/system/brume.service"));
    await run("mv", "/root/brume.toml", "/etc/brume/brume.toml");
  });

  test("the full unit runs a server and a network with its capabilities", async () => {
    copyAccelerator(packages);
    await shell(
      "! test -e /mnt/packages/accelerator.json || install -D -t /var/lib/brume /mnt/packages/accelerator.json",
    );
    await start("brume.service");
    await run("brume", "server", "create", "web");
    // At once, before the guest has spent processor time on its boot.
    await run("brume", "server", "power-off", "web");
    await run("brume", "server", "update", "web", "--hdd", "11");
    await run("brume", "public-network", "create", "office");
    const tunnels = [
      { Name: "a", PeerNetwork: "10.24.1.0/24", PeerEndpoint: "198.18.0.9" },
      {
        Name: "b",
        Type: "WireGuard",
        PeerNetwork: "10.24.2.0/24",
        PeerPublicKey: Buffer.alloc(32, 7).toString("base64"),
      },
    ];
    await run("brume", "vpn", "set", "office", "--tunnels", JSON.stringify(tunnels));
    await run("brume", "server", "power-on", "web");
    assert.match(await run("brume", "server", "list"), /web +Active +on/);
    assert.match(await run("curl", "-s", "-H", "accept: text/html", "http://127.0.0.1:8080/console/"), /<title>Brume/);
    await until("both engines of tunnels run", () =>
      shell("pgrep -f '[c]haron-systemd' && pgrep -f '[w]ireguard-go'").then(
        () => true,
        () => false,
      ),
    );
  });

  test("an upgrade restarts the service and not the servers", async () => {
    const running = await guests();
    assert.match(running, /^\d+$/);
    await stop();
    // The settings may be elsewhere, for example in a drop-in of the unit.
    await run("mv", "/etc/brume/brume.toml", "/root/brume.toml");
    await shell(install);
    assert.match(await run("dpkg-query", "-W", "-f", "${Status}", "brume"), /^install ok installed$/);
    await run("mv", "/root/brume.toml", "/etc/brume/brume.toml");
    assert.equal(await run("dpkg-query", "-W", "-f", "${Version}", "brume"), "1.1");
    await start("brume.service");
    assert.equal(await guests(), running);
    assert.match(await run("brume", "server", "list"), /web +Active +on/);
    await run("brume-admin", "backup", "/root/copy.db");
    await run("test", "-s", "/root/copy.db");
    await run("rm", "/root/copy.db");
  });

  test("removal stops the servers and keeps the data, purge leaves nothing", async () => {
    await stop();
    // As with PostgreSQL, the link to the database has no target.
    await shell("mv /var/lib/brume/control/brume.db /root/brume.db && test -L /var/lib/brume/brume.db");
    // Another program has the port of the API.
    const listener = "require('net').createServer().listen(8080, '127.0.0.1', () => console.log('listening'))";
    await shell(`/usr/lib/brume/bin/node -e "${listener}" >/mnt/listener 2>&1 & echo $! >/mnt/listener.pid`);
    await until("another program listens", () => shell("cat /mnt/listener").then((text) => text.includes("listening")));
    const removed = await run("dpkg", "-r", "brume");
    await shell("kill $(cat /mnt/listener.pid)");
    await run("mv", "/root/brume.db", "/var/lib/brume/control/brume.db");
    assert.match(removed, /server 1: powered off/);
    assert.equal(await guests(), "");
    assert.equal((await shell("ip netns")).trim(), "");
    await run("test", "-e", "/var/lib/brume/brume.db");
    assert.deepEqual(await runWithSystemd(install, { active: "", enabled: "brume.service" }), ["start brume.service"]);
    assert.deepEqual(await runWithSystemd(configure, { active: "brume-dns.service", enabled: "brume.service" }), [
      "restart brume-dns.service",
    ]);
    await run("dpkg", "-P", "brume");
    const written = (await shell("cd /mnt/upper && find . ! -type d"))
      .split("\n")
      .filter((path) => path !== "" && !kept.test(path));
    assert.deepEqual(written, []);
    await assert.rejects(run("id", "brume"));
    const tag = tagOf("/var/lib/brume");
    const left = `/run/brume-${tag} /sys/fs/cgroup/brume-${tag} /sys/fs/cgroup/*/brume-${tag}`;
    assert.equal(await shell(`ls -d ${left} 2>/dev/null || true`), "");
  });
});
