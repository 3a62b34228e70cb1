/**
 * Runs test files: `node scripts/test.ts PATTERN…`. Most of the processor time of a small test file is the start of a process that loads the
 * service, so files share processes. A file is a suite in the output. Files of `test/host` and `test/chaos`, which mostly wait for guests,
 * tunnels and processes that they start, share smaller groups. The groups have equal amounts of source text, and long ones start first, so
 * that none runs alone at the end.
 */
import { spawn } from "node:child_process";
import { globSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const root = resolve(import.meta.dirname, "..");
const processors = availableParallelism();

/** Divides files into groups of about equal size; the largest files come first. */
function divide(files: readonly string[], count: number): string[][] {
  const sizeOf = (file: string) => statSync(join(root, file)).size;
  const groups = Array.from({ length: Math.min(count, files.length) }, () => ({ size: 0, files: [] as string[] }));
  for (const file of files.toSorted((a, b) => sizeOf(b) - sizeOf(a))) {
    const smallest = groups.reduce((least, group) => (group.size < least.size ? group : least));
    smallest.size += sizeOf(file);
    smallest.files.push(file);
  }
  return groups.map((group) => group.files);
}

/**
 * Returns the text of a module that runs the files one after the other. Each is a suite, so the hooks of a file apply to that file only. A
 * file is imported after the one before it: where two wait for the same module, the tests of one would become part of the other's suite.
 */
const moduleOf = (files: readonly string[]): string => `import { describe } from "node:test";
for (const file of ${JSON.stringify(files)}) {
  const { promise, resolve } = Promise.withResolvers();
  describe(file, async () => {
    try {
      await import(${JSON.stringify(pathToFileURL(`${root}/`).href)} + file);
    } finally {
      resolve();
    }
  });
  await promise;
}
`;

/** Host tests mostly wait and the others mostly compute, so one of each starts in turn. */
function arrange(files: readonly string[]): string[][] {
  const isWaiting = (file: string) => /^test\/(host|chaos)\//.test(file);
  const unit = (file: string) => !file.startsWith("test/");
  const waiting = divide(files.filter(isWaiting), Math.ceil(files.filter(isWaiting).length / 3));
  const working = divide(
    files.filter((file) => !isWaiting(file) && !unit(file)),
    4 * processors,
  );
  const length = Math.max(waiting.length, working.length);
  return [
    ...Array.from({ length }, (_, index) => [waiting[index] ?? [], working[index] ?? []]).flat(),
    ...divide(files.filter(unit), processors + 1),
  ].filter((group) => group.length > 0);
}

const files = [...new Set(globSync(process.argv.slice(2), { cwd: root }))]
  .map((file) => file.replace(`${root}/`, ""))
  .filter((file) => !file.includes("node_modules/"));
if (files.length === 0) throw new Error(`no test file matches ${process.argv.slice(2).join(" ")}`);
const folder = mkdtempSync(join(tmpdir(), "brume-tests-"));
// The test runner starts files in the order of their names.
const entries = arrange(files).map((group, index) => {
  const name = group.length === 1 ? basename(group[0] ?? "", ".ts") : `${group.length}-files`;
  const path = join(folder, `${String(index).padStart(3, "0")}-${name}.mjs`);
  writeFileSync(path, moduleOf(group));
  return path;
});
// A file is a suite, and its tests share this limit: files with guests take up to three minutes on a busy host.
// Three processes for each processor: most wait for guests, protocol timers and other processes.
const options = ["--test", "--test-timeout=420000", `--test-concurrency=${3 * processors}`, "--test-reporter=spec"];
const child = spawn(process.execPath, [...options, ...entries], { stdio: "inherit", cwd: root });
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
child.on("exit", (code) => {
  rmSync(folder, { recursive: true, force: true });
  process.exitCode = code ?? 1;
});
