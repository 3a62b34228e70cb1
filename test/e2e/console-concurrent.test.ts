/** Stories of the console with two clients: what a form does not change stays as another client has set it, after the form was opened. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Locator } from "playwright-core";
import { describeConsole } from "../support/consolefixture.ts";
import { waitUntil } from "../support/waituntil.ts";

/** Waits until a field has a value, for example one that another client has set. */
const shows = (field: Locator, value: string) =>
  waitUntil(
    `the value ${value}`,
    () => field.inputValue(),
    (text) => text === value,
  );

describeConsole("two clients", {}, (fixture) => {
  const { story } = fixture;

  test("settings of a server contain only what was changed in the form", async () => {
    const { client, token } = fixture.brume;
    const { ID: id } = await client.createServer({ body: { Name: "shared", RAM: 256 } }, { wait: 60 });
    const path = { id };
    await client.startAction({ path, body: { Type: "PowerOff" } }, { wait: 60 });
    await story(token, async (page) => {
      await page.goto(`/console/servers/${id}`);
      await page.getByRole("button", { name: "More: shared" }).click();
      await page.getByRole("menuitem", { name: "Resize" }).click();
      await page.getByLabel("CPU").and(page.locator(":focus")).waitFor();
      await page.getByLabel("CPU").fill("2");
      await client.updateServer({ path, body: { RAM: 512 } }, { wait: 60 });
      await shows(page.getByLabel("Memory"), "512");
      await page.getByRole("button", { name: "Resize" }).click();
      await client.waitFor("readServer", { path }, { until: ({ CPU }) => CPU === 2 });
      await page.getByText("shared: Resize completed").last().waitFor();
      assert.equal(await page.getByText("Saved").count(), 0);
      assert.equal((await client.readServer({ path })).RAM, 512);
      await page.reload();
      await page.getByLabel("Name", { exact: true }).fill("renamed");
      await client.updateServer({ path, body: { Labels: { stage: "test" }, IsProtected: true } });
      await shows(page.getByLabel("Labels"), "stage=test");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Saved").waitFor();
      const { Name, Labels, IsProtected } = await client.readServer({ path });
      assert.deepEqual([Name, Labels, IsProtected], ["renamed", { stage: "test" }, true]);
      // What was saved is no change any more.
      await client.updateServer({ path, body: { Name: "again" } });
      await shows(page.getByLabel("Name", { exact: true }), "again");
      await page.goto(`/console/servers/${id}?tab=backups`);
      await page.getByLabel("Make a backup every day").check();
      await client.updateServer({ path, body: { BackupPeriod: 21 } });
      await shows(page.getByLabel("Keep each for"), "21");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Saved").waitFor();
      const { isBackupActive, BackupPeriod } = await client.readServer({ path });
      assert.deepEqual([isBackupActive, BackupPeriod], [true, 21]);
      await page.getByRole("link", { name: "Actions", exact: true }).click();
      await page.getByText("Change settings").first().waitFor();
      assert.equal(await page.getByText("Change settings completed", { exact: false }).count(), 0);
    });
  });

  test("a saved field is no change, also if the page learns of it together with a later change", async () => {
    const { client, token } = fixture.brume;
    const { ID: id } = await client.createServer({ body: { Name: "first" } }, { wait: 60 });
    const path = { id };
    await story(token, async (page) => {
      // The stream begins when both changes are made.
      const { promise: made, resolve: begin } = Promise.withResolvers<void>();
      await page.route(/\/event$/, async (route) => {
        await made;
        await route.continue();
      });
      await page.goto(`/console/servers/${id}?tab=settings`);
      const name = page.getByLabel("Name", { exact: true });
      await name.fill("second");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Saved").waitFor();
      assert.equal(await name.inputValue(), "second");
      assert.equal(await page.getByRole("button", { name: "Save" }).isDisabled(), true);
      await client.updateServer({ path, body: { Name: "third" } });
      begin();
      await shows(name, "third");
    });
    await client.deleteServer({ path }, { wait: 60 });
  });

  test("labels of several servers are added to those that they have when the request is sent", async () => {
    const { client, token } = fixture.brume;
    const path = { id: fixture.scene.server };
    const labels = async () => (await client.readServer({ path })).Labels;
    const before = await labels();
    await story(token, async (page) => {
      await page.goto("/console/servers?q=web-1");
      await page.getByRole("checkbox", { name: "Select all" }).check();
      await page.getByRole("toolbar").getByRole("button", { name: "Labels" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Labels to set").fill("team=web");
      await client.updateServer({ path, body: { Labels: { ...before, other: "kept" } } });
      await dialog.getByRole("button", { name: "Labels" }).click();
      await page.getByRole("button", { name: "Undo" }).waitFor();
      assert.deepEqual(await labels(), { ...before, other: "kept", team: "web" });
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("Labels restored on 1 server", { exact: true }).waitFor();
      assert.deepEqual(await labels(), { ...before, other: "kept" });
      await page.getByRole("checkbox", { name: "Select all" }).check();
      await page.getByRole("toolbar").getByRole("button", { name: "Labels" }).click();
      await dialog.getByLabel("Labels to set").fill("team=web");
      await dialog.getByRole("button", { name: "Labels" }).click();
      await page.getByRole("button", { name: "Undo" }).waitFor();
      await client.updateServer({ path, body: { Labels: before } });
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("It has changed again since then", { exact: false }).waitFor();
      assert.deepEqual(await labels(), before);
    });
  });

  test("settings of a network and a domain follow another client, except for what was changed in the form", async () => {
    const { client, token } = fixture.brume;
    const { Id: id } = await client.createPublicNetwork({ body: { Name: "shared" } }, { wait: 60 });
    const { ID: domain } = await client.createDomain({ body: { Name: "shared.example" } });
    await story(token, async (page) => {
      await page.goto(`/console/networks/${id}?tab=settings`);
      await page.getByLabel("Labels").fill("stage=test");
      await client.updatePublicNetwork({ path: { id }, body: { Name: "other", Bandwidth: 77 } }, { wait: 60 });
      await shows(page.getByLabel("Bandwidth"), "77");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("other is saved").waitFor();
      const { Name, Bandwidth, Labels } = await client.readPublicNetwork({ path: { id } });
      assert.deepEqual([Name, Bandwidth, Labels], ["other", 77, { stage: "test" }]);
      await page.goto(`/console/dns/${domain}?tab=settings`);
      await page.getByLabel("Labels").waitFor();
      await client.updateDomain({ path: { id: domain }, body: { Labels: { team: "web" } } });
      await shows(page.getByLabel("Labels"), "team=web");
      assert.equal(await page.getByRole("button", { name: "Save" }).isDisabled(), true);
    });
  });

  test("an edited record keeps what another client has changed in it", async () => {
    const { client, token } = fixture.brume;
    const zone = "@ 3600 MX 10 mail.example.net.\n_sip._tcp 3600 SRV 10 5 5060 mail.example.net.\n";
    const { ID: id } = await client.createDomain({ body: { Name: "records.example", ZoneFile: zone } });
    const path = { id };
    const records = async () =>
      (await client.readDomain({ path })).LinkedRecords.filter(({ TypeRecord }) => TypeRecord !== "NS").toSorted(
        (a, b) => (a.TypeRecord < b.TypeRecord ? -1 : 1),
      );
    await story(token, async (page) => {
      await page.goto(`/console/dns/${id}`);
      await page.getByLabel("Value: @ MX").fill("20 mail.example.net.");
      await page.getByLabel("Value: _sip._tcp SRV").fill("10 5 5061 mail.example.net.");
      const Changes = (await records()).map(({ ID }) => ({ Op: "Update" as const, ID, TTL: 300 }));
      await client.changeRecords({ path, body: { Changes } });
      await shows(page.getByLabel("TTL: @ MX"), "300");
      await page.getByRole("button", { name: "Review" }).click();
      await page.getByText("+ @ 300 IN MX 20 mail.example.net.").waitFor();
      await page.getByRole("button", { name: "Apply" }).click();
      await page.getByText(/applied as version \d+/).waitFor();
    });
    assert.deepEqual(
      (await records()).map(({ CanonicalDescription }) => CanonicalDescription),
      ["@ 300 MX 20 mail.example.net.", "_sip._tcp.records.example. 300 IN SRV 10 5 5061 mail.example.net."],
    );
  });

  test("an offer to undo ends with its page, with its object and with the session", async () => {
    const { client, token } = fixture.brume;
    const { ID: id } = await client.createServer({ body: { Name: "passing" } }, { wait: 60 });
    await story(token, async (page) => {
      const save = async (name: string) => {
        await page.getByLabel("Name").fill(name);
        await page.getByRole("button", { name: "Save" }).click();
        await page.getByRole("button", { name: "Undo" }).waitFor();
      };
      const ended = () => page.getByRole("button", { name: "Undo" }).waitFor({ state: "detached", timeout: 5000 });
      await page.goto(`/console/servers/${id}?tab=settings`);
      await save("left");
      await page.getByRole("link", { name: "Summary", exact: true }).click();
      await page.getByRole("button", { name: "Undo" }).waitFor();
      await page.locator("main").getByRole("link", { name: "Servers", exact: true }).click();
      await ended();
      await page.goto(`/console/servers/${id}?tab=settings`);
      await save("signed out");
      await page.getByRole("button", { name: "Account" }).click();
      await page.getByRole("menuitem", { name: "Sign out" }).click();
      await page.getByLabel("Token").waitFor();
      await ended();
      assert.equal(await page.locator(".toast").count(), 0);
      await page.getByLabel("Token").fill(token);
      await page.keyboard.press("Enter");
      await save("gone");
      await client.deleteServer({ path: { id } }, { wait: 60 });
      await ended();
    });
  });

  test("the browser does not warn of edits whose domain or network another client has deleted", async () => {
    const { client, token } = fixture.brume;
    const { ID: domain } = await client.createDomain({ body: { Name: "edited.example", Ip: "192.0.2.1" } });
    const { Id: network } = await client.createPublicNetwork({ body: { Name: "edited" } }, { wait: 60 });
    await story(token, async (page) => {
      const holds = (isHeld: boolean) =>
        waitUntil(
          isHeld ? "a warning" : "no warning",
          () => page.evaluate(`!dispatchEvent(new Event("beforeunload", { cancelable: true }))`),
          (is) => is === isHeld,
        );
      await page.goto(`/console/dns/${domain}`);
      await page.getByLabel("Value: @ A", { exact: true }).fill("192.0.2.2");
      await holds(true);
      await client.deleteDomain({ path: { id: domain } });
      await page.getByText("This domain does not exist", { exact: false }).waitFor();
      await holds(false);
      await page.goto(`/console/networks/${network}?tab=firewall`);
      await page.getByLabel("Firewall is on").click();
      await holds(true);
      await page.getByRole("link", { name: "Overview" }).first().click();
      await holds(true);
      await client.deletePublicNetwork({ path: { id: network } }, { wait: 60 });
      await holds(false);
    });
  });

  test("a dialog is not checked against what it has just created, and cannot be sent again before the response", async () => {
    const { client, token } = fixture.brume;
    const { Id: id } = await client.createPublicNetwork({ body: { Name: "tunnelled" } }, { wait: 60 });
    await story(token, async (page) => {
      const { promise: seen, resolve: respond } = Promise.withResolvers<void>();
      let checks = 0;
      await page.route(`**/publicnetwork/${id}/vpn**`, async (route) => {
        if (route.request().url().includes("dryRun")) checks += 1;
        else if (route.request().method() === "PUT") {
          const response = await route.fetch();
          await seen;
          return route.fulfill({ response });
        }
        return route.continue();
      });
      await page.clock.install();
      await page.goto(`/console/networks/${id}?tab=vpn`);
      await page.getByRole("button", { name: "Create tunnel" }).last().click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Name", { exact: true }).fill("laptop");
      const checked = page.waitForResponse(/dryRun/);
      await page.clock.runFor(1000);
      await checked;
      const create = dialog.getByRole("button", { name: "Create tunnel" });
      await create.click();
      await page.locator("section.panel").filter({ hasText: "No key yet" }).waitFor();
      const before = checks;
      await page.clock.runFor(1000);
      assert.deepEqual([await create.isDisabled(), checks], [true, before]);
      respond();
      await dialog.getByText("<private key>", { exact: false }).waitFor();
    });
    await client.deletePublicNetwork({ path: { id } });
  });

  test("an action that another client started is shown with the name of its server on a page that has not read it", async () => {
    const { client, token } = fixture.brume;
    await story(token, async (page) => {
      await page.goto("/console/dns");
      await page.getByRole("link", { name: "example.com" }).first().waitFor();
      await client.startAction({ path: { id: fixture.scene.server }, body: { Type: "PowerReboot" } }, { wait: 60 });
      await page.getByText("web-1: Reset", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Actions", exact: true }).click();
      await page.getByRole("dialog").getByRole("link", { name: "web-1" }).waitFor();
    });
  });
});
