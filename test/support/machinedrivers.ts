/** The two machine drivers for the conformance suite: simulated, and real with real guests. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exec } from "../../service/src/drivers/exec.ts";
import { layerName, topOf, versionsOf } from "../../service/src/drivers/machine/disk/disk.ts";
import type { Images } from "../../service/src/drivers/machine/interface.ts";
import type { QemuDriver } from "../../service/src/drivers/machine/qemu/qemu.ts";
import { createSim } from "../../service/src/drivers/machine/sim/sim.ts";
import { type AgentLab, type Carrier, createAgentLab, description, withSimulated } from "./agentlab.ts";
import { createMachineLab, findCapabilities, imageName } from "./machinelab.ts";
import { triesAll } from "./random.ts";

export interface Subject {
  readonly machines: QemuDriver;
  readonly tag: string;
  /** Writes one letter at the start of the disk of a stopped server; `read` returns it. */
  write(id: number, letter: string): Promise<void>;
  read(id: number): Promise<string>;
  /** The VM process ends without a request; the guest powers itself off. */
  kill(id: number): void;
  /** Stops (SIGSTOP) and continues the VM process. */
  freeze(id: number): void;
  thaw(id: number): void;
  /** Removes the top layer of its disk, or the complete disk. */
  lose(id: number): void;
  traces(): readonly string[];
  /** Opens the driver again, as a restarted service does. */
  reopen(): Promise<QemuDriver>;
  close(): Promise<void>;
}

/** Puts a driver behind a host agent. */
interface Far {
  open(driver: QemuDriver): Promise<QemuDriver>;
  close(): Promise<void>;
}

/** The driver itself, in this process. */
const near: Far = { open: async (driver) => driver, close: async () => {} };

/** Behind a host agent, which is started anew with each driver. */
function behind(carrier: Carrier, tag: string): Far {
  let lab: AgentLab | undefined;
  const close = async () => lab?.close();
  return {
    async open(driver) {
      await close();
      const images = { ...withSimulated({}).images, ...driver } as Images;
      lab = await createAgentLab({ machines: driver, images, consoles: driver }, carrier, {
        description: description(tag),
      });
      const client = await lab.connect();
      return { ...client.consoles, ...client.images, ...client.machines, close: driver.close };
    },
    close,
  };
}

async function simulated(far: Far = near): Promise<Subject> {
  const folder = mkdtempSync(join(tmpdir(), "brume-sim-"));
  const open = () => createSim({ now: Date.now, images: [imageName], file: join(folder, "machines") });
  let sim = open();
  return {
    machines: await far.open(sim),
    tag: "sim",
    write: async (id, letter) => sim.write(id, letter),
    read: async (id) => sim.read(id) ?? "",
    kill: (id) => sim.kill(id),
    freeze: (id) => sim.trouble(id, "NotResponding"),
    thaw: (id) => sim.trouble(id, null),
    lose: (id) => sim.lose(id),
    traces: () => [],
    async reopen() {
      await sim.close();
      sim = open();
      return far.open(sim);
    },
    async close() {
      await far.close();
      await sim.close();
      rmSync(folder, { recursive: true });
    },
  };
}

const found = await findCapabilities();

async function real(far: (tag: string) => Far = () => near): Promise<Subject> {
  assert.ok("capabilities" in found);
  const lab = createMachineLab(found.capabilities);
  const diskOf = (id: number) => {
    const root = join(lab.servers, String(id));
    const disk = join(root, `disk-${versionsOf(root).at(-1)}`);
    return join(disk, layerName(topOf(disk)));
  };
  // Behind the last block that the guest's file system reads.
  const place = "900M 512";
  const carrier = far(lab.tag);
  let driver = await lab.open();
  return {
    machines: await carrier.open(driver),
    tag: lab.tag,
    async write(id, letter) {
      await exec.run(["qemu-io", "-f", "qcow2", "-c", `write -P ${letter.charCodeAt(0)} ${place}`, diskOf(id)]);
    },
    async read(id) {
      const text = await exec.run(["qemu-io", "-r", "-f", "qcow2", "-c", `read -v ${place}`, diskOf(id)]);
      const [, byte = "00"] = /:\s+([0-9a-f]{2}) /.exec(text) ?? [];
      return byte === "00" ? "" : String.fromCharCode(Number.parseInt(byte, 16));
    },
    kill(id) {
      process.kill(lab.pidOf(id) ?? 0, "SIGKILL");
    },
    freeze(id) {
      process.kill(lab.pidOf(id) ?? 0, "SIGSTOP");
    },
    thaw(id) {
      process.kill(lab.pidOf(id) ?? 0, "SIGCONT");
    },
    lose(id) {
      rmSync(diskOf(id));
    },
    traces: lab.traces,
    async reopen() {
      await driver.close();
      driver = await lab.open();
      return carrier.open(driver);
    },
    async close() {
      await carrier.close();
      await lab.close();
      const unexpected = lab.errors.filter((error) => !/^The VM of server \d+ does not respond\./.test(error));
      assert.deepEqual(unexpected, []);
    },
  };
}

interface Driver {
  readonly start: () => Promise<Subject>;
  readonly hindrance: string | null;
  /** Titles of the tests that it runs; absent: all. */
  readonly only?: RegExp;
}

export const drivers: Readonly<Record<string, Driver>> = {
  simulated: { start: () => simulated(), hindrance: null },
  "simulated, behind an agent's socket": { start: () => simulated(behind("unix", "sim")), hindrance: null },
  "simulated, behind an agent's TLS": { start: () => simulated(behind("tls", "sim")), hindrance: null },
  "real, with guests": { start: () => real(), hindrance: "hindrance" in found ? found.hindrance : null },
  "real, with guests, behind an agent's socket": {
    start: () => real((tag) => behind("unix", tag)),
    hindrance: "hindrance" in found ? found.hindrance : null,
    // The slow ones differ in the driver only. The agent carries every call of a life cycle to the simulated driver too.
    ...(!triesAll && {
      only: /^(a disk is created once|a reset is done once|an unexpected exit|removing is complete)/,
    }),
  },
};
