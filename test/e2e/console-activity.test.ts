/** Stories of the console about events: how they are found, and what their details show. */
import { test } from "node:test";
import { describeConsole } from "../support/consolefixture.ts";

describeConsole("the events of the console", {}, (fixture) => {
  const { story } = fixture;

  test("events are found by their token, and the details of one link to its object", async () => {
    const { brume, scene } = fixture;
    const { Token, ID } = await brume.client.createToken({ body: { Name: "robot", Scopes: ["dns:write"] } });
    await brume.clientOf(Token).createRecordA({
      body: { DomainId: scene.domain, Name: "robot-made", IP: "192.0.2.7" },
    });
    await story(brume.token, async (page) => {
      await page.goto("/console/activity?q=ROBOT");
      const row = page.getByRole("row").filter({ hasText: "Record created" });
      await row.getByText("robot-made", { exact: false }).waitFor();
      await row.getByRole("button", { name: "Details: record.created" }).click();
      await page
        .getByRole("dialog")
        .getByText(/:\d\d:\d\d/)
        .first()
        .waitFor();
      await page
        .getByRole("dialog")
        .getByRole("link", { name: /^Record \d+ · robot-made\./ })
        .click();
      await page.getByRole("heading", { name: "example.com" }).waitFor();
    });
    await brume.client.deleteToken({ path: { id: ID } });
  });
});
