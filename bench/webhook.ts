/**
 * Measures how webhooks slow requests: the same load, about 1,000 events per second, without webhooks, with one, and with ten of which three
 * are dead, alternating on the same service. Then measures how fast one webhook is delivered without other requests, compared with a bare
 * loop of `POST` requests to the same endpoint. `npm run bench -- webhook`
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request as send } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startBrume } from "./lib/brume.ts";
import { pinned } from "./lib/process.ts";

const eventsInOne = 10;
const pause = 10;
const seconds = 8;
const rounds = 3;

// In their own process, so that they do not delay the measurement.
function startProgram(core: 0 | 1, argv: readonly string[]) {
  const [command = "", ...rest] = pinned(core, [process.execPath, ...argv]);
  return spawn(command, rest, { stdio: ["ignore", "pipe", "inherit"] });
}
const endpoints = startProgram(1, [join(import.meta.dirname, "lib/endpoints.ts")]);
const [printed] = (await once(endpoints.stdout, "data")) as [Buffer];
const urls = JSON.parse(printed.toString()) as string[];
const countTaken = async (): Promise<number> => Number(await (await fetch(urls[0] ?? "")).text());

const brume = await startBrume(undefined, { BRUME_WEBHOOK_ALLOW: "127.0.0.1" });
const { client, url, token } = brume;
await client.updateProject({ path: { id: 1 }, body: { Quotas: { RecordsPerDomain: 1_000_000, Webhooks: 20 } } });
const { ID: domain } = await client.createDomain({ body: { Name: "hooks.example" } });

let names = 0;
const percentile = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;

interface Measured {
  readonly p50: number;
  readonly p99: number;
  readonly events: number;
  readonly deliveries: number;
}

const agent = new Agent({ keepAlive: true, maxSockets: 64 });
const post = (path: string, body: string): Promise<void> =>
  new Promise((done, failed) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const request = send(url + path, { method: "POST", agent, headers }, (response) => {
      if (response.statusCode !== 200) failed(new Error(`a change returned ${response.statusCode}`));
      response.resume().on("end", done);
    });
    request.on("error", failed).end(body);
  });

/** Sends changes of ten records at a fixed rate, and measures the response time of each. */
async function load(time: number): Promise<Measured> {
  const before = await countTaken();
  const end = performance.now() + time * 1000;
  const took: number[] = [];
  let events = 0;
  const under = new Set<Promise<unknown>>();
  const change = async (): Promise<void> => {
    const Changes = Array.from({ length: eventsInOne }, () => ({
      Op: "Create",
      TypeRecord: "A",
      Name: `n${++names}`,
      IP: "192.0.2.1",
    }));
    const begun = performance.now();
    await post(`/dns/${domain}/changeset`, JSON.stringify({ Changes }));
    took.push(performance.now() - begun);
    events += eventsInOne;
  };
  for (let next = performance.now(); next < end; next += pause) {
    await sleep(Math.max(0, next - performance.now()));
    const one: Promise<void> = change().finally(() => under.delete(one));
    under.add(one);
  }
  await Promise.all(under);
  took.sort((a, b) => a - b);
  return {
    p50: percentile(took, 0.5),
    p99: percentile(took, 0.99),
    events: events / time,
    deliveries: ((await countTaken()) - before) / time,
  };
}

/** Runs `work` while these URLs have webhooks. */
async function whileHooked<Result>(own: readonly string[], work: () => Promise<Result>): Promise<Result> {
  const made: number[] = [];
  for (const Url of own) made.push((await client.createWebhook({ body: { Url } })).ID);
  try {
    return await work();
  } finally {
    for (const id of made) await client.deleteWebhook({ path: { id } });
  }
}

const loadHooked = (own: readonly string[]): Promise<Measured> =>
  whileHooked(own, async () => {
    await load(1);
    return load(seconds);
  });

const backlog = 6000;
const inFlight = 16;
const fast = urls[0] ?? "";
const body = JSON.stringify({
  ID: 1,
  Type: "record.created",
  Data: { Name: "n1", IP: "192.0.2.1", Padding: "x".repeat(300) },
});

/** Returns the deliveries per second of events that exist when the last request ends. */
const deliverBacklog = (): Promise<number> =>
  whileHooked([fast], async () => {
    const before = await countTaken();
    for (let made = 0; made < backlog; made += 500) {
      const Changes = Array.from({ length: 500 }, () => ({
        Op: "Create",
        TypeRecord: "A",
        Name: `n${++names}`,
        IP: "192.0.2.1",
      }));
      await post(`/dns/${domain}/changeset`, JSON.stringify({ Changes }));
    }
    const [begun, first] = [performance.now(), await countTaken()];
    while ((await countTaken()) < before + backlog) await sleep(20);
    return ((before + backlog - first) / (performance.now() - begun)) * 1000;
  });

/** Returns the requests per second of a program that sends only requests, as many at a time as one webhook. */
async function postBare(): Promise<number> {
  const program = startProgram(0, [join(import.meta.dirname, "lib/poster.ts"), fast, String(inFlight), body]);
  const [rate] = (await once(program.stdout, "data")) as [Buffer];
  return Number(rate.toString());
}

await load(3);
const without: Measured[] = [];
const one: Measured[] = [];
const ten: Measured[] = [];
const backlogs: number[] = [];
const bare: number[] = [];
for (let round = 0; round < rounds; round++) {
  without.push(await load(seconds));
  one.push(await loadHooked([fast]));
  ten.push(await loadHooked(urls));
  backlogs.push(await deliverBacklog());
  bare.push(await postBare());
}
const median = (all: readonly number[]): number => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0;
const middle = (all: readonly Measured[], name: keyof Measured): number => median(all.map((each) => each[name]));
const show = (all: readonly Measured[]) => ({
  "events/s": Math.round(middle(all, "events")),
  "deliveries/s": Math.round(middle(all, "deliveries")),
  "p50 ms": middle(all, "p50").toFixed(1),
  "p99 ms": middle(all, "p99").toFixed(1),
  "p50 ratio": (middle(all, "p50") / middle(without, "p50")).toFixed(2),
  "p99 ratio": (middle(all, "p99") / middle(without, "p99")).toFixed(2),
});
console.table({
  "without webhooks": show(without),
  "with one": show(one),
  "with ten, three of them dead": show(ten),
});
console.table({
  "one webhook, no other requests": { "deliveries/s": Math.round(median(backlogs)) },
  "bare requests to the same endpoint": { "deliveries/s": Math.round(median(bare)) },
  ratio: { "deliveries/s": (median(backlogs) / median(bare)).toFixed(2) },
});
endpoints.kill();
agent.destroy();
await brume.stop();
brume.remove();
