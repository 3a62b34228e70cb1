/**
 * Compares real servers with the engines alone: from the request to ssh against the same VM started by a script, a disk copy against a
 * copy of the disk's file, and many servers at once. It runs the complete service, with a network namespace as its host.
 * `npm run bench -- boot`, as root.
 */
import { execFileSync, spawn } from "node:child_process";
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { initrdName, kernelName, layerName } from "../service/src/drivers/machine/disk/disk.ts";
import { type GuestImage, readImage } from "../service/src/drivers/machine/image/manifest.ts";
import { qemuArguments } from "../service/src/drivers/machine/qemu/arguments.ts";
import { pendingTapOf } from "../service/src/drivers/machine/qemu/name.ts";
import { renderSeed } from "../service/src/drivers/machine/seed/files.ts";
import { writeSeed } from "../service/src/drivers/machine/seed/volume.ts";
import { guest } from "../test/host/imageguest.ts";
import { createServerHost, hindrance, type ServerHost } from "../test/host/serverhost.ts";
import { findCapabilities, machine } from "../test/support/machinelab.ts";

if (hindrance !== null) throw new Error(`no servers can be measured here: ${hindrance}`);
const found = await findCapabilities();
const accelerator = ("capabilities" in found && found.capabilities.accelerator) || "tcg";
console.log(`both run with ${accelerator}`);
const rounds = Number(process.argv[2] ?? 3);
const manyServers = Number(process.argv[3] ?? 20);

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
const seconds = (ms: number): string => (ms / 1000).toFixed(2);
const small = { CPU: 1, RAM: 128, HDD: 1 } as const;

/** Returns the milliseconds from `begun` until port 22 sends its banner, read by a shell on the host. */
async function untilBanner(host: ServerHost, address: string, begun: number): Promise<number> {
  const command = ["netns", "exec", host.lab.machine, "timeout", "0.3", "busybox", "nc", "-w", "1", address, "22"];
  for (;;) {
    const child = spawn("ip", command, { stdio: ["ignore", "pipe", "ignore"] });
    let output = "";
    child.stdout.on("data", (bytes) => (output += String(bytes)));
    await new Promise((done) => child.once("close", done));
    if (output.startsWith("SSH-")) return performance.now() - begun;
    if (performance.now() - begun > 120_000) throw new Error(`${address} does not respond`);
    await sleep(20);
  }
}

const gateway = "10.99.0.1";
const address = "10.99.0.2";

/** Starts a VM as a script would: an overlay, a seed, a tap in a bridge, and the same command line as the driver. */
async function startBare(host: ServerHost, image: GuestImage, images: string): Promise<number> {
  const { machine: space, tag, runFolder } = host.lab;
  const root = join(runFolder, "bare");
  const disk = join(root, "disk-1");
  const mac = "02:42:99:00:00:02";
  const bareGuest = guest({
    instanceId: "bare",
    sshKeys: [host.key.line],
    nameServers: [],
    nics: [{ mac, addresses: [`${address}/24`], gateway4: gateway, gateway6: null, mtu: null, dhcp: false }],
  });
  const spec = machine({ id: 1, nics: [{ id: 1, mac }] });
  const tap = pendingTapOf(tag, 1);
  const ip = (...argv: string[]) => execFileSync("ip", ["-n", space, ...argv]);
  const argv = qemuArguments({ tag, machine: spec, boot: "kernel", layer: 1, accelerator });
  const begun = performance.now();
  mkdirSync(disk, { recursive: true });
  mkdirSync(join(root, "run"));
  const base = join(images, image.name);
  execFileSync("qemu-img", [
    "create",
    "-q",
    "-f",
    "qcow2",
    "-F",
    "qcow2",
    "-b",
    join(base, image.files.disk),
    join(disk, layerName(1)),
    "1G",
  ]);
  linkSync(join(base, image.files.kernel ?? ""), join(disk, kernelName));
  linkSync(join(base, image.files.initrd ?? ""), join(disk, initrdName));
  writeFileSync(join(root, "seed.img"), writeSeed(renderSeed(bareGuest)));
  ip("link", "add", "bare0", "type", "bridge");
  ip("addr", "add", `${gateway}/24`, "dev", "bare0");
  ip("link", "set", "bare0", "up");
  ip("tuntap", "add", "dev", tap, "mode", "tap");
  ip("link", "set", tap, "master", "bare0", "up");
  const [program = "", ...options] = argv.filter((word) => word !== "-S");
  const child = spawn("ip", ["netns", "exec", space, program, ...options], { cwd: join(root, "run"), stdio: "ignore" });
  try {
    return await untilBanner(host, address, begun);
  } finally {
    child.kill("SIGKILL");
    await new Promise((done) => child.once("exit", done));
    ip("link", "del", tap);
    ip("link", "del", "bare0");
    rmSync(root, { recursive: true });
  }
}

/** Returns the milliseconds from `begun` until the API shows the server as active. */
async function untilActive(host: ServerHost, id: number, begun: number): Promise<number> {
  for (;;) {
    const { State } = await host.read(id);
    if (State === "Active") return performance.now() - begun;
    if (State !== "New") throw new Error(`server ${id} is ${State}`);
    await sleep(50);
  }
}

/** Creates a server. Returns the milliseconds from the request to the SSH banner, and to the response with the state `Active`. */
async function startOurs(host: ServerHost): Promise<{ readonly sshReady: number; readonly active: number }> {
  const begun = performance.now();
  const body = { Name: "ours", ...small, SshKeys: [host.keyId], WaitFor: "Ssh" as const };
  const { ID, IP } = await host.client.createServer({ body });
  const [sshReady, active] = await Promise.all([untilBanner(host, IP, begun), untilActive(host, ID, begun)]);
  await host.delete(ID);
  return { sshReady, active };
}

const time = async (work: () => Promise<unknown>): Promise<number> => {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
};

/** Copies a running server that has written 100 MB, and compares the time with that of a complete copy of its disk file. */
async function measureCopy(host: ServerHost) {
  const source = await host.create({ Name: "source" });
  await host.run(source.IP, "dd if=/dev/urandom of=/root/noise bs=1M count=100 2>/dev/null; sync");
  const disk = join(host.brume.folder, "servers", String(source.ID), "disk-1", layerName(1));
  const fullImage = join(host.lab.runFolder, "whole.qcow2");
  const bare = await time(async () => execFileSync("cp", ["--sparse=always", "--reflink=never", disk, fullImage]));
  rmSync(fullImage);
  const copies: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const { ID } = await host.client.copyServer({ path: { id: source.ID }, body: { Name: "copy" } });
    const { Steps } = await host.lastAction(ID);
    const snapshot = Steps.find(({ Name }) => Name === "Disk")?.EndDate ?? "";
    const [first] = Steps;
    copies.push(Date.parse(snapshot) - Date.parse(first?.StartDate ?? ""));
    await host.delete(ID);
  }
  await host.delete(source.ID);
  return { bare, copy: median(copies) };
}

/** Creates all servers at once. A server that is rejected or does not boot is a failure. */
async function measureMany(host: ServerHost, Count: number): Promise<number> {
  const begun = performance.now();
  const body = { Name: "node-{n}", Count, ...small, WaitFor: "Ssh" as const };
  const batch = await host.client.createBatch({ body });
  for (const { ID } of batch.Servers) {
    const path = { id: ID };
    const { State, Error: why } = await host.client.waitFor("readServer", { path }, { timeout: 3_600_000 });
    if (State !== "Active") throw new Error(`server ${ID} is ${State}: ${why?.detail}`);
  }
  const took = performance.now() - begun;
  await host.client.deleteBatch({ body: { ID: batch.ID } }, { wait: 60 });
  return took;
}

// Twenty servers of one core on two cores.
const host = await createServerHost({ BRUME_CPU_OVERCOMMIT: "10" });
try {
  const images = join(host.brume.folder, "images");
  const image = await readImage(images, "brume-tiny");
  if (image === null) throw new Error("there is no image brume-tiny");
  const bare: number[] = [];
  const sshReady: number[] = [];
  const active: number[] = [];
  for (let round = 0; round < rounds; round++) {
    bare.push(await startBare(host, image, images));
    const ours = await startOurs(host);
    sshReady.push(ours.sshReady);
    active.push(ours.active);
  }
  const rows: Record<string, Record<string, string>> = {};
  const row = (name: string, one: number, other: number) => {
    rows[name] = { "bare s": seconds(one), "Brume s": seconds(other), ratio: (other / one).toFixed(2) };
  };
  row("request to ssh", median(bare), median(sshReady));
  row("request to response, WaitFor Ssh", median(bare), median(active));
  const { bare: cp, copy } = await measureCopy(host);
  row("copy of a disk with 100 MB, against cp", cp, copy);
  if (manyServers > 0) {
    const took = await measureMany(host, manyServers);
    row(`${manyServers} servers at once, against the script ${manyServers} times`, median(bare) * manyServers, took);
  }
  const [load = ""] = readFileSync("/proc/loadavg", "utf8").split(" ");
  console.log(`medians of ${rounds} rounds, load of the machine at the end ${load}`);
  console.table(rows);
} finally {
  await host.close();
}
