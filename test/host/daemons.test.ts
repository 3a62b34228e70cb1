/**
 * What the daemons of a network may do, read from /proc: dnsmasq, charon and wireguard-go see their own files only, have few capabilities
 * and a filter of system calls, and cannot send a signal to another process of the host.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { exec } from "../../service/src/drivers/exec.ts";
import type { Router } from "../../service/src/drivers/router/interface.ts";
import { createIpsec } from "../../service/src/drivers/router/ipsec/ipsec.ts";
import { findDaemons } from "../../service/src/drivers/router/linux/daemon.ts";
import { ipsecTunnels, wireguardTunnels } from "../../service/src/drivers/router/linux/tunnels.ts";
import { namespaceOf } from "../../service/src/drivers/router/model/name.ts";
import { createPrivate, publicKeyOf } from "../../service/src/drivers/router/model/wireguardkey.ts";
import { createWireguard } from "../../service/src/drivers/router/wireguard/wireguard.ts";
import { whyNot } from "../support/hindrance.ts";
import { createLab, type Guest, hindrance, type Lab } from "../support/netnslab.ts";
import { image, port } from "../support/networkspec.ts";
import { until } from "../support/waituntil.ts";
import { startIn } from "./spaceprocess.ts";

const skip = hindrance ?? whyNot("ip", "nft", "charon-systemd", "wireguard-go", "perl");

/** Bits of capability.h. */
const bindService = 1n << 10n;
const netAdmin = 1n << 12n;
const netRaw = 1n << 13n;

describe("daemons of a network", { skip, concurrency: false }, () => {
  let lab: Lab;
  let router: Router;
  let guest: Guest;
  const edge = () => namespaceOf(lab.tag, 7);
  const pidOf = async (program: string): Promise<number> =>
    (await findDaemons(exec, edge(), program))[0]?.pid ?? assert.fail(`${program} does not run`);
  const field = (pid: number, name: string): string =>
    new RegExp(`^${name}:[ \\t]*(.*)$`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]?.trim() ?? "";
  const capabilities = (pid: number, name: string): bigint => BigInt(`0x${field(pid, name)}`);
  /** Returns the paths that the process can write to, except devices. */
  const writable = (pid: number): string[] =>
    readFileSync(`/proc/${pid}/mounts`, "utf8")
      .trim()
      .split("\n")
      .map((line) => line.split(" "))
      .filter(([, , , options]) => !options?.startsWith("ro,"))
      .map(([, path = ""]) => path);

  function assertConfined(pid: number, devices: readonly string[], rights: bigint): void {
    assert.equal(field(pid, "NoNewPrivs"), "1");
    assert.equal(capabilities(pid, "CapEff") & ~rights, 0n);
    assert.equal(capabilities(pid, "CapBnd"), rights);
    for (const thread of readdirSync(`/proc/${pid}/task`))
      assert.match(readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8"), /^Seccomp:\t2$/m);
    assert.match(readFileSync(`/proc/${pid}/limits`, "utf8"), /^Max core file size +0 +0 /m);
    const root = `/proc/${pid}/root`;
    assert.deepEqual(
      readdirSync(root).filter((name) => ["etc", "root", "home", "sys", "boot", "opt", "srv"].includes(name)),
      [],
    );
    assert.deepEqual(readdirSync(`${root}/old`), []);
    assert.deepEqual(readdirSync(`${root}/dev`).sort(), devices);
    assert.throws(() => readdirSync(`${root}/proc`), /ENOENT/);
  }

  before(async () => {
    lab = await createLab();
    const options = {
      exec,
      runFolder: lab.runFolder,
      now: Date.now,
      random: randomBytes,
      lookup: async (host: string) => host,
      log: () => {},
    };
    const ipsec = createIpsec({ ...options, kernelEsp: lab.capabilities.kernelEsp });
    router = lab.open({ tunnels: [ipsecTunnels(ipsec), wireguardTunnels(createWireguard(options))] });
    const key = createPrivate(randomBytes);
    const subnets = { localSubnets: ["10.64.0.8/29"], peerSubnets: ["10.24.0.0/24"] };
    const spec = image({
      dhcp: { enabled: true, router: "10.64.0.9", dns: [] },
      dnsForwarders: ["198.51.100.1"],
      ports: [port(1, "10.64.0.10")],
      wireguard: { privateKey: key, listenPort: 51_820 },
      tunnels: [
        {
          ...subnets,
          type: "ipsec",
          id: 10,
          enabled: true,
          mtu: 1400,
          ikeVersion: 2,
          encryption: "aes128gcm",
          digest: "sha256",
          dhGroup: 19,
          perfectForwardSecrecy: true,
          sharedKey: "Very-Secret-Key-0123456789-abcdef",
          localIdentity: "10.64.255.2",
          peer: "198.51.100.7",
          peerIdentity: "198.51.100.7",
        },
        {
          ...subnets,
          peerSubnets: ["10.25.0.0/24"],
          type: "wireguard",
          id: 20,
          enabled: true,
          mtu: 1420,
          peerPublicKey: publicKeyOf(createPrivate(randomBytes)),
          presharedKey: null,
          endpoint: "198.51.100.8:51820",
          keepAlive: 0,
        },
      ],
    });
    guest = await lab.guest(spec, port(1, "10.64.0.10"));
    await router.apply(spec);
  });
  after(() => lab?.close());

  test("dnsmasq has a user of its own, sees its leases only, and writes one file", async () => {
    const pid = await pidOf("dnsmasq");
    assertConfined(pid, ["null", "random", "urandom"], bindService | netAdmin | netRaw);
    const [uid] = field(pid, "Uid").split("\t");
    assert.ok(Number(uid) >= 600_000 && Number(uid) < 690_000, uid);
    for (const name of ["Uid", "Gid"]) assert.deepEqual(field(pid, name).split("\t"), Array(4).fill(uid), name);
    assert.equal(field(pid, "Groups"), "");
    const folder = join(lab.runFolder, "7");
    assert.deepEqual(readdirSync(`/proc/${pid}/root${folder}`).sort(), ["leases", "ports"]);
    assert.deepEqual(writable(pid), [join(folder, "leases")]);
    const open = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
    assert.deepEqual(
      open.filter((path) => path.startsWith("/") && !path.startsWith("/dev/")),
      [join(folder, "leases")],
    );
    const limits = readFileSync(`/proc/${pid}/limits`, "utf8");
    for (const line of ["file size +16777216", "processes +64", "address space +536870912"])
      assert.match(limits, new RegExp(`^Max ${line} `, "m"));
  });

  for (const program of ["charon-systemd", "wireguard-go"])
    test(`${program} sees one folder, and no process but itself`, async () => {
      const pid = await pidOf(program);
      assertConfined(pid, ["net", "null", "random", "urandom"], bindService | netAdmin);
      assert.equal(writable(pid).length, 1);
      // Its user is root, so only the namespace keeps it from sending signals to other processes of root.
      assert.deepEqual(field(pid, "NSpid").split("\t"), [String(pid), "1"]);
    });

  test("what reads the banner of a server has no rights, and reads little", async () => {
    const listen = (input: string) =>
      lab.run(guest.space, ["timeout", "60", "sh", "-c", `${input} | busybox nc -l -p 22`]).catch(() => "");
    const isReady = async () => (await lab.run(guest.space, ["ss", "-Hltn"])).includes(":22 ");
    const flood = listen("yes SSH-2.0-flood | tr -d '\\n'");
    await until("a server that sends without end", isReady);
    const banner = await router.readBanner(7, "10.64.0.10", 22);
    assert.equal(banner?.length, 512);
    assert.match(banner, /^SSH-2\.0-flood/);
    await flood;

    const keepOpen = `require("net").createServer({ allowHalfOpen: true }, () => {}).listen(22)`;
    const silent = startIn(guest.space, [process.execPath, "-e", keepOpen]);
    await until("a server that sends nothing", isReady);
    // The reader ends after a second, on a slow host before it is seen.
    let rights: readonly unknown[] | null = null;
    for (let tries = 1; rights === null; tries++) {
      assert.ok(tries <= 100, "none of 100 readers was seen");
      let isReading = true;
      const reading = router.readBanner(7, "10.64.0.10", 22).finally(() => (isReading = false));
      while (isReading && rights === null) {
        const [reader] = await findDaemons(exec, edge(), "busybox");
        if (reader === undefined) continue;
        const { pid } = reader;
        try {
          const sets = ["CapEff", "CapPrm", "CapBnd"].map((name) => capabilities(pid, name));
          rights = [field(pid, "Uid").split("\t"), field(pid, "NoNewPrivs"), sets];
        } catch (error) {
          if (!["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
        }
      }
      assert.equal(await reading, null);
    }
    assert.deepEqual(rights, [Array(4).fill("699997"), "1", [0n, 0n, 0n]]);
    silent.end();
  });
});
