/**
 * The console in headless Chromium, against a real service on simulated engines. One browser and one service serve all stories of a file.
 * A story fails by any violation of the policy and any error of a script.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe } from "node:test";
import type { Browser, Page } from "playwright-core";
import { consoleFolder, createConsoles, launchBrowser, type OpenConsole, untilDrawn } from "./browser.ts";
import { fillService, type Scene } from "./consolescene.ts";
import { everySecond, triesAll } from "./random.ts";
import { createTestService, type TestService } from "./testservice.ts";

/** Widths of a phone, a tablet and a desktop. */
export const widths = [390, 768, 1440] as const;

interface Look {
  /** By default each story has another one of `widths` than the one before it. */
  readonly width?: number;
  readonly theme?: "light" | "dark";
  readonly locale?: string;
}

/** What the stories of a file share. It is complete when the first story starts. */
export interface ConsoleFixture {
  readonly brume: TestService;
  readonly browser: Browser;
  readonly scene: Scene;
  /** Runs a story in its own context, signed in with the token; null: no user is signed in. */
  story(token: string | null, run: (page: Page) => Promise<void>, look?: Look): Promise<void>;
}

type ServiceOptions = Parameters<typeof createTestService>[1];

/**
 * Declares the stories of a file. With `TEST_RUNS=all` all run once for each width. `options`: settings of the service beside those of the
 * console.
 */
export function describeConsole(
  title: string,
  options: ServiceOptions,
  declare: (fixture: ConsoleFixture) => void,
): void {
  if (triesAll) for (const width of widths) describeOnce(`${title} at ${width} pixels`, options, () => width, declare);
  else {
    let stories = 0;
    describeOnce(title, options, () => widths[stories++ % widths.length] as number, declare);
  }
}

function describeOnce(
  title: string,
  options: ServiceOptions,
  nextWidth: () => number,
  declare: (fixture: ConsoleFixture) => void,
): void {
  // All stories together: a loaded host draws pages many times slower.
  describe(title, { timeout: 900_000 }, () => {
    let brume: TestService;
    let browser: Browser;
    let scene: Scene;
    let open: OpenConsole;
    before(async () => {
      brume = await createTestService("sqlite", {
        consoleFolder,
        ...options,
        limits: { signIns: { requests: 1000, seconds: 60 }, ...options?.limits },
      });
      browser = await launchBrowser();
      open = createConsoles(browser, brume);
      scene = await fillService(brume.client);
    });
    after(async () => {
      await browser.close();
      await brume.close();
    });
    declare({
      get brume() {
        return brume;
      },
      get browser() {
        return browser;
      },
      get scene() {
        return scene;
      },
      async story(token, run, look = {}) {
        const { page, context, errors, close } = await open({ token, width: nextWidth(), ...look });
        try {
          await run(page);
          assert.deepEqual(errors, []);
        } catch (error) {
          await context.close();
          throw error;
        }
        await close();
      },
    });
  });
}

/** Returns whether tables show all their columns: on a phone or tablet they leave some out. */
export const isDesktop = (page: Page): boolean => page.viewportSize()?.width === widths.at(-1);

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Asserts that axe finds nothing on the page, and that the page is not wider than the screen. */
export async function checkAccess(page: Page): Promise<void> {
  // By the debugger, because the policy of the page forbids foreign scripts. Followed links keep the document, and axe in it.
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await (
      globalThis as unknown as {
        axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
      }
    ).axe.run({
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
      // Selectors of what is right take a third of the time.
      resultTypes: ["violations"],
      selectors: false,
    });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
  });
  assert.deepEqual(found, [], page.url());
  const overflow = Number(await page.evaluate("document.documentElement.scrollWidth - innerWidth"));
  assert.ok(overflow <= 0, `${page.url()} is wider than the screen by ${overflow} px`);
}

/** Changes the page to that of a phone in dark, or of a larger screen in light, and waits until it is drawn. */
async function changeLook(page: Page, width: number): Promise<void> {
  const isPhone = width === widths[0];
  const debug = await page.context().newCDPSession(page);
  await debug.send("Emulation.setTouchEmulationEnabled", { enabled: isPhone });
  await page.emulateMedia({ colorScheme: isPhone ? "dark" : "light" });
  await page.setViewportSize({ width, height: isPhone ? 844 : 900 });
  await untilDrawn(page);
}

const notFound = "This page does not exist";

/**
 * Opens a page of the loaded console, as its links do: this takes a fifth of the processor time of a load. The page of an address that does
 * not exist is shown in between, so that nothing of the former page stays. The caller waits for the content.
 */
export async function followLink(page: Page, address: string): Promise<void> {
  const between = page.getByText(notFound);
  await page.evaluate('history.pushState({}, "", "/console/no-such-page")');
  await between.waitFor();
  await page.evaluate(`history.pushState({}, "", ${JSON.stringify(address)})`);
  await between.waitFor({ state: "detached" });
}

/**
 * Opens each page, waits for its text and checks it: on a tablet or a desktop in turn, or every second one of `onPhone` on a phone, in another
 * run the others. The first page is loaded, the others are opened as by a link. The last of `onPhone` is also loaded on a phone. With
 * `TEST_RUNS=all` each page is loaded and checked at the width of the suite.
 */
export async function checkPages(
  { story, brume }: ConsoleFixture,
  pages: readonly (readonly [path: string, text: string])[],
  onPhone: (path: string) => boolean,
): Promise<void> {
  const [phone, tablet, desktop] = widths;
  const isPhone = everySecond();
  await story(
    brume.token,
    async (page) => {
      for (const [index, [path, text]] of pages.entries()) {
        if (triesAll || index === 0 || text === notFound) await page.goto(path);
        else await followLink(page, path);
        const large = index % 2 === 0 ? desktop : tablet;
        const own = page.viewportSize()?.width ?? desktop;
        await changeLook(page, triesAll ? own : onPhone(path) && isPhone() ? phone : large);
        await page.getByText(text).filter({ visible: true }).first().waitFor();
        await checkAccess(page);
      }
    },
    triesAll ? {} : { width: desktop },
  );
  if (triesAll) return;
  const narrow = pages.filter(([path]) => onPhone(path)).slice(-1);
  await story(
    brume.token,
    async (page) => {
      for (const [path, text] of narrow) {
        await page.goto(path);
        await page.getByText(text).filter({ visible: true }).first().waitFor();
        await checkAccess(page);
      }
    },
    { width: phone, theme: "dark" },
  );
}
