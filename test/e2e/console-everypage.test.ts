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

  /** Starts of the names of controls that change something. */
  const verbs =
    /^(create|add|delete|edit|change|save|apply|import|paste|link|unlink|power|shut|resize|rebuild|end|restore|revert|copy$|make|issue|adopt|resend)\b/i;

  /** Returns the names of what can be pressed, in the page. A link in a table shows an object. */
  const controls = `[...document.querySelectorAll(
    "button:enabled:not([aria-disabled=true]), main a[href]:not(.tabs a, [role=gridcell] a)",
  )].map((each) => each.getAttribute("aria-label") ?? each.textContent.trim())`;

  /** Visits all pages with a token, and returns what is wrong on each. `allowed`: pages whose controls the token may use. */
  async function visit(token: string, allowed: RegExp): Promise<Record<string, string[]>> {
    const faults: Record<string, string[]> = {};
    await story(token, async (page) => {
      let found: string[] = [];
      page.on("response", (response) => {
        if (response.status() === 403) found.push(`rejected: ${new URL(response.url()).pathname}`);
      });
      for (const [name, address] of Object.entries(pages)) {
        found = [];
        await open(page, address);
        const alerts = await page.getByRole("alert").allTextContents();
        const names = await page.evaluate<string[]>(controls);
        found.push(
          ...alerts.map((text) => `error: ${text}`),
          ...names.filter((text) => !allowed.test(name) && verbs.test(text)).map((text) => `offers: ${text}`),
        );
        if (found.length > 0) faults[name] = found;
      }
    });
    return faults;
  }

  test("a token that may only read sees no error and no control that changes something", async () => {
    const { Token } = await fixture.brume.client.createToken({
      body: { Name: "reader", Scopes: ["server:read", "dns:read", "network:read", "metrics:read"] },
    });
    assert.deepEqual(await visit(Token, /^$/), {});
  });

  test("a token of one domain sees no error, and may change only the records of this domain", async () => {
    const { Token } = await fixture.brume.client.createToken({
      body: { Name: "zone", Scopes: ["dns:write"], DomainID: Number(/\d+/.exec(pages.records)?.[0]) },
    });
    assert.deepEqual(await visit(Token, /^(records|domain-)/), {});
  });
});
