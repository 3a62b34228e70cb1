/**
 * Runs test files: `node scripts/test.ts PATTERN…`. Loading the service takes more processor time than most files need, so a few processes
 * run all files: each takes the next one when it has ended the one before. A file is a suite in the output. Long files start first, so that none
 * runs alone at the end.
 */
import { spawn } from "node:child_process";
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism, tmpdir, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { memoryFolder } from "../test/support/memoryfolder.ts";
import { grace } from "./testprocess.ts";

const root = resolve(import.meta.dirname, "..");
const processors = availableParallelism();

/** Bytes that are enough for the temporary files of all tests: databases, and disks of guests. */
const mostStored = 8 * 2 ** 30;

/** Files that take more than 8 s of a whole run on two processors, longest first: most wait for guests, browsers and timeouts. */
const longest = [
  "e2e/orphans",
  "host/processes",
  "invariants/machine",
  "e2e/console-everypage",
  "host/image-tiny",
  "host/package",
  "host/vpn",
  "e2e/tls-acme",
  "e2e/console",
  "e2e/console-operate",
  "host/network-packets",
  "invariants/truth",
  "fuzz/socket",
  "e2e/console-firewall",
  "host/network-vpn",
  "chaos/away",
  "chaos/partition",
  "e2e/console-networks",
  "e2e/acme-clients",
  "host/network-nat",
  "e2e/console-live",
  "invariants/statistics",
  "invariants/serverflows",
  "invariants/remembered",
  "e2e/image-upload",
  "e2e/console-dns",
  "host/disk-backup",
  "dns/transfer",
  "e2e/server-trouble",
  "e2e/webhooks",
  "host/tls-processes",
  "dns/crowd",
  "e2e/console-failures",
  "host/machine-limits",
  "e2e/console-servers",
  "invariants/prune",
  "host/router",
  "e2e/events",
  "e2e/console-senses",
  "host/disk-identity",
  "chaos/kill",
  "host/tunnels",
  "invariants/router",
  "host/network-check",
  "chaos/tls",
  "e2e/audit",
  "invariants/details",
  "fuzz/dns",
  "chaos/disk",
  "e2e/network-firewall",
  "fuzz/agent",
  "e2e/driver-failures",
  "fuzz/hostile",
  "invariants/clock",
  "e2e/network-life",
  "invariants/openapi",
  "host/router-repair",
  "chaos/webhook",
  "e2e/network-confirm",
  "invariants/service",
  "e2e/docs",
  "http/feed",
  "host/installations",
  "host/isolation",
  "host/limits",
  "e2e/network-status",
  "invariants/space",
  "host/disk-full",
].map((name) => `test/${name}.test.ts`);

/** Returns the files in the order of their start: the longest, files that wait for what they start, then by amount of text. */
function arrange(files: readonly string[]): string[] {
  const rank = (file: string): number => {
    const place = longest.indexOf(file);
    if (place !== -1) return place;
    return longest.length + (/^test\/(host|chaos)\//.test(file) ? 0 : 1);
  };
  const size = new Map(files.map((file) => [file, statSync(resolve(root, file)).size]));
  return files.toSorted((a, b) => rank(a) - rank(b) || (size.get(b) ?? 0) - (size.get(a) ?? 0));
}

const found = [...new Set(globSync(process.argv.slice(2), { cwd: root }))]
  .map((file) => file.replace(`${root}/`, ""))
  .filter((file) => !file.includes("node_modules/"));
if (found.length === 0) throw new Error(`no test file matches ${process.argv.slice(2).join(" ")}`);
const files = arrange(found);
const folder = mkdtempSync(join(tmpdir(), "brume-tests-"));
const queue = join(folder, "queue");
const ended = join(folder, "ended");
for (const each of [queue, ended]) mkdirSync(each);
for (const [index, file] of files.entries()) writeFileSync(join(queue, String(index).padStart(4, "0")), file);
const program = pathToFileURL(join(import.meta.dirname, "testprocess.ts")).href;
/** Returns a module that runs files of the queue. */
const entryOf = (waits: boolean): string =>
  `import { runFiles } from ${JSON.stringify(program)};\nawait runFiles(${[queue, ended, waits].map((value) => JSON.stringify(value)).join(", ")});\n`;
// Unit tests compute, and some wait for files; most others wait for guests, protocol timers and other processes. More processes only save time
// while processors are idle: a test that waits polls, which costs more processor time the longer it waits.
const always = processors + 1;
const isUnit = files.every((file) => !file.startsWith("test/"));
// Each may need a gigabyte, with what its tests start.
const most = isUnit ? always : Math.max(always, Math.min(5 * processors, Math.floor(totalmem() / 2 ** 30)));
const entries = Array.from({ length: Math.min(most, files.length) }, (_, index) => {
  const path = join(folder, `process-${index + 1}.mjs`);
  writeFileSync(path, entryOf(index >= always));
  return path;
});
// Otherwise V8 collects garbage while a process waits, drops compiled code that was not used for some collections, and collects all objects often
// before a heap has 512 MB. Several threads collect garbage sooner, but need more processor time.
const flags = ["--no-memory-reducer", "--no-flush-bytecode", "--initial-heap-size=512", "--single-threaded-gc"];
// A file is a suite, and its tests share this limit: files with guests take up to three minutes on a busy host.
const options = ["--test", "--test-timeout=420000", `--test-concurrency=${entries.length}`, "--test-reporter=spec"];
const env = { TMPDIR: memoryFolder(mostStored) ?? tmpdir(), ...process.env };
const child = spawn(process.execPath, [...flags, ...options, ...entries], { stdio: "inherit", cwd: root, env });
const runningFiles = (): string[] =>
  readdirSync(queue)
    .filter((name) => name.endsWith(".runs"))
    .map((name) => readFileSync(join(queue, name), "utf8"));
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.on(signal, () => {
    console.error(`Stopped while these files ran: ${runningFiles().join(", ")}`);
    child.kill(signal);
  });

/** Returns the command lines of programs that write to one of these outputs, without the processes of the run, which may still be ending. */
function writersTo(outputs: readonly string[], own: readonly string[]): string[] {
  const numbers = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && !own.includes(name));
  return numbers.flatMap((pid) => {
    try {
      const isWriter = [1, 2].some((fd) => outputs.includes(readlinkSync(`/proc/${pid}/fd/${fd}`)));
      return isWriter ? [readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")] : [];
    } catch {
      return [];
    }
  });
}
// The runner waits until the outputs of its processes are closed, also by programs that a test has left running.
let since = Infinity;
const watch = setInterval(
  () => {
    const names = readdirSync(ended);
    if (names.length < entries.length) return;
    since = Math.min(since, Date.now());
    if (Date.now() - since < grace) return;
    clearInterval(watch);
    const outputs = names.flatMap((name) => readFileSync(join(ended, name), "utf8").split("\n"));
    console.error(
      `All files have ended, but these programs keep the output open: ${writersTo(outputs, names).join("; ")}`,
    );
    child.kill("SIGTERM");
  },
  Math.min(grace, 1000),
);
child.on("exit", (code) => {
  clearInterval(watch);
  rmSync(folder, { recursive: true, force: true });
  process.exitCode = code ?? 1;
});
