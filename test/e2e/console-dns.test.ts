/** Stories of the console about domains: long tables with the keyboard, labels, claims and reserved names. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { describeConsole } from "../support/consolefixture.ts";

describeConsole("domains in the console", {}, (fixture) => {
  const { story } = fixture;

  test("a long table is read as a table, scrolls with the keyboard, and keeps the focus of a row out of view", async () => {
    const lines = Array.from({ length: 400 }, (_, index) => `host-${1000 + index} 300 IN A 192.0.2.1`);
    const { ID } = await fixture.brume.client.createDomain({
      body: { Name: "long.example", ZoneFile: lines.join("\n") },
    });
    await story(fixture.brume.token, async (page) => {
      await page.goto(`/console/dns/${ID}`);
      const table = page.getByRole("table", { name: "Records" });
      const nameOf = (row: number) => page.getByLabel(`Name: host-${1000 + row} A`);
      await nameOf(0).waitFor();
      assert.equal(await page.getByRole("grid").count(), 0);
      assert.equal(await table.getAttribute("aria-rowcount"), "401");
      assert.ok((await table.getByRole("row").count()) < 60);
      await page.getByRole("button", { name: "Import zone file" }).focus();
      await page.keyboard.press("Tab");
      assert.equal(await table.and(page.locator(":focus")).count(), 1);
      await page.keyboard.press("End");
      await nameOf(399).waitFor();
      assert.equal(await page.getByRole("row").last().getAttribute("aria-rowindex"), "401");
      await page.keyboard.press("Home");
      await nameOf(2).focus();
      await table.hover();
      await page.mouse.wheel(0, 6000);
      await nameOf(155).waitFor();
      assert.equal(await page.evaluate("document.activeElement?.getAttribute('aria-label')"), "Name: host-1002 A");
      await page.keyboard.type("x");
      await page.getByText("1 pending change").first().waitFor();
      // Tab continues at the control after it, and the table scrolls there.
      await page.keyboard.press("Tab");
      await page
        .getByLabel(/^TTL: (x?host-1002x?) A/)
        .and(page.locator(":focus"))
        .waitFor();
      await page.getByRole("button", { name: "Discard" }).click();
    });
  });
});
