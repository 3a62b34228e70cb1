/**
 * Takes pictures of the pages of the console: `node scripts/console-pictures.ts FOLDER [PAGE…]`. Each page in light and dark, at 390, 768
 * and 1440 pixels, of a service with simulated engines and some objects. `--only 1440-light` takes one kind, `--locale ru-RU` those of
 * another language, `--whole` the whole length of each page without dialog. With `--extreme` the objects have the longest and strangest names.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Page } from "playwright-core";
import { en } from "../console/src/texts/en.ts";
import { ru } from "../console/src/texts/ru.ts";
import { consoleFolder, launchBrowser, openConsole } from "../test/support/browser.ts";
import { consolePages, type PageName } from "../test/support/consolepages.ts";
import { fillService } from "../test/support/consolescene.ts";
import { fillExtremes } from "../test/support/extremescene.ts";
import { fillNetworks } from "../test/support/networkscene.ts";
import { createTestService } from "../test/support/testservice.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: "string" },
    locale: { type: "string", default: "en-GB" },
    whole: { type: "boolean", default: false },
    extreme: { type: "boolean", default: false },
  },
});
const [folder = "pictures", ...wanted] = positionals;
mkdirSync(folder, { recursive: true });
const t = values.locale.startsWith("ru") ? ru : en;

const widths = [390, 768, 1440];
const themes = ["light", "dark"] as const;

/** A page with what a user has done in it. */
interface Moment {
  readonly at: PageName;
  readonly steps: (page: Page) => Promise<unknown>;
}

const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).first().click();
/** Presses a button and waits for the dialog that it opens. */
const openDialog = async (page: Page, name: string): Promise<void> => {
  await press(page, name);
  await page.getByRole("dialog").waitFor();
};
const fill = (page: Page, label: string, text: string) => page.getByLabel(label, { exact: true }).first().fill(text);

const moments: Readonly<Record<string, Moment>> = {
  "server-filled": {
    at: "server-create",
    steps: async (page) => {
      await fill(page, t.common.name, "shop-1");
      await page.waitForTimeout(600);
    },
  },
  "server-invalid": {
    at: "server-create",
    steps: async (page) => {
      await fill(page, t.common.name, "shop");
      await fill(page, t.create.count, "100");
      await page.waitForTimeout(600);
    },
  },
  "more-menu": {
    at: "overview",
    steps: (page) => page.locator(".bottom-bar:visible, .top:visible").last().locator("[aria-haspopup]").last().click(),
  },
  running: { at: "overview", steps: (page) => page.locator(".top .end button").first().click() },
  palette: { at: "overview", steps: (page) => page.keyboard.press("Control+k") },
  "account-menu": { at: "overview", steps: (page) => press(page, t.nav.account) },
  "server-menu": {
    at: "servers",
    steps: (page) => page.getByRole("table").locator("[aria-haspopup=menu]").first().click(),
  },
  "servers-selected": {
    at: "servers",
    steps: (page) => page.getByRole("checkbox", { name: t.table.selectAll }).check(),
  },
  "packet-test": {
    at: "network-firewall",
    steps: async (page) => {
      await page.getByLabel(t.firewall.testSource).fill("203.0.113.9");
      await page.locator(".decides").first().waitFor();
    },
  },
  "firewall-review": {
    at: "network-firewall",
    steps: async (page) => {
      await press(page, t.firewall.add);
      await page.locator("dialog button[type=submit]").click();
      await page
        .getByRole("button", { name: t.firewall.remove(5) })
        .first()
        .click();
      await press(page, t.firewall.review);
      await page.getByRole("dialog").waitFor();
    },
  },
  "tunnel-create": {
    at: "network-vpn",
    steps: async (page) => {
      await press(page, t.vpn.create);
      await fill(page, t.common.name, "laptop");
      await fill(page, t.vpn.peerNetwork, "10.23.0.2/32");
      await page.waitForTimeout(600);
    },
  },
  "tunnel-peer": {
    at: "network-vpn",
    steps: async (page) => {
      await page.getByRole("button", { name: t.vpn.config }).nth(1).click();
      await press(page, t.vpn.issue.WireGuard);
      await page.waitForTimeout(600);
    },
  },
  "records-changed": {
    at: "records",
    steps: async (page) => {
      await press(page, t.records.add);
      await page.waitForTimeout(300);
    },
  },
  "records-invalid": {
    at: "records",
    steps: async (page) => {
      await page.locator("[role=row] input").nth(2).fill("not an address");
      await page.locator(".field-note:visible").waitFor();
    },
  },
  "token-create": { at: "tokens", steps: (page) => press(page, t.access.createToken) },
  "webhook-create": { at: "webhooks", steps: (page) => press(page, t.webhooks.create) },
  "key-create": { at: "keys", steps: (page) => press(page, t.access.addKey) },
  "project-create": { at: "projects", steps: (page) => press(page, t.access.createProject) },
  "zone-import": { at: "records", steps: (page) => press(page, t.records.paste) },
  "server-delete": {
    at: "server-settings",
    steps: async (page) => {
      await press(page, t.common.delete);
      await page.waitForTimeout(300);
    },
  },
  "server-rebuild": { at: "server-settings", steps: (page) => openDialog(page, t.server.rebuild) },
  "backup-restore": {
    at: "server-backups",
    steps: (page) => openDialog(page, `${t.backups.restore}: web-golden`),
  },
  "tunnel-delete": {
    at: "network-vpn",
    steps: (page) =>
      page
        .getByRole("button", { name: /^(Delete|Удалить)/ })
        .first()
        .click(),
  },
  "domain-delete": { at: "domain-settings", steps: (page) => openDialog(page, t.common.delete) },
  "image-delete": { at: "images", steps: (page) => openDialog(page, t.images.delete("web-golden")) },
  "token-delete": { at: "tokens", steps: (page) => openDialog(page, t.access.deleteToken("monitoring")) },
  "key-delete": { at: "keys", steps: (page) => openDialog(page, t.access.deleteKey("laptop")) },
  "webhook-delete": { at: "webhook", steps: (page) => openDialog(page, t.common.delete) },
  "claim-delete": { at: "claims", steps: (page) => openDialog(page, t.claims.delete("brand.example")) },
  "reservation-release": {
    at: "reserved",
    steps: (page) => openDialog(page, t.reserved.releaseTitle("internal.example")),
  },
  "image-upload": {
    at: "images",
    steps: async (page) => {
      await page.route("**/image/*/content", (route) => setTimeout(() => void route.abort().catch(() => {}), 60_000));
      await press(page, t.images.create);
      await page.getByRole("dialog").getByText(t.images.sources.upload, { exact: true }).click();
      await page.locator("dialog").getByLabel(t.common.name, { exact: true }).fill("uploaded");
      const file = { name: "disk.raw", mimeType: "application/octet-stream", buffer: Buffer.alloc(3_000_000, 7) };
      await page.locator("dialog input[type=file]").setInputFiles(file);
      await page.locator("dialog button[type=submit]").click();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await page.waitForTimeout(1500);
    },
  },
  "image-upload-waiting": { at: "images", steps: (page) => page.reload() },
  "page-error": {
    at: "overview",
    steps: async (page) => {
      await page.route("**/webhook*", (route) =>
        route.request().resourceType() === "document"
          ? route.continue()
          : route.fulfill({ status: 200, json: { no: 1 } }),
      );
      await page.goto("/console/activity/webhooks");
      await page.waitForTimeout(1500);
    },
  },
  "request-error": {
    at: "overview",
    steps: async (page) => {
      const json = {
        title: "The database is not available.",
        detail: "The disk of the database is full.",
        code: "storage_unavailable",
        status: 503,
        errors: [],
        requestId: "r-1",
      };
      await page.route("**/webhook*", (route) =>
        route.request().resourceType() === "document" ? route.continue() : route.fulfill({ status: 503, json }),
      );
      await page.goto("/console/activity/webhooks");
      await page.locator("[role=alert]").first().waitFor();
    },
  },
  "connection-lost": {
    at: "servers",
    steps: async (page) => {
      await page.route("**/event**", (route) => route.abort());
      await page.reload();
      await page.locator(".notice").waitFor();
    },
  },
  "deleted-object": {
    at: "overview",
    steps: async (page) => {
      await page.goto("/console/servers/999");
      await page.locator(".empty").waitFor();
    },
  },
  "not-found": {
    at: "overview",
    steps: async (page) => {
      await page.goto("/console/no-such-page");
      await page.locator(".empty").waitFor();
    },
  },
};

const brume = await createTestService("sqlite", {
  consoleFolder,
  limits: { signIns: { requests: 1000, seconds: 60 } },
});
const browser = await launchBrowser();
try {
  const scene = await fillService(brume.client);
  const networks = await fillNetworks(brume.client);
  await brume.client.createClaim({ body: { Name: "brand.example" } });
  await brume.client.createReservation({ body: { Name: "internal.example" } });
  const addresses = consolePages(values.extreme ? await fillExtremes(brume) : { ...scene, ...networks });
  const pages: readonly (readonly [string, string, Moment["steps"]?])[] = [
    ["signin", addresses.overview],
    ...Object.entries(addresses),
    ...Object.entries(moments).map(([name, { at, steps }]) => [name, addresses[at], steps] as const),
  ];
  for (const width of widths)
    for (const theme of themes) {
      if (values.only !== undefined && values.only !== `${width}-${theme}`) continue;
      const look = { width, theme, locale: values.locale };
      const guest = await openConsole(browser, brume, { ...look, token: null });
      const user = await openConsole(browser, brume, { ...look, token: brume.token });
      for (const [name, address, steps] of pages) {
        if (wanted.length > 0 && !wanted.includes(name)) continue;
        const { page } = name === "signin" ? guest : user;
        page.setDefaultTimeout(8000);
        await page.goto(address);
        await page.locator("h1").first().waitFor();
        await page.locator(".skeleton").first().waitFor({ state: "detached" });
        await steps?.(page).catch((error: unknown) => console.error(`${name}-${width}: ${String(error)}`));
        await page.waitForTimeout(400);
        await page.unrouteAll();
        const screen = page.viewportSize();
        // A picture of Playwright that is larger than the screen closes menus and shows a phone as if it had a mouse.
        if (values.whole && steps === undefined) {
          const height = Number(await page.evaluate("document.documentElement.scrollHeight"));
          await page.setViewportSize({ width, height });
        }
        await page.screenshot({ path: join(folder, `${name}-${width}-${theme}.png`) });
        if (screen !== null) await page.setViewportSize(screen);
      }
      await guest.close();
      await user.close();
    }
} finally {
  await browser.close();
  await brume.close();
}
