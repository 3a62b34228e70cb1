/** Headless Chromium for the tests of the console. One browser serves all tests of a file; each test has its own context. */
import { existsSync, globSync } from "node:fs";
import { resolve } from "node:path";
import { sessionHeader } from "@brume/api/session.ts";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import type { TestService } from "./testservice.ts";

/** Folder of the built console. */
export const consoleFolder = resolve(import.meta.dirname, "../../console/dist");

/** The program of the package; without root its files are in `.engines`. */
const engines = resolve(import.meta.dirname, "../../.engines");
const programs = ["/usr/bin/chromium", `${engines}/usr/lib/chromium/chromium`];

export function launchBrowser(): Promise<Browser> {
  const executablePath = programs.find((path) => existsSync(path));
  if (executablePath === undefined) throw new Error("chromium is missing: sh scripts/setup test installs it");
  const libraries = globSync(`${engines}/{usr/,}lib/*-linux-*`).join(":");
  return chromium.launch({
    executablePath,
    ...(executablePath.startsWith(engines) && { env: { ...process.env, LD_LIBRARY_PATH: libraries } }),
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"],
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
  readonly faults: string[];
  close(): Promise<void>;
}

/** Opens a context that is signed in with the token. */
export async function openConsole(
  browser: Browser,
  brume: Pick<TestService, "url">,
  { token, width = 1440, theme = "light", locale = "en-GB" }: ConsoleOptions,
): Promise<ConsolePage> {
  const context = await browser.newContext({
    baseURL: brume.url,
    viewport: { width, height: width < 700 ? 844 : 900 },
    colorScheme: theme,
    locale,
    hasTouch: width < 700,
    reducedMotion: "reduce",
  });
  if (token !== null) {
    const response = await context.request.post("/session", {
      headers: { authorization: `Bearer ${token}`, [sessionHeader]: "1" },
      data: { Name: "Test" },
    });
    if (!response.ok()) throw new Error(`sign-in: ${await response.text()}`);
  }
  const page = await context.newPage();
  page.setDefaultTimeout(45_000);
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    if (
      message.type() === "error" &&
      !/status of 4\d\d|ERR_(INTERNET_DISCONNECTED|CONNECTION|INCOMPLETE)/.test(message.text())
    )
      faults.push(message.text());
  });
  return { page, context, faults, close: () => context.close() };
}
