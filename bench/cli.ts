/**
 * Measures the start of the command `brume` on a service with simulated engines, compared with a Node that does nothing, in the same run.
 * `node bench/cli.ts [rounds]`. It needs the bundle, which `npm start` and `npm run bench` build.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createTestService } from "../test/support/testservice.ts";

const run = promisify(execFile);
const rounds = Number(process.argv[2] ?? 15);
const command = fileURLToPath(new URL("../cli/bin/brume.js", import.meta.url));
const brume = await createTestService("sqlite");
const env = { ...process.env, BRUME_URL: brume.url, BRUME_TOKEN: brume.token };

const rows: readonly (readonly [title: string, args: readonly string[]])[] = [
  ["node -e 0", ["-e", "0"]],
  ["node -e fetch", ["-e", `fetch("${brume.url}/healthz").then((response) => response.text())`]],
  ["brume --version", [command, "--version"]],
  ["brume server --help", [command, "server", "--help"]],
  ["brume server list", [command, "server", "list"]],
  ["brume __complete", [command, "__complete", "--", "server", "get", ""]],
];

const times = new Map<string, number[]>(rows.map(([title]) => [title, []]));
for (let round = 0; round <= rounds; round++)
  for (const [title, args] of rows) {
    const start = performance.now();
    await run(process.execPath, [...args], { env });
    // The first round fills the caches.
    if (round > 0) times.get(title)?.push(performance.now() - start);
  }
await brume.close();

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
const base = median(times.get("node -e 0") ?? []);
process.stdout.write(
  `Node itself needs ${base.toFixed(0)} ms on this host now: no command can be faster.\ncommand                 median    of a bare start\n`,
);
for (const [title, values] of times)
  process.stdout.write(
    `${title.padEnd(22)} ${median(values).toFixed(0).padStart(4)} ms   ${(median(values) / base).toFixed(1).padStart(5)}\n`,
  );
