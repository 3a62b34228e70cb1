/**
 * Fixture: applies the network of its input with the driver as the service runs it: confined programs, and the namespace of this process as
 * the host. The apply fails after the ports were moved. Arguments: tag, folder. It prints the error.
 */
import { text } from "node:stream/consumers";
import { exec } from "../../service/src/drivers/exec.ts";
import type { NetworkSpec } from "../../service/src/drivers/router/interface.ts";
import type { Capabilities } from "../../service/src/drivers/router/linux/detect.ts";
import { createLinux } from "../../service/src/drivers/router/linux/linux.ts";
import { confineTools } from "../../service/src/drivers/router/linux/toolroot.ts";

const [, , tag = "", runFolder = ""] = process.argv;
const { spec, capabilities } = JSON.parse(await text(process.stdin)) as {
  readonly spec: NetworkSpec;
  readonly capabilities: Capabilities;
};
const refusing = {
  apply: () => Promise.reject(new Error("no engine")),
  remove: async () => {},
  observe: async () => new Map<string, never>(),
  close: () => {},
};
const confined = await confineTools(exec);
const router = createLinux({
  exec: confined.exec,
  tag,
  hostNamespace: null,
  runFolder,
  capabilities,
  tunnels: [refusing],
  opened: [],
  now: Date.now,
});
const refused = await router.apply(spec).then(String, (error: unknown) => (error as Error).message);
console.log(`${confined.rights}: ${refused}`);
await router.close();
