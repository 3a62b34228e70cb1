/**
 * Takes pictures of the pages of the console: `node scripts/console-pictures.ts FOLDER [PAGE…]`. Each page in light and dark, at 390, 768
 * and 1440 pixels, of a service with simulated engines and some objects. `--only 1440-light` takes one kind.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Page } from "playwright-core";
import { consoleFolder, launchBrowser, openConsole } from "../test/support/browser.ts";
import { fillService } from "../test/support/consolescene.ts";
import { fillNetworks } from "../test/support/networkscene.ts";
import { createTestService } from "../test/support/testservice.ts";

const { values, positionals } = parseArgs({ allowPositionals: true, options: { only: { type: "string" } } });
const [folder = "pictures", ...wanted] = positionals;
mkdirSync(folder, { recursive: true });

const widths = [390, 768, 1440];
const themes = ["light", "dark"] as const;

const brume = await createTestService("sqlite", {
  consoleFolder,
  limits: { signIns: { requests: 1000, seconds: 60 } },
});
const browser = await launchBrowser();
try {
  const scene = await fillService(brume.client);
  const { network, privateNetwork } = await fillNetworks(brume.client);
  const pages: Readonly<Record<string, (page: Page) => Promise<unknown>>> = {
    signin: (page) => page.goto("/console/"),
    overview: (page) => page.goto("/console/"),
    servers: (page) => page.goto("/console/servers"),
    create: async (page) => {
      await page.goto("/console/servers/create");
      await page.getByLabel("Name", { exact: true }).fill("shop-1");
      await page.waitForTimeout(600);
    },
    server: (page) => page.goto(`/console/servers/${scene.server}`),
    metrics: (page) => page.goto(`/console/servers/${scene.server}?tab=metrics`),
    settings: (page) => page.goto(`/console/servers/${scene.server}?tab=settings`),
    backups: (page) => page.goto(`/console/servers/${scene.server}?tab=backups`),
    screen: (page) => page.goto(`/console/servers/${scene.server}?tab=screen`),
    networks: (page) => page.goto("/console/networks"),
    "networks-map": (page) => page.goto("/console/networks?tab=map"),
    "networks-private": (page) => page.goto("/console/networks?tab=private"),
    "networks-create": (page) => page.goto("/console/networks?create=public"),
    network: (page) => page.goto(`/console/networks/${network}`),
    "network-firewall": async (page) => {
      await page.goto(`/console/networks/${network}?tab=firewall`);
      await page.getByLabel("From address").fill("203.0.113.9");
      await page.getByText("Passes", { exact: true }).waitFor();
    },
    "network-review": async (page) => {
      await page.goto(`/console/networks/${network}?tab=firewall`);
      await page.getByRole("button", { name: "Add rule" }).click();
      await page.getByRole("button", { name: "Delete rule 5" }).click();
      await page.getByRole("button", { name: "Review" }).click();
      await page.getByText("Deny TCP").first().waitFor();
    },
    "network-vpn": (page) => page.goto(`/console/networks/${network}?tab=vpn`),
    "network-tunnel": async (page) => {
      await page.goto(`/console/networks/${network}?tab=vpn`);
      await page.getByRole("button", { name: "Create tunnel" }).click();
      await page.getByLabel("Name", { exact: true }).fill("laptop");
      await page.getByLabel("Networks behind the peer").fill("10.23.0.2/32");
      await page.waitForTimeout(600);
    },
    "network-peer": async (page) => {
      await page.goto(`/console/networks/${network}?tab=vpn`);
      await page.getByRole("button", { name: "Configuration" }).nth(1).click();
      await page.getByRole("button", { name: "Issue with keys" }).click();
      await page.getByRole("img", { name: "Configuration as QR code" }).waitFor();
    },
    "network-settings": (page) => page.goto(`/console/networks/${network}?tab=settings`),
    "network-private": (page) => page.goto(`/console/networks/private/${privateNetwork}`),
    domains: (page) => page.goto("/console/dns"),
    records: (page) => page.goto(`/console/dns/${scene.domain}`),
    activity: (page) => page.goto("/console/activity"),
    access: (page) => page.goto("/console/access"),
    projects: (page) => page.goto("/console/access?tab=projects"),
    images: (page) => page.goto("/console/images"),
    addimage: (page) => page.goto("/console/images?create=1"),
    audit: (page) => page.goto("/console/activity/audit"),
    webhooks: (page) => page.goto("/console/activity/webhooks"),
    webhook: (page) => page.goto(`/console/activity/webhooks/${scene.webhook}`),
    host: (page) => page.goto("/console/host"),
  };
  for (const [name, open] of Object.entries(pages)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    for (const width of widths)
      for (const theme of themes) {
        if (values.only !== undefined && values.only !== `${width}-${theme}`) continue;
        const { page, close } = await openConsole(browser, brume, {
          width,
          theme,
          token: name === "signin" ? null : brume.token,
        });
        await open(page);
        await page.waitForLoadState("networkidle", { timeout: 1500 }).catch(() => undefined);
        await page.waitForTimeout(300);
        await page.screenshot({ path: join(folder, `${name}-${width}-${theme}.png`) });
        await close();
      }
  }
} finally {
  await browser.close();
  await brume.close();
}
