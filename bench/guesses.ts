/**
 * Measures how a flood of unknown tokens slows requests with a valid one: the same reads with and without 20 connections that send
 * unknown tokens as fast as they are rejected, alternating on the same service. `npm run bench -- guesses`
 */
import { spawn } from "node:child_process";
import { Agent, request as send } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startBrume } from "./lib/brume.ts";
import { pinned } from "./lib/process.ts";

const connections = 20;
const pause = 10;
const seconds = 5;
const rounds = 3;

const brume = await startBrume();
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const read = (): Promise<void> =>
  new Promise((done, failed) => {
    const headers = { authorization: `Bearer ${brume.token}` };
    const request = send(`${brume.url}/project/1`, { agent, headers }, (response) => {
      if (response.statusCode !== 200) failed(new Error(`a read returned ${response.statusCode}`));
      response.resume().on("end", done);
    });
    request.on("error", failed).end();
  });

interface Measured {
  readonly p50: number;
  readonly p99: number;
  readonly refused: number;
}

const middle = (all: readonly number[], part = 0.5): number =>
  all.toSorted((a, b) => a - b)[Math.min(all.length - 1, Math.floor(all.length * part))] ?? 0;

async function measure(isFlooded: boolean): Promise<Measured> {
  const [command = "", ...rest] = pinned(1, [
    process.execPath,
    join(import.meta.dirname, "lib/guesses.ts"),
    brume.url,
    String(connections),
  ]);
  const refused: number[] = [];
  const flood = isFlooded ? spawn(command, rest, { stdio: ["ignore", "pipe", "inherit"] }) : null;
  flood?.stdout.on("data", (text: Buffer) => refused.push(...text.toString().trim().split("\n").map(Number)));
  await sleep(2000);
  const took: number[] = [];
  for (const end = performance.now() + seconds * 1000; performance.now() < end; ) {
    const begun = performance.now();
    await read();
    took.push(performance.now() - begun);
    await sleep(pause);
  }
  flood?.kill();
  return { p50: middle(took), p99: middle(took, 0.99), refused: middle(refused) };
}

await measure(false);
const without: Measured[] = [];
const flooded: Measured[] = [];
for (let round = 0; round < rounds; round++) {
  without.push(await measure(false));
  flooded.push(await measure(true));
}
const show = (all: readonly Measured[]) => ({
  "p50 ms": middle(all.map(({ p50 }) => p50)).toFixed(2),
  "p99 ms": middle(all.map(({ p99 }) => p99)).toFixed(2),
  "refused/s": Math.round(middle(all.map(({ refused }) => refused))),
});
console.table({ "without guesses": show(without), "with guesses over 20 connections": show(flooded) });
agent.destroy();
await brume.stop();
brume.remove();
