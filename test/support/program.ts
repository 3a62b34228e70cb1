/** The program of the service for tests that start it as a process. */
import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");
let isBuilt = false;

/** Returns the path of the service's program, which `npm start` runs. The first call bundles it again after a change of its source. */
export function serviceProgram(): string {
  if (!isBuilt) execFileSync("sh", [join(root, "scripts/setup"), "service"], { stdio: ["ignore", "pipe", "inherit"] });
  isBuilt = true;
  return join(root, "service/dist/main.js");
}
