/**
 * Runs the service for development: `npm run dev`. A change of the service restarts it; a change of the console builds it again, and open
 * pages reload themselves.
 */
import { spawn } from "node:child_process";
import { watch } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { buildConsole } from "./build-console.ts";

const root = resolve(import.meta.dirname, "..");
await buildConsole(true);
const service = spawn(
  process.execPath,
  ["--watch-path=service/src", "--watch-path=api/src", "--watch-preserve-output", "service/src/main.ts"],
  { cwd: root, stdio: "inherit" },
);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => service.kill(signal));
service.on("exit", (code) => process.exit(code ?? 1));

let isBuilding = false;
let isChanged = false;
async function rebuild(): Promise<void> {
  isChanged = true;
  if (isBuilding) return;
  isBuilding = true;
  while (isChanged) {
    isChanged = false;
    // Editors write several files at once.
    await sleep(50);
    await buildConsole(true).catch(() => {
      // esbuild has printed the error.
    });
  }
  isBuilding = false;
}
watch(join(root, "console/src"), { recursive: true }, () => void rebuild());
