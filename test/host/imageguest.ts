/**
 * Test fixture: one guest under QEMU, started without the driver, to test an image by itself. The CPU is emulated, QEMU's user network
 * forwards a port of the loopback interface to the guest's port 22, the serial line is a string, and the monitor is a function.
 */
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { GuestImage } from "../../service/src/drivers/machine/image/manifest.ts";
import type { SeedFile } from "../../service/src/drivers/machine/interface.ts";
import type { Guest } from "../../service/src/drivers/machine/seed/files.ts";
import { writeSeed } from "../../service/src/drivers/machine/seed/volume.ts";
import { freePort } from "../support/port.ts";
import { until } from "../support/waituntil.ts";

export const mac = "52:54:00:00:02:0f";

/** A guest's spec, of which a test changes some fields. */
export const guest = (spec: Partial<Guest> = {}): Guest => ({
  instanceId: "i-1",
  hostName: "one",
  adminUser: "root",
  passwordHash: null,
  sshKeys: [],
  nameServers: ["10.0.2.3"],
  nics: [
    {
      mac,
      addresses: ["10.0.2.15/24", "fd24::15/64"],
      gateway4: "10.0.2.2",
      gateway6: null,
      mtu: 1400,
      dhcp: false,
    },
  ],
  userData: null,
  ...spec,
});

export interface Key {
  readonly path: string;
  readonly line: string;
}

export function createKey(folder: string): Key {
  const path = join(folder, "key");
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", path]);
  return { path, line: readFileSync(`${path}.pub`, "utf8").trim() };
}

export interface Running {
  readonly pid: number;
  /** Returns the output of the serial line so far. */
  serial(): string;
  /** Waits for a match on the serial line. */
  says(what: RegExp, seconds?: number): Promise<RegExpExecArray>;
  /** Types on the serial line. */
  type(text: string): void;
  /**
   * Standard output of a command, or null when ssh or the command fails. `password` goes by SSH_ASKPASS, always with a new connection;
   * connections with a key stay open until the guest ends, or until `restarted` is called.
   */
  ssh(command: string, by: (Key | { readonly password: string }) & { readonly user?: string }): string | null;
  /** Opens new connections for later commands: a restart of the guest ended the others. */
  restarted(): void;
  monitor(execute: string, given?: object): Promise<unknown>;
  /** Resolves when the process has ended by itself. */
  ended(seconds?: number): Promise<void>;
  close(): Promise<void>;
}

export interface BootOptions {
  readonly folder: string;
  readonly images: string;
  readonly image: GuestImage;
  readonly seed: readonly SeedFile[];
  readonly memory?: number;
  readonly cpus?: number;
  /** State that two boots of one disk share. */
  readonly disk: string;
  readonly extra?: readonly string[];
}

/** An overlay of the image's disk. */
export function createDisk(images: string, image: GuestImage, path: string, gb: number): string {
  const base = join(images, image.name, image.files.disk);
  execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", base, path, `${gb}G`]);
  return path;
}

export async function boot(options: BootOptions): Promise<Running> {
  const { folder, images, image } = options;
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  const seedPath = join(folder, "seed.img");
  writeFileSync(seedPath, writeSeed(options.seed));
  const qmp = join(folder, "qmp");
  rmSync(qmp, { force: true });
  const file = (name: string | undefined) => join(images, image.name, name ?? "");
  const argv = [
    ["-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35"],
    ["-accel", "tcg,thread=multi,tb-size=64", "-cpu", "max"],
    ["-m", `${options.memory ?? 256},slots=4,maxmem=2048M`, "-smp", String(options.cpus ?? 1)],
    image.boot === "kernel" ? ["-kernel", file(image.files.kernel), "-initrd", file(image.files.initrd)] : [],
    image.boot === "kernel"
      ? ["-append", "console=ttyS0 quiet no_timer_check cryptomgr.notests panic=10 net.ifnames=0 swiotlb=noforce"]
      : [],
    ["-blockdev", `driver=qcow2,node-name=d,discard=unmap,file.driver=file,file.filename=${options.disk}`],
    ["-device", "virtio-blk-pci,drive=d,addr=0x3,bootindex=1"],
    ["-blockdev", `driver=raw,node-name=s,read-only=on,file.driver=file,file.filename=${seedPath}`],
    ["-device", "virtio-blk-pci,drive=s,addr=0x4", "-device", "virtio-rng-pci", "-device", "virtio-balloon-pci"],
    ["-device", "pcie-root-port,id=rp0,chassis=1,slot=1", "-device", "pcie-root-port,id=rp1,chassis=2,slot=2"],
    ["-netdev", `user,id=n0,restrict=on,hostfwd=tcp:127.0.0.1:${port}-:22`],
    ["-device", `virtio-net-pci,netdev=n0,mac=${mac},bus=rp0`],
    ["-qmp", `unix:${qmp},server=on,wait=off`, "-serial", "stdio", ...(options.extra ?? [])],
  ].flat();
  const child = spawn("qemu-system-x86_64", argv, { stdio: ["pipe", "pipe", "inherit"] });
  const exit = once(child, "exit");
  let serial = "";
  let boots = 1;
  child.stdout.on("data", (bytes: Buffer) => {
    serial += bytes.toString("latin1");
  });
  child.stdin.on("error", () => {});
  const monitor = await openMonitor(qmp, child);
  const running: Running = {
    pid: child.pid ?? 0,
    serial: () => serial,
    async says(what, seconds = 240) {
      return until(`the serial line has ${what}`, () => what.exec(serial), seconds * 1000).catch(() => {
        throw new Error(`no ${what} within ${seconds} s; the serial line ends with ${serial.slice(-2000)}`);
      });
    },
    type: (text) => void child.stdin.write(text),
    ssh(command, by) {
      // An emulated guest spends most of a short login on the key exchange: logins with the same key and user share a connection.
      const shared = (key: Key) =>
        [
          "ControlMaster=auto",
          "ControlPersist=yes",
          `ControlPath=${key.path}-${by.user ?? "root"}-${child.pid}-${boots}`,
        ].flatMap((option) => ["-o", option]);
      const login =
        "path" in by ? ["-i", by.path, "-o", "BatchMode=yes", ...shared(by)] : ["-o", "PubkeyAuthentication=no"];
      const askpass = join(folder, "askpass");
      if ("password" in by) writeFileSync(askpass, `#!/bin/sh\nprintf '%s\\n' '${by.password}'\n`, { mode: 0o700 });
      const rest = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "ConnectTimeout=5"];
      const args = [
        ...login,
        ...rest.flatMap((option) => ["-o", option]),
        "-p",
        String(port),
        `${by.user ?? "root"}@127.0.0.1`,
        command,
      ];
      try {
        const env = { ...process.env, SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: "force" };
        const stdio = ["ignore" as const, "pipe" as const, "ignore" as const];
        return execFileSync("ssh", args, { encoding: "utf8", timeout: 60_000, stdio, env }).trim();
      } catch {
        return null;
      }
    },
    restarted: () => {
      boots += 1;
    },
    monitor,
    async ended(seconds = 240) {
      const limit = sleep(seconds * 1000, "late", { ref: false });
      assert.notEqual(await Promise.race([exit, limit]), "late", `still running after ${seconds} s`);
    },
    async close() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill("SIGKILL");
        await exit;
      }
    },
  };
  return running;
}

/** QMP on a Unix socket; commands are sent one at a time. */
async function openMonitor(path: string, child: ChildProcess): Promise<Running["monitor"]> {
  const socket = await (async () => {
    for (;;) {
      const socket = connect(path);
      try {
        await once(socket, "connect");
        return socket;
      } catch (error) {
        if (child.exitCode !== null || child.signalCode !== null) throw error;
        await sleep(100);
      }
    }
  })();
  socket.on("error", () => {});
  const waiting: ((line: Readonly<Record<string, unknown>>) => void)[] = [];
  createInterface({ input: socket }).on("line", (text) => {
    const line = JSON.parse(text) as Readonly<Record<string, unknown>>;
    if ("return" in line || "error" in line) waiting.shift()?.(line);
  });
  const runCommand: Running["monitor"] = (execute, given = {}) =>
    new Promise((resolve, reject) => {
      waiting.push((line) =>
        "return" in line ? resolve(line["return"]) : reject(new Error(JSON.stringify(line["error"]))),
      );
      socket.write(`${JSON.stringify({ execute, arguments: given })}\n`);
    });
  await runCommand("qmp_capabilities");
  return runCommand;
}
