/**
 * How smooth the console is, from the traces of Chromium: the processor time of the page's main thread in each frame. One opens three pages in
 * a new browser, scrolls 50,000 records and 10,000 servers at 60 wheel steps a second, filters, selects and opens a menu, and receives
 * 1,000 events a second. A frame must not need more than 50 ms, an interaction not more than 100 ms. Processor time does not depend on what
 * else the host does. The reference is the same scroll over a table of plain HTML with as many rows.
 */
import { readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, Page } from "playwright-core";
import { consoleFolder, launchBrowser, openConsole } from "../test/support/browser.ts";
import { fillService } from "../test/support/consolescene.ts";
import { sendEvents } from "../test/support/eventflood.ts";
import { createTestService } from "../test/support/testservice.ts";

const records = 50_000;
const servers = 10_000;
/** Steps of the wheel, and pixels of each: a notch of a mouse. Two thirds go down, the others up again. */
const [steps, distance] = [180, 100];
const frame = 1000 / 60;

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly tid: number;
  readonly pid: number;
  readonly ts: number;
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

interface Measured {
  /** Milliseconds of the main thread in each frame, the longest first. */
  readonly frames: readonly number[];
  /** The longest task, and the sum of all. */
  readonly longest: number;
  readonly total: number;
  /** What the tasks would take beyond 50 ms each on a phone, a quarter as fast: what Lighthouse calls the blocking time. */
  readonly blocking: number;
}

/** Runs `work` and returns the processor time of the page's main thread. */
async function measure(browser: Browser, page: Page, work: () => Promise<unknown>): Promise<Measured> {
  const path = join(tmpdir(), `brume-trace-${process.pid}.json`);
  await browser.startTracing(page, {
    path,
    categories: ["toplevel", "devtools.timeline", "__metadata"],
  });
  await work();
  await browser.stopTracing();
  const { traceEvents } = JSON.parse(readFileSync(path, "utf8")) as { traceEvents: TraceEvent[] };
  rmSync(path);
  const main = new Set(
    traceEvents
      .filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain")
      .map(({ pid, tid }) => `${pid}:${tid}`),
  );
  const own = traceEvents.filter(({ pid, tid }) => main.has(`${pid}:${tid}`));
  const starts = own
    .filter(({ name, ph }) => name === "AnimationFrame" && ph === "b")
    .map(({ ts }) => ts)
    .sort((a, b) => a - b);
  const frames = new Array<number>(starts.length + 1).fill(0);
  let longest = 0;
  let total = 0;
  let blocking = 0;
  for (const { name, tdur, ts } of own) {
    if (!name.endsWith("RunTask") || tdur === undefined) continue;
    const time = tdur / 1000;
    longest = Math.max(longest, time);
    total += time;
    blocking += Math.max(0, 4 * time - 50);
    const next = starts.findIndex((start) => start > ts);
    const at = next < 0 ? starts.length : next;
    frames[at] = (frames[at] ?? 0) + time;
  }
  return { frames: frames.sort((a, b) => b - a), longest, total, blocking };
}

async function scroll(page: Page, box: string): Promise<void> {
  await page.locator(box).first().hover();
  let due = performance.now();
  for (let step = 0; step < steps; step++) {
    await page.mouse.wheel(0, step < (steps * 2) / 3 ? distance : -distance);
    due += frame;
    await sleep(Math.max(0, due - performance.now()));
  }
}

/** Waits until the page has drawn what changed. */
const drawn = (page: Page) =>
  page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");

function reportFrames(name: string, { frames, longest }: Measured): void {
  const over = frames.filter((time) => time > 50).length;
  const middle = frames[frames.length >> 1] ?? 0;
  console.log(
    `${name.padEnd(38)} ${frames.length} frames, median ${middle.toFixed(1)} ms, longest ${(frames[0] ?? 0).toFixed(1)} ms (task ${longest.toFixed(1)} ms), over 50 ms: ${over}`,
  );
}

function reportInteraction(name: string, { longest, total }: Measured): void {
  console.log(`${name.padEnd(38)} ${total.toFixed(1).padStart(6)} ms in all, longest task ${longest.toFixed(1)} ms`);
}

/** Opens pages, each in a new browser with the width of a phone, which has no code in its cache. */
async function measureLoads(pages: readonly string[]): Promise<void> {
  for (const path of pages) {
    const fresh = await launchBrowser();
    const { page } = await openConsole(fresh, brume, { token: brume.token, width: 412 });
    const load = () => page.goto(path).then(() => sleep(1500));
    const { blocking, longest, total } = await measure(fresh, page, load);
    await fresh.close();
    console.log(
      `${`open ${path}`.padEnd(38)} ${total.toFixed(0)} ms in all, longest task ${longest.toFixed(1)} ms, blocking of a phone ${blocking.toFixed(0)} ms`,
    );
  }
}

const brume = await createTestService("sqlite", { consoleFolder });
const browser = await launchBrowser();
try {
  await brume.client.updateProject({
    path: { id: 1 },
    body: { Quotas: { RecordsPerDomain: records + 100, Servers: servers } },
  });
  const scene = await fillService(brume.client);
  await measureLoads(["/console", "/console/servers", `/console/dns/${scene.domain}`]);
  const lines = Array.from(
    { length: records },
    (_, index) => `h${index} 300 IN A 10.1.${(index >> 8) & 255}.${index & 255}`,
  );
  const zone = await brume.client.createDomain({ body: { Name: "large.example" } });
  for (let at = 0; at < records; at += 10_000)
    await brume.client.importZone({
      path: { id: zone.ID },
      body: { ZoneFile: lines.slice(at, at + 10_000).join("\n"), Mode: "Merge" },
    });
  const sample = await brume.client.createServer({ body: { Name: "sample" } }, { wait: 20 });
  const { page, close } = await openConsole(browser, brume, { token: brume.token });
  page.setDefaultTimeout(120_000);

  await page.goto(`/console/dns/${zone.ID}`);
  await page.getByLabel("Value: h1 A", { exact: true }).waitFor();
  reportFrames(`${records} records`, await measure(browser, page, () => scroll(page, ".table-scroll")));
  reportInteraction(
    "  filter by one letter",
    await measure(browser, page, async () => {
      await page.getByRole("searchbox").press("7");
      await drawn(page);
    }),
  );

  // The list is what the page must handle; so many simulated servers would only make the start slow.
  await page.route(/\/server\?/, (route) =>
    route.fulfill({
      json: Array.from({ length: servers }, (_, index) => ({ ...sample, ID: index + 1, Name: `server-${index}` })),
    }),
  );
  await page.goto("/console/servers");
  await page.getByRole("link", { name: "server-1", exact: true }).waitFor();
  reportFrames(`${servers} servers`, await measure(browser, page, () => scroll(page, ".table-scroll")));
  const interactions: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["filter by one letter", () => page.getByRole("searchbox").press("7")],
    ["select all", () => page.getByRole("checkbox").first().click()],
    ["select none", () => page.getByRole("checkbox").first().click()],
    ["open the menu of a row", () => page.getByRole("table").locator("[aria-haspopup=menu]").first().click()],
    ["open a server", () => page.keyboard.press("Escape").then(() => page.locator("a.whole").first().click())],
  ];
  for (const [name, act] of interactions)
    reportInteraction(`  ${name}`, await measure(browser, page, () => act().then(() => drawn(page))));

  const [event] = await brume.client.listEvents({ query: { newest: true, limit: 1, type: "server.changed" } });
  if (event === undefined) throw new Error("no event");
  await sendEvents(page, event, { perSecond: 1000, seconds: 6 });
  await page.goto("/console/servers");
  await page.getByRole("link", { name: /^busy \d+/ }).waitFor();
  reportFrames(`1,000 events a second, ${servers} servers`, await measure(browser, page, () => sleep(3000)));
  await close();

  const plain = await browser.newPage();
  const rows = Array.from({ length: servers }, (_, index) => `<tr><td>server-${index}<td>Running<td>10.63.0.2</tr>`);
  await plain.setContent(`<div class="plain" style="height:600px;overflow:auto"><table>${rows.join("")}</table></div>`);
  reportFrames(`reference: ${servers} rows of HTML`, await measure(browser, plain, () => scroll(plain, ".plain")));
} finally {
  await browser.close();
  await brume.close();
}
