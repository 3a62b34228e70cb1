/** Benchmarks that compare with something else, for the one of sizes, whose table contains their lines. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Line } from "./figures.ts";

/** Each with its arguments. */
const others = [
  ["dns", "1", "few", "existing", "missing"],
  ["dnsflood"],
  ["postgres"],
  ["scale"],
  ["network", "firewall"],
] as const;

/** Runs `npm run bench -- NAME ARGUMENTS`, which prints what it measures. Returns its lines; a missed one if it reports none. */
async function linesOf(name: string, ...args: readonly string[]): Promise<Line[]> {
  console.log(`${name}:`);
  const folder = mkdtempSync(join(tmpdir(), "brume-lines-"));
  const file = join(folder, "lines.json");
  try {
    const child = spawn(process.execPath, [join(import.meta.dirname, `../${name}.ts`), ...args], {
      stdio: "inherit",
      env: { ...process.env, BENCH_LINES: file },
    });
    await once(child, "close");
    const lines = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Line[]) : [];
    if (lines.length === 0) return [{ what: `${name} measured nothing`, value: Number.NaN, limit: 0, unit: "" }];
    return lines.map((line) => ({ ...line, what: `${name}: ${line.what}` }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs all of them, one after the other, and returns their lines. */
export async function measureOthers(): Promise<Line[]> {
  const lines: Line[] = [];
  for (const [name, ...args] of others) lines.push(...(await linesOf(name, ...args)));
  return lines;
}
