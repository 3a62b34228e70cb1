/** Stories of the console about the charts of a server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { describeConsole } from "../support/consolefixture.ts";

describeConsole("charts in the console", {}, (fixture) => {
  const { story } = fixture;

  test("a drag over a chart shows that part of all charts, and the button shows all again", async () => {
    await story(fixture.brume.token, async (page) => {
      const now = Date.now();
      await page.route("**/server/*/metrics?*", (route) => {
        const query = new URL(route.request().url()).searchParams;
        const [from, to] = [Date.parse(query.get("from") ?? ""), Date.parse(query.get("to") ?? "") || now];
        const Times = Array.from({ length: 60 }, (_, index) =>
          new Date(from + ((to - from) * index) / 59).toISOString(),
        );
        const values = Times.map((_, index) => index);
        const Series = {
          Cpu: values,
          MemoryUsed: values,
          DiskRead: values,
          DiskWrite: values,
          NetIn: values,
          NetOut: values,
        };
        return route.fulfill({ json: { Step: Number(query.get("step")), Times, Series } });
      });
      await page.goto(`/console/servers/${fixture.scene.server}?tab=metrics`);
      const plot = page.locator(".u-over").first();
      await plot.waitFor();
      for (const name of [
        /^CPU, one core is 100%\. Used: 59%$/,
        /^Memory\. Used: 59\sMB$/,
        /^Disk\. Read: 59\sB\/s, Write/,
      ])
        await page.getByRole("img", { name }).waitFor();
      // Without a pointer the legend shows the last values.
      const legend = page.locator(".u-legend").first();
      await legend.getByText("59%", { exact: true }).waitFor();
      const box = (await plot.boundingBox()) ?? assert.fail("no chart");
      const y = box.y + box.height / 2;
      await page.mouse.move(box.x + 1, y);
      await legend.getByText("0%", { exact: true }).waitFor();
      await page.mouse.move(box.x, box.y - 30);
      await legend.getByText("59%", { exact: true }).waitFor();
      await page.mouse.move(box.x + box.width / 4, y);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width / 2, y, { steps: 4 });
      await page.mouse.up();
      await page.getByRole("button", { name: /show all$/ }).waitFor();
      const part = new URL(page.url()).searchParams;
      const seconds = Number(JSON.parse(part.get("to") ?? "0")) - Number(JSON.parse(part.get("from") ?? "0"));
      assert.ok(seconds > 600 && seconds < 1200, `${seconds} s of the hour`);
      await page.getByRole("button", { name: /show all$/ }).click();
      await page.getByRole("button", { name: /show all$/ }).waitFor({ state: "detached" });
      await page.getByText(/^Latest actions of this time, as dashed lines: [\d:]+ Create$/).waitFor();
    });
  });

  test("charts without a value show why", async () => {
    const { client, token } = fixture.brume;
    const { ID: id } = await client.createServer({ body: { Name: "still", RAM: 128, HDD: 1 } }, { wait: 60 });
    await story(token, async (page) => {
      await page.route("**/server/*/metrics?*", (route) => {
        const values = [null, null];
        const Series = {
          Cpu: [null, 1],
          MemoryUsed: values,
          DiskRead: values,
          DiskWrite: values,
          NetIn: values,
          NetOut: values,
        };
        const Times = [Date.now() - 60_000, Date.now()].map((time) => new Date(time).toISOString());
        return route.fulfill({ json: { Step: 60, Times, Series } });
      });
      await page.goto(`/console/servers/${id}?tab=metrics`);
      await page.getByText("No data yet in this period", { exact: true }).nth(2).waitFor();
      assert.equal(await page.locator(".u-over").count(), 4);
      assert.equal(await page.getByText("No data yet in this period").count(), 3);
      // Without a value there is no axis of values, which takes space at the left.
      const lefts: number[] = await page.evaluate(
        `[...document.querySelectorAll(".u-over")].map(({ offsetLeft }) => offsetLeft)`,
      );
      const [withValue = 0, ...without] = lefts;
      assert.ok(
        without.every((left) => left < withValue - 40),
        JSON.stringify(lefts),
      );
      await client.startAction({ path: { id }, body: { Type: "PowerOff" } }, { wait: 60 });
      await page.getByText("No data in this period: the server is off").nth(2).waitFor();
    });
    await client.deleteServer({ path: { id } }, { wait: 60 });
  });
});
