/**
 * Real servers for tests, with folders, names and users of their own, all removed at the end. It checks in the same way as the service
 * whether the host can run VMs.
 */
import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, describe } from "node:test";
import { exec } from "../../service/src/drivers/exec.ts";
import { type GuestImage, readImage } from "../../service/src/drivers/machine/image/manifest.ts";
import type { Consoles, MachineSpec, MachineStatus, Machines } from "../../service/src/drivers/machine/interface.ts";
import { detectMachine, type MachineCapabilities } from "../../service/src/drivers/machine/qemu/detect.ts";
import { findProcesses } from "../../service/src/drivers/machine/qemu/process.ts";
import { openQemu, type QemuDriver, type QemuOptions } from "../../service/src/drivers/machine/qemu/qemu.ts";
import { guard } from "./guard.ts";
import { whyNot } from "./hindrance.ts";
import { until } from "./waituntil.ts";

/** Images that the set-up has built. */
const built = resolve(import.meta.dirname, "../../.engines/images");
export const imageName = "brume-tiny";

export const newTag = (): string =>
  BigInt(`0x${randomBytes(4).toString("hex")}`)
    .toString(36)
    .padStart(3, "0")
    .slice(-3);

async function detect(image: GuestImage, folder: string): Promise<MachineCapabilities> {
  const { kernel = "", initrd = "" } = image.files;
  return detectMachine({
    exec,
    tag: newTag(),
    servers: join(folder, "servers"),
    uid: 699_999,
    canary: { folder: join(built, imageName), kernel, initrd },
    cache: join(built, "../accelerator.json"),
  });
}

/** Copies the result of the accelerator trial to a new data folder, so that its first start does not boot a VM to find out. */
export function copyAccelerator(folder: string): void {
  const accelerator = join(built, "../accelerator.json");
  if (existsSync(accelerator)) cpSync(accelerator, join(folder, "accelerator.json"));
}

/** The capabilities that the servers use, or the reason why there can be none here. */
export async function findCapabilities(): Promise<{ hindrance: string } | { capabilities: MachineCapabilities }> {
  const reason = whyNot("qemu-system-x86_64", "qemu-img");
  if (reason !== false) return { hindrance: reason };
  const image = await readImage(built, imageName);
  if (image === null) return { hindrance: `there is no image ${imageName} (npm run image -- tiny)` };
  const folder = mkdtempSync(join(tmpdir(), "brm-"));
  try {
    const capabilities = await detect(image, folder);
    return capabilities.accelerator === null ? { hindrance: capabilities.obstacle } : { capabilities };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export interface MachineLab {
  readonly tag: string;
  readonly servers: string;
  readonly images: string;
  readonly firstUid: number;
  readonly options: QemuOptions;
  /** Errors of background work. */
  readonly errors: readonly string[];
  /** Creates a driver for the existing state, as after a restart of the service. */
  open(): Promise<QemuDriver>;
  /** Returns the PID of a running server, else null. */
  pidOf(id: number): number | null;
  /** Returns everything that servers could leave behind. */
  traces(): string[];
  close(): Promise<void>;
}

export function createMachineLab(capabilities: MachineCapabilities): MachineLab {
  const root = mkdtempSync(join(tmpdir(), "brm-"));
  const tag = newTag();
  guard({ spaces: `brume-${tag}-.*`, tag, folder: root });
  const servers = join(root, "servers");
  const images = join(root, "images");
  mkdirSync(images);
  // A copy, because the driver makes the images of servers read-only.
  cpSync(join(built, imageName), join(images, imageName), { recursive: true });
  const firstUid = 700_000 + Math.floor(Math.random() * 1e8);
  const errors: string[] = [];
  const options: QemuOptions = {
    exec,
    tag,
    servers,
    images,
    accelerator: capabilities.accelerator ?? "tcg",
    confinement: capabilities.confinement,
    diskLimits: { operations: 20_000, bandwidth: 1000 },
    firstUid,
    boots: 2,
    now: Date.now,
    random: Math.random,
    logError: (sentence, error) => errors.push(`${sentence} ${error instanceof Error ? error.message : String(error)}`),
  };
  const opened: QemuDriver[] = [];
  const open = async () => {
    const machines = await openQemu(options);
    opened.push(machines);
    return machines;
  };
  const groups = ["", "cpu", "memory", "pids"]
    .map((name) => join("/sys/fs/cgroup", name))
    .map((folder) => join(folder, `brume-${tag}`));
  return {
    tag,
    servers,
    images,
    firstUid,
    options,
    errors,
    open,
    pidOf: (id) => findProcesses(exec, tag, firstUid).get(id)?.pid ?? null,
    traces: () => [
      ...(existsSync(servers) ? readdirSync(servers) : []),
      ...readdirSync("/sys/class/net").filter((device) => device.startsWith(`b${tag}`)),
      ...[...findProcesses(exec, tag, firstUid).keys()].map((id) => `process of server ${id}`),
      ...groups.filter((group) => existsSync(group)),
    ],
    async close() {
      const last = opened.at(-1) ?? (await open());
      for (const machine of (await last.observe()).machines) await last.remove(machine.id);
      for (const machines of opened) await machines.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/**
 * Defines tests with real VMs, each with its own lab; `newLab` creates it, `lab` returns it. After each test the lab must be without traces and errors. On a
 * host that cannot run VMs the tests are skipped, and the reason is printed.
 */
export async function describeMachines(
  title: string,
  define: (newLab: () => MachineLab, lab: () => MachineLab) => void,
): Promise<void> {
  const found = await findCapabilities();
  const hindrance = "hindrance" in found ? found.hindrance : null;
  if (hindrance !== null) console.log(`${title}: not tried, ${hindrance}`);
  describe(title, { skip: hindrance ?? false }, () => {
    let lab: MachineLab;
    const newLab = () => {
      assert.ok("capabilities" in found);
      lab = createMachineLab(found.capabilities);
      return lab;
    };
    afterEach(async () => {
      await lab.close();
      assert.deepEqual(lab.traces(), []);
      assert.deepEqual(lab.errors, []);
    });
    define(newLab, () => lab);
  });
}

/** Returns the description of an imported image that boots from its disk. */
export const guestImage = (more: Partial<GuestImage> = {}): GuestImage => ({
  name: "base",
  title: "Base",
  family: "Linux",
  os: "Linux",
  minRam: 128,
  hdd: 1,
  boot: "disk",
  format: "qcow2",
  files: { disk: "disk-1.qcow2" },
  version: "1",
  source: "",
  made: 0,
  guest: null,
  ...more,
});

/** Returns a spec, with fields that the test replaces. */
export const machine = (spec: Partial<MachineSpec> = {}): MachineSpec => {
  const id = spec.id ?? 1;
  return {
    id,
    uuid: randomUUID(),
    owner: 1,
    boot: 1,
    cpus: 1,
    memory: 128,
    share: 1,
    disk: { version: 1, gb: 1 },
    nics: [],
    seed: [{ name: "meta-data", content: JSON.stringify({ "instance-id": `i-${id}` }) }],
    ...spec,
  };
};

export const statusOf = async (machines: Machines, id: number): Promise<MachineStatus | undefined> =>
  (await machines.observe()).machines.find((one) => one.id === id);

/** Waits until the guest has booted. A guest that does not boot fails the test with its state and the end of its log. */
export async function untilReady(machines: Machines & Pick<Consoles, "readLog">, id: number): Promise<void> {
  const isReady = async () => (await statusOf(machines, id))?.stage === "ready";
  await until(`server ${id} is ready`, isReady).catch(async (error: unknown) => {
    const log = await machines.readLog(id, { tail: 20 });
    const state = JSON.stringify(await statusOf(machines, id));
    throw new Error(`server ${id} did not boot; its state is ${state}, and its log ends with:\n${log ?? ""}`, {
      cause: error,
    });
  });
}
