/** An open page of the console while its service is killed and started again, in two tabs, and while a thousand events a second arrive. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { consoleFolder, launchBrowser, openConsole } from "../support/browser.ts";
import { sendEvents } from "../support/eventflood.ts";
import { freePort } from "../support/port.ts";
import { createProcess, type Process } from "../support/process.ts";
import { createTestService } from "../support/testservice.ts";

describe("a live page", { timeout: 600_000 }, () => {
  let browser: Browser;
  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser.close());

  test("continues in both tabs after the service was killed and started again", async () => {
    // The page knows only this address.
    const environment = { BRUME_LISTEN: `127.0.0.1:${await freePort()}` };
    const brume: Process = await createProcess("sqlite", { environment });
    try {
      const { page, context, errors, close } = await openConsole(browser, brume, { token: brume.token });
      await brume.client.createDomain({ body: { Name: "before.example" } });
      const other = await context.newPage();
      for (const tab of [page, other]) {
        await tab.goto("/console/dns");
        await tab.getByRole("link", { name: "before.example" }).waitFor();
      }
      await brume.end("SIGKILL");
      await page.getByText("Live updates are interrupted.", { exact: false }).waitFor();
      await brume.start();
      await page.getByText("Live updates are interrupted.", { exact: false }).waitFor({ state: "detached" });
      await brume.client.createDomain({ body: { Name: "after.example" } });
      for (const tab of [page, other]) await tab.getByRole("link", { name: "after.example" }).waitFor();
      assert.deepEqual(errors, []);
      await close();
    } finally {
      await brume.close();
    }
  });

  test("reads what it shows once, and misses no change before the first event arrives", async () => {
    const brume = await createTestService("sqlite", { consoleFolder });
    try {
      const { client } = brume;
      const { ID: id } = await client.createServer({ body: { Name: "early" } }, { wait: 60 });
      const { page, errors, close } = await openConsole(browser, brume, { token: brume.token });
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
      const index = readFileSync(join(consoleFolder, "index.html"), "utf8");
      const held = new Set([...index.matchAll(/src="([^"]+)" fetchpriority="low"/g)].map(([, path]) => path));
      assert.ok(held.size > 1);
      let load = (): void => {};
      let isReleased = Promise.resolve();
      await page.route(
        ({ pathname }) => held.has(pathname),
        async (route) => {
          await isReleased;
          await route.continue();
        },
      );
      let reads: string[] = [];
      page.on("request", (request) => reads.push(request.url().slice(brume.url.length)));
      const networks = "/publicnetwork";
      const pages: readonly (readonly [path: string, heading: string, ...first: string[]])[] = [
        ["/", "Overview", "/server?limit=1000", "/dns?limit=1000&records=false", "/dcLocation", "/readyz", networks],
        ["/servers", "Servers", "/server?limit=1000", networks],
        [`/servers/${server}`, "web", `/server/${server}`, networks],
        [`/networks/${network}`, "dmz", `/publicnetwork/${network}`, networks],
        ["/dns", "Domains", "/dns?limit=1000&records=false", networks],
        [`/dns/${domain}`, "web.example", `/dns/${domain}`, networks],
        ["/images", "Images", "/image", networks],
      ];
      for (const [path, heading, ...first] of pages) {
        reads = [];
        isReleased = new Promise<void>((resolve) => {
          load = resolve;
        });
        const sent = ["/account", "/event?newest=true&limit=1", ...first].map((address) =>
          page.waitForRequest(brume.url + address),
        );
        await page.goto(`/console${path}`, { waitUntil: "commit" });
        await Promise.all([...sent, page.getByText("Brume", { exact: true }).waitFor()]);
        load();
        await page.getByRole("heading", { name: heading }).first().waitFor();
        await page.locator(".skeleton").first().waitFor({ state: "detached" });
        assert.equal(await page.locator(".placeholder").isVisible(), false);
        const twice = reads.filter((address, at) => reads.indexOf(address) !== at && !address.startsWith("/console/"));
        assert.deepEqual(twice, [], reads.join("\n"));
      }
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
