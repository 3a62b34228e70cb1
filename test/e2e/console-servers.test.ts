/** Stories of the console about servers: groups, copies, backups and charts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkPages, describeConsole } from "../support/consolefixture.ts";

describeConsole("servers in the console", {}, (fixture) => {
  const { story } = fixture;

  test("a group is created in one request, listed together, and deleted by its selection", async () => {
    const { client } = fixture.brume;
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/servers/create");
      await page.getByLabel("Name", { exact: true }).fill("worker");
      await page.getByLabel("Number of servers").fill("3");
      await page.getByText(/^brume group create.* --count 3/).waitFor();
      await page.getByText("The request is valid.").waitFor();
      await page.getByRole("button", { name: "Create server" }).click();
      await page.getByRole("link", { name: "worker-3" }).waitFor();
      assert.equal(await page.getByRole("row").count(), 4);
      await page.getByRole("row", { name: /worker-1.*Running/ }).waitFor();
      await page.getByRole("checkbox", { name: "Select all" }).check();
      await page.getByRole("toolbar").getByRole("button", { name: "Delete" }).click();
      await page.getByLabel("Type delete to confirm").fill("delete");
      await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByRole("link", { name: "worker-3" }).waitFor({ state: "detached" });
    });
    await client.waitFor(
      "listServers",
      {},
      { until: (all) => all.every(({ Name }) => !Name.startsWith("worker")), timeout: 60_000 },
    );
  });

  test("a server gets a daily backup and an image, is copied, and restored from the image", async () => {
    const { client } = fixture.brume;
    const path = { id: fixture.scene.server };
    await story(fixture.brume.token, async (page) => {
      await page.goto(`/console/servers/${path.id}?tab=backups`);
      await page.getByLabel("Make a backup every day").check();
      await page.getByLabel("Keep each for").selectOption("14");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Saved").waitFor();
      const { isBackupActive, BackupPeriod } = await client.readServer({ path });
      assert.deepEqual([isBackupActive, BackupPeriod], [true, 14]);
      await page.getByRole("button", { name: "Make an image" }).click();
      await page.getByLabel("Name", { exact: true }).fill("before-upgrade");
      await page.getByRole("dialog").getByRole("button", { name: "Make an image" }).click();
      await page.getByRole("row", { name: /before-upgrade.*Ready/ }).waitFor();
      await page.getByRole("button", { name: "Restore: before-upgrade" }).click();
      await page.getByText("The disk is replaced by before-upgrade.", { exact: false }).waitFor();
      await page.getByLabel("Type web-1 to confirm").fill("web-1");
      await page.getByRole("dialog").getByRole("button", { name: "Restore", exact: true }).click();
      await page.getByText("web-1 is being rebuilt").waitFor();
      await page.getByText("Rebuild of web-1 completed").waitFor();
      await page.getByRole("button", { name: "More: web-1" }).click();
      await page.getByRole("menuitem", { name: "Copy" }).click();
      await page.getByText("brume server copy", { exact: false }).waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Copy", exact: true }).click();
      await page.getByRole("heading", { name: "web-1-copy" }).waitFor();
      await page.getByText("Running", { exact: true }).first().waitFor();
    });
    assert.equal((await client.readServer({ path })).Image, "before-upgrade");
  });

  test("a drag over a chart shows that part of all charts, and the button shows all again", async () => {
    await story(fixture.brume.token, async (page) => {
      const now = Date.now();
      await page.route("**/server/*/metrics?*", (route) => {
        const query = new URL(route.request().url()).searchParams;
        const [from, to] = [Date.parse(query.get("from") ?? ""), Date.parse(query.get("to") ?? "") || now];
        const Times = Array.from({ length: 60 }, (_, index) =>
          new Date(from + ((to - from) * index) / 60).toISOString(),
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
      const box = (await plot.boundingBox()) ?? assert.fail("no chart");
      const y = box.y + box.height / 2;
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
    });
  });

  test("axe finds nothing on the parts of a server", async () => {
    const server = `/console/servers/${fixture.scene.server}`;
    await checkPages(
      fixture,
      [
        [`${server}?tab=backups`, "Daily backup"],
        [`${server}?tab=screen`, "Click into the screen"],
        [`${server}?tab=console`, "Press Enter after connecting"],
        [`${server}?tab=log`, "Follows the output"],
      ],
      (path) => path.endsWith("backups"),
    );
  });
});
