/**
 * Runs test files: `node scripts/test.ts PATTERN…`. Loading the service takes more processor time than most files need, so a few processes
 * run all files: each takes the next one when it has ended the one before. A file is a suite in the output. Long files start first, so that none
 * runs alone at the end.
 */
import { spawn } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const root = resolve(import.meta.dirname, "..");
const processors = availableParallelism();

/** Files that take longest, longest first: most wait for guests, whose start takes a minute on a busy host. */
const longest = [
  "host/package",
  "host/image-tiny",
  "host/processes",
  "chaos/damage",
  "e2e/console",
  "chaos/kill",
  "invariants/serverflows",
  "host/router",
  "host/machine-limits",
  "host/disk-backup",
  "host/vpn",
  "host/tunnels",
  "invariants/truth",
  "host/network-packets",
  "host/network-nat",
  "host/installations",
  "invariants/machine",
  "invariants/remembered",
  "e2e/acme-clients",
  "e2e/server-batch",
].map((name) => `test/${name}.test.ts`);

/** Returns the files in the order of their start: the longest, files that wait for what they start, then by amount of text. */
function arrange(files: readonly string[]): string[] {
  const rank = (file: string): number => {
    const place = longest.indexOf(file);
    if (place !== -1) return place;
    return longest.length + (/^test\/(host|chaos)\//.test(file) ? 0 : 1);
  };
  const size = new Map(files.map((file) => [file, statSync(join(root, file)).size]));
  return files.toSorted((a, b) => rank(a) - rank(b) || (size.get(b) ?? 0) - (size.get(a) ?? 0));
}

/**
 * Returns the text of a module that takes files from the folder `queue` until it is empty, and runs each to its end. Of several processes
 * that want the same file, one renames it. A file that runs has the end `.runs`.
 */
const moduleOf = (files: readonly string[], queue: string): string => `import { renameSync, unlinkSync } from "node:fs";
import { describe } from "node:test";
// Otherwise the process ends when the tests of a file wait for nothing but timers that do not keep it alive.
const alive = setInterval(() => {}, 60_000);
for (const [index, file] of ${JSON.stringify(files)}.entries()) {
  const entry = ${JSON.stringify(`${queue}/`)} + index;
  try {
    renameSync(entry, entry + ".runs");
  } catch {
    continue;
  }
  await describe(file, () => import(${JSON.stringify(pathToFileURL(`${root}/`).href)} + file));
  unlinkSync(entry + ".runs");
}
clearInterval(alive);
`;

const found = [...new Set(globSync(process.argv.slice(2), { cwd: root }))]
  .map((file) => file.replace(`${root}/`, ""))
  .filter((file) => !file.includes("node_modules/"));
if (found.length === 0) throw new Error(`no test file matches ${process.argv.slice(2).join(" ")}`);
const files = arrange(found);
const folder = mkdtempSync(join(tmpdir(), "brume-tests-"));
const queue = join(folder, "queue");
mkdirSync(queue);
for (const index of files.keys()) writeFileSync(join(queue, String(index)), "");
// Unit tests compute; most others wait for guests, protocol timers and other processes.
const needed = files.every((file) => !file.startsWith("test/")) ? processors : 3 * processors;
const entries = Array.from({ length: Math.min(needed, files.length) }, (_, index) => {
  const path = join(folder, `process-${index + 1}.mjs`);
  writeFileSync(path, moduleOf(files, queue));
  return path;
});
// A file is a suite, and its tests share this limit: files with guests take up to three minutes on a busy host.
const options = ["--test", "--test-timeout=420000", `--test-concurrency=${entries.length}`, "--test-reporter=spec"];
const child = spawn(process.execPath, [...options, ...entries], { stdio: "inherit", cwd: root });
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.on(signal, () => {
    const running = readdirSync(queue).filter((name) => name.endsWith(".runs"));
    console.error(`Stopped while these files ran: ${running.map((name) => files[parseInt(name, 10)]).join(", ")}`);
    child.kill(signal);
  });
child.on("exit", (code) => {
  rmSync(folder, { recursive: true, force: true });
  process.exitCode = code ?? 1;
});
