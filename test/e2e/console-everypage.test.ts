/** All pages of the console: with the keyboard alone on the narrowest screen, and with tokens that may change nothing. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Page } from "playwright-core";
import { walkPage } from "../support/consoleaudit.ts";
import { describeConsole } from "../support/consolefixture.ts";
import { consolePages } from "../support/consolepages.ts";
import { fillExtremes } from "../support/extremescene.ts";

describeConsole("every page of the console", {}, (fixture) => {
  const { story } = fixture;
  let pages: ReturnType<typeof consolePages>;
  before(async () => {
    pages = consolePages(await fillExtremes(fixture.brume));
  });

  /** Opens a page and waits until it shows its content. */
  async function open(page: Page, address: string): Promise<void> {
    await page.goto(address);
    await page.locator("main h1, main [role=alert], main .empty").first().waitFor();
    await page.locator(".skeleton").first().waitFor({ state: "detached" });
  }

  test("everything is reachable with Tab at 320 pixels, named, in view and large enough, with the longest names", async () => {
    const faults: Record<string, string[]> = {};
    // 320 pixels are a screen of 1280 at 400 %.
    await story(
      fixture.brume.token,
      async (page) => {
        for (const [name, address] of Object.entries(pages)) {
          await open(page, address);
          const found = await walkPage(page);
          if (found.length > 0) faults[name] = found;
        }
      },
      { width: 320 },
    );
    assert.deepEqual(faults, {});
  });
});
