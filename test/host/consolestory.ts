/**
 * Two stories of the web console with a real guest: a server that is created in the browser gets a login on its serial console, and its
 * screen changes when one types.
 */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { launchBrowser, openConsole } from "../support/browser.ts";
import { actionTimeout, type ServerHost } from "./serverhost.ts";

/** Pixels that the typed text changes at least. A cursor alone changes fewer. */
const typedPixels = 400;

/** Returns the pixels of the screen, one number for each. */
const pixels = (page: Page): Promise<number[]> =>
  page.evaluate<number[]>(`(() => {
    const canvas = document.querySelector(".screen canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return Array.from(new Uint32Array(data.buffer));
  })()`);

export async function tellConsoleStories(host: ServerHost): Promise<void> {
  const browser = await launchBrowser();
  try {
    const { page, errors } = await openConsole(browser, host.brume, { token: host.brume.token });
    page.setDefaultTimeout(actionTimeout);
    await page.goto("/console/servers/create");
    await page.getByLabel("Name", { exact: true }).fill("by-browser");
    await page.getByText("The request is valid.").waitFor();
    await page.getByRole("button", { name: "Create server" }).click();
    await page.getByRole("heading", { name: "by-browser" }).waitFor();
    await page.getByText("Running", { exact: true }).first().waitFor();
    const [server] = await host.client.listServers({ query: { name: "by-browser" } });
    assert.ok(server);

    await page.getByRole("link", { name: "Console", exact: true }).click();
    await page.getByRole("button", { name: "Connect" }).click();
    await page.getByText("Connected", { exact: true }).waitFor();
    const shown = (text: string | RegExp) => page.locator(".xterm-accessibility").getByText(text).last().waitFor();
    await page.keyboard.press("Enter");
    await shown(/by-browser login:/);
    await page.keyboard.type("root\n");
    await shown("Password:");
    await page.keyboard.type(`${server.AdminPassword}\n`);
    await shown(/[#$] ?$/);
    await page.keyboard.type("echo $((6 * 7))-by-$(hostname)\n");
    await shown("42-by-by-browser");

    await page.getByRole("link", { name: "Screen", exact: true }).click();
    await page.getByRole("button", { name: "Connect" }).click();
    await page.getByText("Connected", { exact: true }).waitFor();
    const before = await pixels(page);
    assert.ok(before.length > 200_000, `${before.length} pixels`);
    await page.keyboard.type("typed in the browser", { delay: 30 });
    let changed = 0;
    for (const end = Date.now() + actionTimeout; changed < typedPixels && Date.now() < end; ) {
      await page.waitForTimeout(200);
      const after = await pixels(page);
      changed = after.filter((pixel, index) => pixel !== before[index]).length;
    }
    assert.ok(changed >= typedPixels, `${changed} pixels have changed`);
    await page.getByRole("button", { name: "Type password and Enter" }).click();

    // What the screen shows, read in the guest: the password with its capital letters, behind the text before it.
    await page.getByRole("link", { name: "Console", exact: true }).click();
    await page.getByRole("button", { name: "Connect" }).click();
    await page.getByText("Connected", { exact: true }).waitFor();
    await page.keyboard.type(
      `until grep -q "browser${server.AdminPassword}" /dev/vcs1; do sleep 1; done; echo $((6 * 8))-on-screen\n`,
    );
    await shown("48-on-screen");
    assert.deepEqual(errors, []);
    await host.delete(server.ID);
  } finally {
    await browser.close();
  }
}
