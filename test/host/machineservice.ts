/** A service that makes and starts one server and is killed while it does. Its options, as JSON, are its argument. */
import { exec } from "../../service/src/drivers/exec.ts";
import type { Machine } from "../../service/src/drivers/machine/port.ts";
import { openQemu, type QemuOptions } from "../../service/src/drivers/machine/qemu.ts";
import { imageName } from "./machinelab.ts";

const { options, wish } = JSON.parse(process.argv[2] ?? "") as { options: QemuOptions; wish: Machine };
const machines = await openQemu({ ...options, exec, now: Date.now, random: Math.random, fault: console.error });
process.stdout.write("open\n");
await machines.ensureDisk(wish, { image: imageName });
await machines.ensureRunning(wish);
process.stdout.write("running\n");
setInterval(() => {}, 1000);
