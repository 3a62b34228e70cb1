/**
 * Records a short walk through the console as an animated picture: `node scripts/console-walk.ts [FILE.webp]`. Chromium takes a picture
 * after each step, of a service with simulated engines, and `img2webp` (Debian's package webp) joins them.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { consoleFolder, launchBrowser, openConsole } from "../test/support/browser.ts";
import { fillService } from "../test/support/consolescene.ts";
import { fillNetworks } from "../test/support/networkscene.ts";
import { createTestService } from "../test/support/testservice.ts";

if (spawnSync("img2webp", ["-version"]).error !== undefined)
  throw new Error("img2webp is missing: as root, sh scripts/setup packages webp installs it");
const [output = "docs/console-walk.webp"] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "brume-walk-"));
const frames: string[] = [];

/** Takes a picture that is shown for `ms` milliseconds. */
async function show(page: Page, ms: number): Promise<void> {
  const path = join(folder, `${frames.length}.png`);
  await page.screenshot({ path });
  frames.push("-d", String(ms), path);
}

/** Types a text in parts, with a picture after each. */
async function type(page: Page, text: string): Promise<void> {
  for (const part of text.match(/.{1,3}/g) ?? []) {
    await page.keyboard.type(part);
    await show(page, 120);
  }
}

async function walk(page: Page, server: number, domain: number): Promise<void> {
  await page.goto("/console/");
  await page.getByText("Latest changes").waitFor();
  await page.waitForTimeout(800);
  await show(page, 1600);
  await page.keyboard.press("Control+k");
  await show(page, 400);
  await type(page, "create serv");
  await show(page, 500);
  await page.keyboard.press("Enter");
  await page.getByText("Shared network").waitFor();
  await type(page, "shop-1");
  await page.getByText("The request is valid.").waitFor();
  await show(page, 1600);
  await page.getByRole("button", { name: "Create server" }).click();
  await page.getByRole("heading", { name: "shop-1" }).waitFor();
  await show(page, 400);
  await page.getByText("Running", { exact: true }).first().waitFor();
  await page.waitForTimeout(500);
  await show(page, 1800);
  await page.goto(`/console/servers/${server}?tab=console`);
  await page.getByRole("button", { name: "Connect" }).click();
  await page.getByText("Connected", { exact: true }).waitFor();
  await show(page, 500);
  await type(page, "hello from the browser");
  await show(page, 900);
  await page.goto(`/console/dns/${domain}`);
  await page.getByLabel("Value: api A").waitFor();
  await show(page, 700);
  for (const value of ["192.0.2.", "192.0.2.8", "192.0.2.80"]) {
    await page.getByLabel("Value: api A").fill(value);
    await show(page, 250);
  }
  await page.getByRole("button", { name: "Review" }).click();
  await page.locator(".diff .add").first().waitFor();
  await page.getByRole("dialog").getByText("This request").click();
  await page.getByRole("dialog").locator("pre").first().waitFor();
  await show(page, 2000);
  await page.getByRole("dialog").getByRole("button", { name: "Apply" }).click();
  await page.getByText(/applied as version/).waitFor();
  await show(page, 1600);
  await page.goto("/console/networks?tab=map");
  await page.getByText("office", { exact: true }).first().waitFor();
  await page.getByText("Legend", { exact: true }).click();
  await page.waitForTimeout(1000);
  await show(page, 2500);
}

const brume = await createTestService("sqlite", { consoleFolder });
const browser = await launchBrowser();
try {
  const scene = await fillService(brume.client);
  await fillNetworks(brume.client);
  const { page, close } = await openConsole(browser, brume, { token: brume.token, width: 1100 });
  await page.setViewportSize({ width: 1100, height: 688 });
  await walk(page, scene.server, scene.domain);
  await close();
  execFileSync("img2webp", ["-loop", "0", "-lossy", "-q", "62", "-m", "4", ...frames, "-o", output]);
  console.log(`${output}: ${frames.length / 3} pictures, ${Math.round(statSync(output).size / 1024)} KB`);
} finally {
  await browser.close();
  await brume.close();
  rmSync(folder, { recursive: true });
}
