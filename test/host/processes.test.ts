/**
 * The service as two processes: what the control plane may do, read from /proc, and what happens when either process, or the supervisor,
 * ends. A guest, started from an uploaded image, runs and is pinged all the time. The installation begins as one process, as an earlier
 * release left it.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chownSync, mkdirSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { exec } from "../../service/src/drivers/exec.ts";
import { findDaemons } from "../../service/src/drivers/router/linux/daemon.ts";
import { namespaceOf } from "../../service/src/drivers/router/model/name.ts";
import { readAccount } from "../../service/src/launch/account.ts";
import { whyNot } from "../support/hindrance.ts";
import { until } from "../support/waituntil.ts";
import { bootMark, makeBootDisk } from "./bootdisk.ts";
import { tellConsoleStories } from "./consolestory.ts";
import { halvesOf, startPing } from "./halves.ts";
import { createServerHost, type ServerHost, hindrance as serverHindrance } from "./serverhost.ts";
import { checkInterruptedUpload, uploadDisk } from "./uploadkills.ts";

const hindrance = serverHindrance ?? (whyNot("grub-mkimage", "debugfs") || null);
if (hindrance !== null) console.log(`the two processes of the service: not tried, ${hindrance}`);

const account = () => readAccount() ?? assert.fail("the user of the control plane does not exist");

const field = (pid: number, name: string): string =>
  new RegExp(`^${name}:[ \\t]*(.*)$`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]?.trim() ?? "";

describe("two processes", { skip: hindrance ?? false, concurrency: false }, () => {
  let host: ServerHost;
  let server = { id: 0, address: "", pid: 0 };
  /** The engines of a network with tunnels, as text. */
  let engines = "";
  let edge = "";
  /** A file with a disk that boots by itself. */
  let disk = "";
  async function readEngines(): Promise<string> {
    const found = ["charon-systemd", "wireguard-go"].map((program) => findDaemons(exec, edge, program));
    return JSON.stringify(await Promise.all(found));
  }
  const control = () => halvesOf(host.brume.pid)["control"] ?? assert.fail("the control plane does not run");
  const agent = () => halvesOf(host.brume.pid)["agent"] ?? assert.fail("the agent does not run");
  const readFence = () => Number(readFileSync(join(host.brume.folder, "fence"), "utf8"));
  const answers = () =>
    until("the API answers", () =>
      fetch(`${host.brume.url}/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
  /** The guest and the engines of tunnels are the same processes, the API knows that it runs, and changes of servers and networks work. */
  async function assertWell(name: string): Promise<void> {
    await answers();
    assert.equal(host.pidOf(server.id), server.pid);
    assert.equal(await readEngines(), engines);
    const { State, IsPowerOn } = await host.read(server.id);
    assert.deepEqual([State, IsPowerOn], ["Active", true]);
    const { Id } = await host.client.createPublicNetwork({ body: { Name: name } }, { wait: 60 });
    const { AppliedGeneration, Generation } = await host.client.readPublicNetwork({ path: { id: Id } });
    assert.equal(AppliedGeneration, Generation);
    await host.client.deletePublicNetwork({ path: { id: Id } }, { wait: 60 });
  }

  before(async () => {
    host = await createServerHost();
    disk = join(host.lab.runFolder, "boot.qcow2");
    await makeBootDisk(disk);
    const image = await uploadDisk(host, disk, "uploaded");
    assert.equal(image.State, "Active", image.Error?.detail);
    const { ID, IP } = await host.create({ Name: "kept", ImageID: String(image.ID) });
    server = { id: ID, address: IP ?? "", pid: host.pidOf(ID) ?? 0 };
    const network = await host.client.createPublicNetwork({ body: { Name: "tunnels" } }, { wait: 60 });
    const Tunnels = [
      { Name: "a", PeerNetwork: "10.24.1.0/24", PeerEndpoint: "198.18.0.2" },
      {
        Name: "b",
        Type: "WireGuard" as const,
        PeerNetwork: "10.24.2.0/24",
        PeerPublicKey: Buffer.alloc(32, 7).toString("base64"),
      },
    ];
    await host.client.configureVpn({ path: { id: network.Id }, body: { Tunnels } }, { wait: 60 });
    edge = namespaceOf(host.tag, network.Id);
    await until("both engines run", async () => {
      engines = await readEngines();
      return engines.match(/"pid"/g)?.length === 2;
    });
  });
  after(() => host?.close());

  test("an installation of one process continues as two, and its guests and packets notice nothing", async () => {
    const ping = startPing(host.lab.machine, server.address);
    await host.brume.end("SIGTERM");
    host.brume.set("BRUME_PROCESSES", "2");
    await host.brume.start();
    assert.ok(host.brume.log.some(({ process, msg }) => process === "control" && msg === "ready"));
    await assertWell("converted");
    assert.deepEqual(await ping.end(), []);
    const { uid } = account();
    for (const name of ["control", "control/brume.db", "control/key"])
      assert.equal(statSync(join(host.brume.folder, name)).uid, uid, name);
    for (const name of ["", "servers", "images", "fence"])
      assert.equal(statSync(join(host.brume.folder, name)).uid, 0, name);
  });

  test("the guest was started by the boot loader of the uploaded disk", async () => {
    assert.match(await host.run(server.address, "cat /proc/cmdline; hostname"), new RegExp(`${bootMark}\nkept$`));
  });

  test("an upload continues after each process was killed, and leaves nothing else", async () => {
    const kill = async (pidOf: () => number): Promise<void> => {
      const pid = pidOf();
      process.kill(pid, "SIGKILL");
      await until("another process", async () => {
        const now = Object.values(halvesOf(host.brume.pid));
        return now.length === 2 && !now.includes(pid);
      });
      await answers();
    };
    await checkInterruptedUpload(host, disk, { killAgent: () => kill(agent), killControl: () => kill(control) });
    await assertWell("after-uploads");
  });

  test("the control plane has no right but to serve", () => {
    const pid = control();
    const { uid, gid } = account();
    assert.deepEqual(field(pid, "Uid").split("\t"), Array(4).fill(String(uid)));
    assert.deepEqual(field(pid, "Gid").split("\t"), Array(4).fill(String(gid)));
    assert.equal(field(pid, "Groups"), "");
    for (const name of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"])
      assert.equal(field(pid, name), "0000000000000000", name);
    assert.equal(field(pid, "NoNewPrivs"), "1");
    const threads = readdirSync(`/proc/${pid}/task`);
    for (const thread of threads)
      assert.match(readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8"), /^Seccomp:\t2$/m, `thread ${thread}`);
    assert.match(readFileSync(`/proc/${pid}/limits`, "utf8"), /^Max core file size +0 +0 /m);
    assert.equal(field(agent(), "Uid").split("\t")[1], "0");
  });

  test("the agent starts what configures networks from a process with two capabilities", () => {
    const children = (pid: number) =>
      readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
    const starters = children(agent()).flatMap(children);
    assert.deepEqual(
      starters.map((pid) => [field(pid, "CapBnd"), field(pid, "NoNewPrivs")]),
      [["0000000000201000", "1"]],
    );
  });

  test("it sees its code, libraries and folder, and has nothing else open", () => {
    const pid = control();
    const { folder } = host.brume;
    const mounts = readFileSync(`/proc/${pid}/mounts`, "utf8")
      .trim()
      .split("\n")
      .map((line) => line.split(" "));
    const isDevice = (path = "") => /^\/dev\/(null|zero|random|urandom)$/.test(path);
    const writable = mounts.filter(([, path, , options]) => options?.split(",")[0] === "rw" && !isDevice(path));
    assert.deepEqual(
      writable.map(([, path]) => path),
      [join(folder, "control")],
    );
    const top = readdirSync(`/proc/${pid}/root`);
    assert.deepEqual(
      top.filter((name) => ["root", "home", "sys", "var", "boot"].includes(name)),
      [],
    );
    assert.deepEqual(readdirSync(join(`/proc/${pid}/root`, folder)), ["control"]);
    /** Whether an open file is one that the process may open by its path, for reading. Node.js reads authorities' certificates at times. */
    const isReadInside = (fd: string, path: string): boolean => {
      const isReadOnly = /^flags:\t0[0-7]*0$/m.test(readFileSync(`/proc/${pid}/fdinfo/${fd}`, "utf8"));
      const inside = statSync(join(`/proc/${pid}/root`, path), { throwIfNoEntry: false });
      return isReadOnly && inside?.ino === statSync(`/proc/${pid}/fd/${fd}`).ino;
    };
    const foreign = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        const path = readlinkSync(`/proc/${pid}/fd/${fd}`);
        if (/^(socket|pipe|anon_inode):/.test(path) || isDevice(path) || path.startsWith(join(folder, "control/")))
          return [];
        return isReadInside(fd, path) ? [] : [path];
      } catch (error) {
        // Closed since.
        if ((error as { code?: string }).code === "ENOENT") return [];
        throw error;
      }
    });
    assert.deepEqual(foreign, []);
    // Written from inside, as its user.
    const { uid, gid } = account();
    const attempt = `const fs = require("node:fs"); const written = [];
for (const path of ["/tmp", "/var/tmp", "/dev/shm", "/run", "/", "/etc", ...process.argv.slice(1)])
  try { fs.writeFileSync(path + "/brume-written", ""); fs.unlinkSync(path + "/brume-written"); written.push(path); } catch {}
console.log(JSON.stringify(written));`;
    const inside = ["-m", "-t", String(pid), "-S", String(uid), "-G", String(gid), process.execPath, "-e", attempt];
    const { stdout } = spawnSync("nsenter", [...inside, folder, join(folder, "servers"), join(folder, "control")], {
      encoding: "utf8",
    });
    assert.deepEqual(JSON.parse(stdout), [join(folder, "control")]);
  });

  test("it serves the files of the web console, and the documents", async () => {
    const page = await fetch(`${host.brume.url}/console/`, { headers: { accept: "text/html" } });
    assert.equal(page.status, 200);
    const scripts = [...(await page.text()).matchAll(/<script [^>]*src="([^"]*)"/g)].flatMap(([, path]) => path ?? []);
    assert.ok(scripts.length > 1);
    for (const path of [
      ...scripts,
      "/docs",
      "/docs/operate",
      "/docs/errors",
      "/docs/files/docs/reference.png",
      "/docs/changelog",
    ])
      assert.equal((await fetch(host.brume.url + path)).status, 200, path);
  });

  test("a server is created in a browser; one logs in on its serial console and types on its screen", async () => {
    await tellConsoleStories(host);
  });

  test("an administrator sees where a setting comes from, but no path of the host", async () => {
    const all = await host.client.listSettings({});
    const of = (name: string) => {
      const found = all.find(({ Name }) => Name === name);
      return [found?.Value, found?.Source, found?.IsHidden];
    };
    assert.deepEqual(of("processes"), ["2", "Variable", false]);
    assert.deepEqual(of("data"), [null, "Variable", true]);
    assert.ok(!JSON.stringify(all).includes(host.brume.folder));
  });

  test("secrets of the control plane are not in the environment of the agent", () => {
    const names = (pid: number) =>
      readFileSync(`/proc/${pid}/environ`, "utf8")
        .split("\0")
        .map((line) => line.split("=")[0]);
    assert.ok(names(control()).includes("BRUME_TOKEN"));
    assert.ok(!names(agent()).includes("BRUME_TOKEN"));
    assert.ok(names(agent()).includes("BRUME_DATA"));
  });

  for (const [half, pidOf] of [
    ["agent", agent],
    ["control plane", control],
  ] as const)
    test(`the ${half} is killed and started again; guests, packets and the other process continue`, async () => {
      const ping = startPing(host.lab.machine, server.address);
      const other = half === "agent" ? control : agent;
      const [killed, kept] = [pidOf(), other()];
      const fence = readFence();
      process.kill(killed, "SIGKILL");
      await until(`another ${half}`, async () => {
        const now = Object.values(halvesOf(host.brume.pid));
        return now.length === 2 && !now.includes(killed);
      });
      await assertWell(`after-${half.split(" ")[0]}`);
      assert.equal(other(), kept);
      // A new control plane gets a number of its own, and a new agent knows that of the present one.
      assert.equal(readFence(), half === "agent" ? fence : fence + 1);
      assert.deepEqual(await ping.end(), []);
    });

  test("without the agent, reads and DNS are answered", async () => {
    const pid = agent();
    process.kill(pid, "SIGSTOP");
    try {
      const domain = await host.client.createDomain({ body: { Name: "alone.example", Ip: "192.0.2.7" } });
      assert.equal(domain.Name, "alone.example");
      assert.equal((await host.read(server.id)).State, "Active");
    } finally {
      process.kill(pid, "SIGCONT");
    }
    await assertWell("woken");
  });

  test("the supervisor is killed: both processes end, and the next start finds the guests", async () => {
    const ping = startPing(host.lab.machine, server.address);
    const both = [agent(), control()];
    host.brume.set("BRUME_DNS_LISTEN", "127.0.0.1:53");
    await host.brume.end("SIGKILL");
    await until("both have ended", async () => both.every((pid) => !isRunning(pid)));
    await host.brume.start();
    await assertWell("restarted");
    assert.deepEqual(await ping.end(), []);
  });

  test("for port 53 it has one capability, and answers over UDP and TCP", async () => {
    const names = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
    assert.deepEqual(
      names.map((name) => field(control(), name)),
      Array(5).fill("0000000000000400"),
    );
    assert.equal(host.brume.dns, "127.0.0.1:53");
    for (const how of ["+notcp", "+tcp"]) {
      const answer = await host.lab.run(host.lab.machine, ["dig", "+short", how, "@127.0.0.1", "alone.example"]);
      assert.equal(answer.trim(), "192.0.2.7", how);
    }
  });

  test("SIGTERM stops both in order, with exit code 0, and backup and removal work", async () => {
    const early = await host.command("down.ts");
    assert.equal(early.status, 1);
    assert.match(early.output, /^BRUME_DATA: process \d+ already runs with .*\. Stop it first\.\n$/);
    const both = [agent(), control()];
    assert.equal(await host.brume.end("SIGTERM"), 0);
    assert.ok(both.every((pid) => !isRunning(pid)));
    assert.equal(host.pidOf(server.id), server.pid);
    const copy = join(host.lab.runFolder, "copy.db");
    const backup = await host.command("backup.ts", copy);
    assert.equal(backup.status, 0, backup.output);
    const compact = await host.command("compact.ts");
    assert.equal(compact.status, 0, compact.output);
    const down = await host.command("down.ts");
    assert.equal(down.status, 0, down.output);
    assert.equal(host.pidOf(server.id), null);
    // An earlier build has left compiled code.
    const compiled = join(host.brume.folder, "control/compiled");
    const { uid, gid } = statSync(compiled);
    mkdirSync(join(compiled, "earlier"));
    chownSync(join(compiled, "earlier"), uid, gid);
    // Scripts of root leave files that the control plane can use.
    await host.brume.start();
    await until("the earlier code is removed", () => readdirSync(compiled).length === 1);
    // The process exists before the service has noted that the server is on.
    await until("the server runs again", () =>
      host.read(server.id).then(
        ({ State, IsPowerOn }) => State === "Active" && IsPowerOn && host.pidOf(server.id) !== null,
        () => false,
      ),
    );
    server = { ...server, pid: host.pidOf(server.id) ?? 0 };
    await until("the engines run again", async () => (engines = await readEngines()).match(/"pid"/g)?.length === 2);
    await assertWell("after-down");
  });
});

function isRunning(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, "latin1").includes(") Z ");
  } catch {
    return false;
  }
}
