/**
 * How smooth the console is: processor time of the tasks of the page while one scrolls 50,000 records and 10,000 servers, from the traces
 * of Chromium. The reference is the same scroll over a table of plain HTML with as many rows.
 * Processor time does not depend on what else the host does; a frame must not need more than 50 ms.
 */
import { readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { consoleFolder, launchBrowser, openConsole } from "../test/support/browser.ts";
import { createTestService } from "../test/support/testservice.ts";

const records = 50_000;
const servers = 10_000;
/** Steps of the wheel, and pixels of each. */
const [steps, distance] = [120, 400];

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly tid: number;
  readonly pid: number;
  readonly tdur?: number;
}

/** Runs `work` and returns the longest task of the page's main thread and the sum of all, in milliseconds of processor time. */
async function measure(browser: Browser, page: Page, work: () => Promise<void>) {
  const path = join(tmpdir(), `brume-trace-${process.pid}.json`);
  await browser.startTracing(page, {
    path,
    categories: ["toplevel", "devtools.timeline", "__metadata"],
  });
  await work();
  await browser.stopTracing();
  const { traceEvents } = JSON.parse(readFileSync(path, "utf8")) as {
    traceEvents: (TraceEvent & { args?: { name?: string } })[];
  };
  rmSync(path);
  const main = new Set(
    traceEvents
      .filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain")
      .map(({ pid, tid }) => `${pid}:${tid}`),
  );
  const times = traceEvents
    .filter(({ name, pid, tid, tdur }) => name.endsWith("RunTask") && tdur !== undefined && main.has(`${pid}:${tid}`))
    .map(({ tdur = 0 }) => tdur / 1000)
    .sort((a, b) => b - a);
  return { longest: times[0] ?? 0, over50: times.filter((time) => time > 50).length, tasks: times.length };
}

async function scroll(page: Page, box: string): Promise<void> {
  await page.locator(box).first().hover();
  for (let step = 0; step < steps; step++) {
    await page.mouse.wheel(0, distance);
    await page.waitForTimeout(16);
  }
}

function report(name: string, { longest, over50, tasks }: Awaited<ReturnType<typeof measure>>): void {
  console.log(
    `${name.padEnd(34)} longest task ${longest.toFixed(1).padStart(7)} ms of processor time, ${over50} of ${tasks} over 50 ms`,
  );
}

const brume = await createTestService("sqlite", { consoleFolder });
const browser = await launchBrowser();
try {
  await brume.client.updateProject({
    path: { id: 1 },
    body: { Quotas: { RecordsPerDomain: records + 100, Servers: servers } },
  });
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
  report(`${records} records`, await measure(browser, page, () => scroll(page, ".table-scroll")));

  // The list is what the page must handle; so many simulated servers would only make the start slow.
  await page.route(/\/server\?/, (route) =>
    route.fulfill({
      json: Array.from({ length: servers }, (_, index) => ({ ...sample, ID: index + 1, Name: `server-${index}` })),
    }),
  );
  await page.goto("/console/servers");
  await page.getByRole("link", { name: "server-1", exact: true }).waitFor();
  report(`${servers} servers`, await measure(browser, page, () => scroll(page, ".table-scroll")));
  await close();

  const plain = await browser.newPage();
  const rows = Array.from({ length: servers }, (_, index) => `<tr><td>server-${index}<td>Running<td>10.63.0.2</tr>`);
  await plain.setContent(`<div class="plain" style="height:600px;overflow:auto"><table>${rows.join("")}</table></div>`);
  report(`reference: ${servers} rows of HTML`, await measure(browser, plain, () => scroll(plain, ".plain")));
} finally {
  await browser.close();
  await brume.close();
}
