/**
 * All pages of the console: with the keyboard alone on the narrowest screen, with tokens that may change nothing, and with hostile text. Each
 * test visits every second page, in another run the others; all with `TEST_RUNS=all`.
 */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { before, test } from "node:test";
import type { Page } from "playwright-core";
import { walkPage } from "../support/consoleaudit.ts";
import { describeConsole, followLink } from "../support/consolefixture.ts";
import { consolePages, type PageName } from "../support/consolepages.ts";
import { fillExtremes } from "../support/extremescene.ts";
import { everySecond, triesAll } from "../support/random.ts";

describeConsole("every page of the console", {}, (fixture) => {
  const { story } = fixture;
  let pages: ReturnType<typeof consolePages>;
  before(async () => {
    pages = consolePages(await fillExtremes(fixture.brume));
  });

  /** Opens a page and waits until it shows its content. */
  async function open(page: Page, address: string): Promise<void> {
    await page.goto(address);
    await shown(page);
  }

  async function shown(page: Page): Promise<void> {
    await page.locator("main h1, main [role=alert], main .empty").first().waitFor();
    await page.locator(".skeleton").first().waitFor({ state: "detached" });
  }

  /** Opens a page as a link of the loaded console does. With `TEST_RUNS=all` each page is loaded. */
  async function follow(page: Page, address: string): Promise<void> {
    if (triesAll || !page.url().includes("/console")) return open(page, address);
    await followLink(page, address);
    return shown(page);
  }

  test("everything is reachable with Tab at 320 pixels, named, in view and large enough, with the longest names", async () => {
    const errors: Record<string, string[]> = {};
    // 320 pixels are a screen of 1280 at 400 %.
    await story(
      fixture.brume.token,
      async (page) => {
        for (const [name, address] of Object.entries(pages).filter(everySecond())) {
          await follow(page, address);
          const found = await walkPage(page);
          if (found.length > 0) errors[name] = found;
        }
      },
      { width: 320 },
    );
    assert.deepEqual(errors, {});
  });

  /** Starts of the names of controls that change something. */
  const verbs =
    /^(create|add|delete|edit|change|save|apply|import|paste|link|unlink|power|shut|resize|rebuild|end|restore|revert|copy$|make|issue|adopt|resend|claim|check|cancel|reserve|release)\b/i;

  /** Returns the names of what can be pressed, in the page. A link in a table shows an object. */
  const controls = `[...document.querySelectorAll(
    "button:enabled:not([aria-disabled=true]), main a[href]:not(.tabs a, [role=cell] a)",
  )].map((each) => each.getAttribute("aria-label") ?? each.textContent.trim())`;

  /** Visits pages with a token and returns what is wrong on each. `allowed`: pages whose controls the token may use. */
  async function visit(token: string, allowed: RegExp): Promise<Record<string, string[]>> {
    const errors: Record<string, string[]> = {};
    await story(token, async (page) => {
      let found: string[] = [];
      page.on("response", (response) => {
        if (response.status() === 403) found.push(`rejected: ${new URL(response.url()).pathname}`);
      });
      for (const [name, address] of Object.entries(pages).filter(everySecond())) {
        found = [];
        await follow(page, address);
        const alerts = await page.getByRole("alert").allTextContents();
        const names = await page.evaluate<string[]>(controls);
        found.push(
          ...alerts.map((text) => `error: ${text}`),
          ...names.filter((text) => !allowed.test(name) && verbs.test(text)).map((text) => `offers: ${text}`),
        );
        if (found.length > 0) errors[name] = found;
      }
    });
    return errors;
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

  /** Dialogs and rows that have no address, by the button that opens them. */
  const openers: readonly (readonly [name: PageName, button: string])[] = [
    ["tokens", "Create token"],
    ["keys", "Add SSH key"],
    ["projects", "Create project"],
    ["webhooks", "Add webhook"],
    ["network-vpn", "Create tunnel"],
    ["network-firewall", "Add rule"],
    ["records", "Add record"],
    ["records", "Import zone file"],
    ["server-backups", "Create image"],
  ];

  /** Fills all fields of the page, as a user would, and returns their number. */
  const fillAll = (text: string): string => `(() => {
    const fields = [...document.querySelectorAll("input:not([type=checkbox], [type=radio], [type=file]), textarea")];
    for (const field of fields) {
      if (field.disabled) continue;
      const { set } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value");
      set.call(field, ${JSON.stringify(text)});
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
    return fields.length;
  })()`;

  test("hostile text in every field runs nothing and does not break the page", async () => {
    const markup = `"><img src=x onerror="document.title='run'"><script>document.title='run'</script>\u202e\0`;
    const texts = [markup, "W".repeat(10_000)];
    // Each page that is visited gets one of both, in another run the other one.
    const first = randomInt(2);
    let fields = 0;
    const errors: string[] = [];
    await story(
      fixture.brume.token,
      async (page) => {
        const visits = [...Object.keys(pages).map((name) => [name as PageName, ""] as const), ...openers];
        for (const [index, [name, button]] of visits.filter(everySecond()).entries()) {
          await follow(page, pages[name]);
          if (button !== "") await page.getByRole("button", { name: button }).first().click();
          for (const text of triesAll ? texts : [texts[(index + first) % 2] as string]) {
            const count = await page.evaluate<number>(fillAll(text));
            fields += count;
            if (count === 0) break;
            await page.waitForTimeout(400);
            const state = await page.evaluate(
              "`${document.title} ${document.documentElement.scrollWidth - innerWidth}`",
            );
            if (state !== "Brume 0") errors.push(`${name} ${button}: ${String(state)}`);
          }
          await page.locator("h1").first().waitFor();
        }
      },
      { width: 390 },
    );
    assert.deepEqual(errors, [], `first text: ${first}`);
    assert.ok(fields > (triesAll ? 100 : 25), `${fields} fields`);
  });

  test("a dialog returns the focus to what opened it, also from a menu", async () => {
    const focused = "document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent";
    await story(fixture.brume.token, async (page) => {
      const escape = async (): Promise<unknown> => {
        await page.getByRole("dialog").waitFor();
        await page.keyboard.press("Escape");
        await page.getByRole("dialog").waitFor({ state: "detached" });
        return page.evaluate(focused);
      };
      await open(page, pages.servers);
      await page.getByRole("button", { name: "More: web-1" }).press("Enter");
      await page.getByRole("menuitem", { name: "Copy" }).press("Enter");
      assert.equal(await escape(), "More: web-1");
      await open(page, pages.projects);
      await page.getByRole("button", { name: "Create project" }).press("Enter");
      assert.equal(await escape(), "Create project");
      await page.keyboard.press("Control+k");
      assert.equal(await escape(), "Create project");
    });
  });

  test("Ctrl-K opens the palette as soon as the page is drawn", async () => {
    await story(fixture.brume.token, async (page) => {
      await page.addInitScript(`new MutationObserver((_, observer) => {
        if (document.querySelector("button.search") === null) return;
        observer.disconnect();
        dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true }));
      }).observe(document, { childList: true, subtree: true })`);
      await page.goto(pages.servers);
      await page.getByRole("dialog", { name: "Command palette" }).waitFor({ timeout: 20_000 });
    });
  });
});
