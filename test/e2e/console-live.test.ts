/** An open page of the console while its service is killed and started again, in two tabs, and while a thousand events a second arrive. */
import assert from "node:assert/strict";
import { globSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { databaseName } from "../../service/src/store/sqlite.ts";
import { consoleFolder, launchBrowser, openConsole } from "../support/browser.ts";
import { followLink } from "../support/consolefixture.ts";
import { sendEvents } from "../support/eventflood.ts";
import { freePort } from "../support/port.ts";
import { createProcess, type Process } from "../support/process.ts";
import { createTestService } from "../support/testservice.ts";

/** Lets a test hold the large scripts of the page loads after `hold`, until it calls `release`. */
async function createHold(page: Page): Promise<{ hold(): void; release(): void }> {
  const index = readFileSync(join(consoleFolder, "index.html"), "utf8");
  const held = new Set([...index.matchAll(/src="([^"]+)" fetchpriority="low"/g)].map(([, path]) => path));
  assert.ok(held.size > 1);
  let release = (): void => {};
  let isReleased = Promise.resolve();
  await page.route(
    ({ pathname }) => held.has(pathname),
    async (route) => {
      await isReleased;
      await route.continue();
    },
  );
  return {
    hold() {
      isReleased = new Promise<void>((resolve) => {
        release = resolve;
      });
    },
    release: () => release(),
  };
}

describe("a live page", { timeout: 600_000 }, () => {
  let browser: Browser;
  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser.close());

  test("continues in both tabs after the service was killed and started again, also on an older copy of its database", async () => {
    // The page knows only this address.
    const environment = { BRUME_LISTEN: `127.0.0.1:${await freePort()}` };
    const brume: Process = await createProcess("sqlite", { environment });
    try {
      const { page, context, errors, close } = await openConsole(browser, brume, { token: brume.token });
      await brume.client.createDomain({ body: { Name: "before.example" } });
      await brume.client.createServer({ body: { Name: "web" } }, { wait: 60 });
      const other = await context.newPage();
      for (const tab of [page, other]) {
        await tab.goto("/console/dns");
        await tab.getByRole("link", { name: "before.example" }).waitFor();
      }
      const copy = join(brume.folder, "copy.db");
      await brume.query(`VACUUM INTO '${copy}'`);
      // The tab that reads the stream does not connect by itself, only on the request of the other one.
      await page.evaluate(`{
        const { setTimeout } = window;
        window.setTimeout = (run, ms, ...rest) => (ms > 300 ? 0 : setTimeout(run, ms, ...rest));
        window.restoreTimers = () => { window.setTimeout = setTimeout; };
      }`);
      await brume.end("SIGKILL");
      await other.getByText("Live updates are interrupted.", { exact: false }).waitFor();
      await brume.start();
      await other.getByRole("button", { name: "Connect now" }).click();
      await other.getByText("Live updates are interrupted.", { exact: false }).waitFor({ state: "detached" });
      await page.evaluate("restoreTimers()");
      await brume.client.createDomain({ body: { Name: "after.example" } });
      for (const tab of [page, other]) await tab.getByRole("link", { name: "after.example" }).waitFor();
      // The new event after the restore has an id that the tabs have received before.
      for (let index = 0; index < 20; index++)
        await brume.client.createDomain({ body: { Name: `lost-${index}.example` } });
      for (const tab of [page, other]) await tab.getByRole("link", { name: "lost-19.example" }).waitFor();
      await brume.end("SIGKILL");
      for (const file of globSync(join(brume.folder, `${databaseName}*`))) rmSync(file);
      renameSync(copy, join(brume.folder, databaseName));
      await brume.start();
      for (const tab of [page, other])
        await tab.getByRole("link", { name: "lost-19.example" }).waitFor({ state: "detached" });
      await brume.client.createDomain({ body: { Name: "restored.example" } });
      for (const tab of [page, other]) await tab.getByRole("link", { name: "restored.example" }).waitFor();
      await followLink(other, "/console/activity?kind=domain");
      await other.getByText("restored.example").first().waitFor();
      assert.equal(await other.getByText("lost-19.example").count(), 0);
      // The stream repeats all events of the copy, which are no news.
      for (const tab of [page, other]) {
        await tab.getByRole("button", { name: "Actions" }).click();
        await tab.getByText("No action has run since you opened this page.").waitFor();
      }
      // While it starts, the service is not ready.
      const whileReady = errors.filter((text) => !text.includes("status of 503"));
      assert.deepEqual(whileReady, []);
      await close();
    } finally {
      await brume.close();
    }
  });

  test("reads what it shows once, and misses no change before the first event arrives, also in a second tab", async () => {
    const brume = await createTestService("sqlite", { consoleFolder });
    try {
      const { client } = brume;
      const { ID: id } = await client.createServer({ body: { Name: "early" } }, { wait: 60 });
      const { page, context, errors, close } = await openConsole(browser, brume, { token: brume.token });
      const reads: string[] = [];
      page.on("request", (request) => {
        if (request.method() === "GET") reads.push(new URL(request.url()).pathname + new URL(request.url()).search);
      });
      let open = (): void => {};
      const isOpen = new Promise<void>((resolve) => {
        open = resolve;
      });
      await page.route("**/event", async (route) => {
        await isOpen;
        await route.continue();
      });
      await page.goto("/console/servers");
      await page.getByRole("link", { name: "early", exact: true }).waitFor();
      await client.updateServer({ path: { id }, body: { Name: "late" } });
      open();
      await page.getByRole("link", { name: "late", exact: true }).waitFor();
      // Events contain the server, and the list is read again only if its members change.
      const lists = reads.filter((path) => path.startsWith("/server?") || path === "/server");
      assert.equal(lists.length, 1, reads.join("\n"));
      // The first tab receives the event of a change before the second one can.
      const other = await context.newPage();
      const scripts = await createHold(other);
      scripts.hold();
      const listed = other.waitForResponse("**/server?limit=1000");
      await other.goto("/console/servers", { waitUntil: "commit" });
      await listed;
      await client.updateServer({ path: { id }, body: { Name: "latest" } });
      await page.getByRole("link", { name: "latest", exact: true }).waitFor();
      scripts.release();
      await other.getByRole("link", { name: "latest", exact: true }).waitFor();
      assert.deepEqual(errors, []);
      await close();
    } finally {
      await brume.close();
    }
  });

  test("draws its frame and reads what it shows while its script is loaded, and reads it once", async () => {
    const brume = await createTestService("sqlite", { consoleFolder });
    try {
      const { client } = brume;
      const { ID: server } = await client.createServer({ body: { Name: "web" } }, { wait: 60 });
      const { ID: domain } = await client.createDomain({ body: { Name: "web.example" } });
      const { Id: network } = await client.createPublicNetwork({ body: { Name: "dmz" } });
      const { page, errors, close } = await openConsole(browser, brume, { token: brume.token });
      const scripts = await createHold(page);
      let reads: string[] = [];
      page.on("request", (request) => reads.push(request.url().slice(brume.url.length)));
      const workers = new Set<string>();
      page.on("worker", (worker) => workers.add(worker.url().replace(/-[^-]+$/, "")));
      const networks = "/publicnetwork";
      const pages: readonly (readonly [path: string, heading: string, ...first: string[]])[] = [
        ["/", "Overview", "/server?limit=1000", "/dns?limit=1000&records=false", "/dcLocation", "/readyz", networks],
        ["/servers", "Servers", "/server?limit=1000", networks],
        [`/servers/${server}`, "web", `/server/${server}`, networks],
        [`/networks/${network}`, "dmz", `/publicnetwork/${network}`, networks],
        ["/dns", "DNS", "/dns?limit=1000&records=false", networks],
        [`/dns/${domain}`, "web.example", `/dns/${domain}`, networks],
        ["/images", "Images", "/image", networks],
      ];
      for (const [path, heading, ...first] of pages) {
        reads = [];
        scripts.hold();
        const sent = ["/account", "/event?newest=true&limit=1", ...first].map((address) =>
          page.waitForRequest(brume.url + address),
        );
        await page.goto(`/console${path}`, { waitUntil: "commit" });
        await Promise.all([...sent, page.getByText("Brume", { exact: true }).waitFor()]);
        scripts.release();
        await page.getByRole("heading", { name: heading }).first().waitFor();
        await page.locator(".skeleton").first().waitFor({ state: "detached" });
        assert.equal(await page.locator(".placeholder").isVisible(), false);
        const twice = reads.filter((address, at) => reads.indexOf(address) !== at && !address.startsWith("/console/"));
        assert.deepEqual(twice, [], reads.join("\n"));
      }
      assert.deepEqual([...workers], [`${brume.url}/console/assets/languages`]);
      assert.deepEqual(errors, []);
      await close();
    } finally {
      await brume.close();
    }
  });

  test("answers while a thousand events arrive in a second, and shows the last state", async () => {
    const brume = await createTestService("sqlite", { consoleFolder });
    try {
      const made = await brume.client.createServer({ body: { Name: "busy" } }, { wait: 60 });
      const [sample] = await brume.client.listEvents({ query: { newest: true, limit: 1, type: "server.changed" } });
      assert.ok(sample);
      const { page, errors, close } = await openConsole(browser, brume, { token: brume.token });
      await sendEvents(page, sample, { perSecond: 1000, seconds: 5 });
      await page.goto("/console/servers");
      await page.getByRole("link", { name: /^busy \d+/ }).waitFor();
      // The page works while events arrive.
      await page.getByRole("searchbox").fill("busy");
      await page.getByRole("button", { name: "Clear filter" }).click();
      await page.getByRole("link", { name: "busy 5000", exact: true }).waitFor();
      await page.goto(`/console/servers/${made.ID}`);
      await page.getByRole("heading", { name: /^busy/ }).waitFor();
      assert.deepEqual(errors, []);
      await close();
    } finally {
      await brume.close();
    }
  });
});
