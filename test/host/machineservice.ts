/** A process that creates and starts one server with the machine driver, and that tests kill. Its argument is its options as JSON. */
import { exec } from "../../service/src/drivers/exec.ts";
import type { MachineSpec } from "../../service/src/drivers/machine/interface.ts";
import { openQemu, type QemuOptions } from "../../service/src/drivers/machine/qemu/qemu.ts";
import { imageName } from "../support/machinelab.ts";

const { options, spec } = JSON.parse(process.argv[2] ?? "") as { options: QemuOptions; spec: MachineSpec };
const machines = await openQemu({ ...options, exec, now: Date.now, random: Math.random, logError: console.error });
process.stdout.write("open\n");
await machines.ensureDisk(spec, { image: imageName });
await machines.ensureRunning(spec);
process.stdout.write("running\n");
setInterval(() => {}, 1000);
