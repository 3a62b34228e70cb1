/** The pages at `/docs` in headless Chromium: search, menu, forms, and access on a phone and a desktop, light and dark. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { consoleFolder, createConsoles, launchBrowser, type OpenConsole } from "../support/browser.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

describe("the pages of documents", { timeout: 300_000 }, () => {
  let brume: TestService;
  let browser: Browser;
  let open: OpenConsole;
  before(async () => {
    brume = await createTestService("sqlite", { consoleFolder });
    browser = await launchBrowser();
    open = createConsoles(browser, brume);
  });
  after(async () => {
    await browser.close();
    await brume.close();
  });

  async function story(
    path: string,
    options: { readonly width?: number; readonly theme?: "light" | "dark" },
    run: (page: Page) => Promise<void>,
  ): Promise<void> {
    const { page, context, errors, close } = await open({ token: null, ...options });
    try {
      await page.goto(path);
      await run(page);
      assert.deepEqual(errors, []);
    } catch (error) {
      await context.close();
      throw error;
    }
    await close();
  }

  test("the search leads to a section", () =>
    story("/docs", {}, async (page) => {
      await page.keyboard.press("/");
      await page.keyboard.type("server_busy");
      const first = page.locator("#found [aria-selected=true]");
      await first.getByText("server_busy").first().waitFor();
      await page.keyboard.press("Enter");
      await page.waitForURL("**/docs/errors#server_busy");
      await page.locator("tr#server_busy").waitFor();
    }));

  test("the type of an error leads to its cause", () =>
    story("/docs#server_busy", {}, async (page) => {
      await page.waitForURL("**/docs/errors#server_busy");
      await page.locator("tr#server_busy").waitFor();
    }));

  test("a form sends the request with the reader's token, and a change as a dry run", () =>
    story("/docs/api/dns#createDomain", {}, async (page) => {
      const form = page.locator("article", { has: page.locator("#createDomain") }).locator("details.try");
      await form.locator("summary").click();
      await form.locator("button").click();
      await form.locator("output.bad", { hasText: "401" }).waitFor();
      await page.fill("#token", brume.token);
      await form.locator("button").click();
      await form.locator("output.good", { hasText: "200" }).waitFor();
      assert.match(await form.locator("pre").innerText(), /"Name": "example.com"/);
      assert.deepEqual(await brume.client.listDomains(), []);
      await form.getByRole("checkbox").uncheck();
      await form.locator("button").click();
      await form.locator("pre", { hasText: /"ID": 1,/ }).waitFor();
      assert.equal((await brume.client.listDomains()).length, 1);
      await page.reload();
      assert.equal(await page.inputValue("#token"), brume.token);
    }));

  test("the menu marks the section that is read", () =>
    story("/docs/api/servers#createServer", {}, async (page) => {
      await page.locator('#menu a[href="#createServer"][aria-current=location]').waitFor();
      await page.evaluate('document.querySelector("#states").scrollIntoView()');
      await page.locator('#menu a[href="#states"][aria-current=location]').waitFor();
    }));

  test("on a phone the menu opens, and the page is not wider than the screen", () =>
    story("/docs/api/networks#configureFirewall", { width: 390 }, async (page) => {
      const isWide = () => page.evaluate("document.documentElement.scrollWidth > innerWidth");
      assert.equal(await isWide(), false);
      await page.locator("#configureFirewall").waitFor();
      await page.getByRole("button", { name: "Menu" }).click();
      await page.locator("#menu").getByRole("link", { name: "Security", exact: true }).click();
      await page.waitForURL("**/docs/security");
      assert.equal(await isWide(), false);
    }));

  for (const [path, theme, width] of [
    ["/docs", "light", 1440],
    ["/docs/api/account", "dark", 1440],
    ["/docs/errors", "light", 390],
    ["/docs/console", "dark", 768],
  ] as const)
    test(`axe finds nothing on ${path}, ${theme}, ${width} px`, () =>
      story(path, { theme, width }, async (page) => {
        await page.evaluate(axe);
        const found = await page.evaluate(async () => {
          const { run } = (
            globalThis as unknown as {
              axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
            }
          ).axe;
          const { violations } = await run({
            runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
            // Selectors of what is right take a third of the time.
            resultTypes: ["violations"],
            selectors: false,
          });
          return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
        });
        assert.deepEqual(found, []);
      }));
});
