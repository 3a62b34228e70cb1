/** Headless Chromium for the tests of the console. One browser serves all tests of a file; each test has a context without cookies and stored items. */
import { existsSync, globSync } from "node:fs";
import { resolve } from "node:path";
import { sessionHeader } from "@brume/api/session.ts";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { memoryFolder } from "./memoryfolder.ts";
import type { TestService } from "./testservice.ts";

/** Folder of the built console. */
export const consoleFolder = resolve(import.meta.dirname, "../../console/dist");

/** Chromium without windows, which opens a page in two thirds of the time; without root its files are in `.engines`. */
const engines = resolve(import.meta.dirname, "../../.engines");
const programs = ["/usr/bin/chromium-headless-shell", `${engines}/usr/lib/chromium/chromium-headless-shell`];

/** Bytes that are enough for what the processes of a browser share. */
const mostShared = 2 ** 30;

export function launchBrowser(): Promise<Browser> {
  const executablePath = programs.find((path) => existsSync(path));
  if (executablePath === undefined)
    throw new Error("chromium-headless-shell is missing: sh scripts/setup test installs it");
  const libraries = globSync(`${engines}/{usr/,}lib/*-linux-*`).join(":");
  return chromium.launch({
    executablePath,
    // What its processes share is in /dev/shm, where it costs a fifth less processor time than on a disk, unless a container has a small one.
    ignoreDefaultArgs: memoryFolder(mostShared) === null ? [] : ["--disable-dev-shm-usage"],
    ...(executablePath.startsWith(engines) && { env: { ...process.env, LD_LIBRARY_PATH: libraries } }),
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--renderer-process-limit=1"],
  });
}

interface ConsoleOptions {
  /** Token of the session; null: no user is signed in. */
  readonly token: string | null;
  readonly width?: number;
  readonly theme?: "light" | "dark";
  readonly locale?: string;
}

/** A page of the console, and what went wrong in it. */
export interface ConsolePage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Violations of the policy, errors of scripts, and failed files. */
  readonly errors: string[];
  close(): Promise<void>;
}

/** Opens a context that is signed in with the token. */
export type OpenConsole = (options: ConsoleOptions) => Promise<ConsolePage>;

export const openConsole = (
  browser: Browser,
  brume: Pick<TestService, "url">,
  options: ConsoleOptions,
): Promise<ConsolePage> => createConsoles(browser, brume)(options);

/**
 * Creates a function that opens signed-in contexts of a service. A closed context without cookies and stored items serves the next caller: its first page
 * stays open, so that the process of its pages does, which saves half of the time of a page.
 */
export function createConsoles(browser: Browser, brume: Pick<TestService, "url">): OpenConsole {
  const unused = new Map<string, { readonly context: BrowserContext; readonly first: Page }[]>();
  return async ({ token, width = 1440, theme = "light", locale = "en-GB" }) => {
    const hasTouch = width < 700;
    const kind = `${locale} ${hasTouch}`;
    const reused = unused.get(kind)?.pop();
    const context =
      reused?.context ?? (await browser.newContext({ baseURL: brume.url, locale, hasTouch, reducedMotion: "reduce" }));
    const first = reused?.first ?? (await context.newPage());
    if (reused === undefined) await first.goto("/livez");
    if (token !== null) {
      const response = await context.request.post("/session", {
        headers: { authorization: `Bearer ${token}`, [sessionHeader]: "1" },
        data: { Name: "Test" },
      });
      if (!response.ok()) throw new Error(`sign-in: ${await response.text()}`);
    }
    const page = await context.newPage();
    await page.setViewportSize({ width, height: hasTouch ? 844 : 900 });
    await page.emulateMedia({ colorScheme: theme });
    context.setDefaultTimeout(120_000);
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => {
      // A busy host reports that it is not ready.
      const isReadiness = message.location().url.endsWith("/readyz") && message.text().includes("status of 503");
      if (
        message.type() === "error" &&
        !isReadiness &&
        !/status of 4\d\d|ERR_(INTERNET_DISCONNECTED|CONNECTION|INCOMPLETE)/.test(message.text())
      )
        errors.push(`${message.text()} ${message.location().url}`);
    });
    return {
      page,
      context,
      errors,
      async close() {
        for (const each of context.pages()) {
          if (each === first) continue;
          // A request that a test changes may still be under way.
          await each.unrouteAll({ behavior: "ignoreErrors" });
          await each.close();
        }
        await context.clearCookies();
        await first.evaluate("localStorage.clear()");
        unused.set(kind, [...(unused.get(kind) ?? []), { context, first }]);
      },
    };
  };
}

/**
 * Waits until the page is drawn as it is now. Tables and charts measure themselves before the second frame, and what is placed by another
 * element that scrolls moves with a frame.
 */
export async function untilDrawn(page: Page): Promise<void> {
  await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
}
