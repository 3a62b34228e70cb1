/** Stories of the console about servers: groups, copies, backups and actions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkPages, describeConsole, isDesktop, widths } from "../support/consolefixture.ts";
import { waitUntil } from "../support/waituntil.ts";

describeConsole("servers in the console", {}, (fixture) => {
  const { story } = fixture;

  test("a group is created in one request, listed together, and deleted by its selection", async () => {
    const { client } = fixture.brume;
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/servers/create");
      await page.getByLabel("Name", { exact: true }).fill("worker");
      await page.getByLabel("Number of servers").fill("3");
      // Beside the form it is open.
      if (!isDesktop(page)) await page.getByText("This request").click();
      await page.getByText(/^brume group create.* --count 3/).waitFor();
      await page.getByText("The request is valid.").waitFor();
      await page.getByRole("button", { name: "Create server" }).click();
      await page.getByRole("link", { name: "worker-3" }).waitFor();
      await page.getByRole("row").nth(3).waitFor();
      assert.equal(await page.getByRole("row").count(), 4);
      await page.getByRole("row", { name: /worker-1.*Running/ }).waitFor();
      await page.getByRole("checkbox", { name: "Select all" }).check();
      const dialog = page.getByRole("dialog");
      await page.getByRole("toolbar").getByRole("button", { name: "Shut down" }).click();
      // It is open, as the one before: on a desktop no user has opened that one.
      if (isDesktop(page)) await dialog.getByText("This request").click();
      await dialog.getByText(/(brume server shutdown \d+\s*){3}/).waitFor();
      await dialog.getByRole("button", { name: "Shut down" }).click();
      await page.getByText("Done on 3 servers").waitFor();
      await page.getByRole("row", { name: /worker-1.*Off/ }).waitFor();
      // The dialog closes and the selection ends when all are done.
      await page.getByRole("checkbox", { name: "Select all" }).check();
      await page.getByRole("toolbar").getByRole("button", { name: "Labels" }).click();
      await dialog.getByLabel("Labels to set").fill("stage=<b>, team");
      await dialog.getByRole("button", { name: "Labels" }).click();
      await dialog.getByText("0 of 3 done · 3 failed").waitFor();
      await dialog
        .getByText(/Labels/)
        .nth(2)
        .waitFor();
      await dialog.getByRole("button", { name: "Close" }).first().click();
      await page.getByRole("toolbar").getByRole("button", { name: "Labels" }).click();
      await dialog.getByLabel("Labels to set").fill("stage=test, team");
      await dialog.getByRole("button", { name: "Labels" }).click();
      if (isDesktop(page)) await page.getByRole("row", { name: /worker-3.*stage=test.*team/ }).waitFor();
      await page.getByRole("button", { name: "Undo" }).waitFor();
      const labels = async () => (await client.listServers({ query: { name: "worker-3" } }))[0]?.Labels;
      assert.deepEqual(await labels(), { stage: "test", team: "" });
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("Labels restored on 3 servers", { exact: true }).waitFor();
      assert.deepEqual(await labels(), {});
      await page.getByRole("row", { name: /worker-3.*stage=test/ }).waitFor({ state: "detached" });
      await page.getByRole("checkbox", { name: "Select all" }).check();
      await page.getByRole("toolbar").getByRole("button", { name: "Power on" }).click();
      const [gone] = await client.listServers({ query: { name: "worker-3" } });
      await client.deleteServer({ path: { id: gone?.ID ?? 0 } }, { wait: 60 });
      await dialog.getByRole("button", { name: "Power on" }).click();
      await dialog.getByText("2 of 3 done · 1 failed").waitFor();
      await dialog
        .getByRole("listitem")
        .filter({ hasText: "worker-3" })
        .getByText(/does not exist in this project/)
        .waitFor();
      await dialog.getByRole("button", { name: "Close" }).first().click();
      await page.getByRole("row", { name: /worker-2.*Running/ }).waitFor();
      await page.getByRole("toolbar").getByRole("button", { name: "Delete" }).click();
      await page.getByLabel("Type delete to confirm").fill("delete");
      await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByText("2 servers deleted", { exact: true }).waitFor();
      await page.getByRole("link", { name: "worker-2" }).waitFor({ state: "detached" });
    });
    await client.waitFor(
      "listServers",
      {},
      { until: (all) => all.every(({ Name }) => !Name.startsWith("worker")), timeout: 60_000 },
    );
  });

  test("a number stays as it is typed, also while it is empty or no valid number yet", async () => {
    const path = `/console/servers/${fixture.scene.server}`;
    await story(fixture.brume.token, async (page) => {
      const typed = async (label: string, text: string): Promise<string> => {
        const field = page.getByLabel(label, { exact: true });
        await field.press("ControlOrMeta+a");
        await field.press("Backspace");
        await field.pressSequentially(text);
        return await field.inputValue();
      };
      await page.goto("/console/servers/create");
      await page.getByLabel("Name", { exact: true }).fill("numbers");
      assert.equal(await typed("Number of servers", "5"), "5");
      if (!isDesktop(page)) await page.getByText("This request").click();
      await page.getByText(/^brume group create.* --count 5/).waitFor();
      assert.equal(await typed("Number of servers", "-2"), "-2");
      await page.getByText("Must be between 1 and 100, not -2.").waitFor();
      assert.equal(await typed("Number of servers", ""), "");
      await page.getByText(/^brume server create numbers/).waitFor();
      await page.getByRole("radio", { name: "Custom" }).check();
      assert.equal(await typed("CPU", "1.5"), "1.5");
      await page.getByText("Must be an integer between 1 and 64, not 1.5.").waitFor();
      await page.goto(`${path}?tab=settings`);
      assert.equal(await typed("CPU", "-1"), "-1");
      await page.getByText("Must be between 1 and 64, not -1.").waitFor();
      assert.equal(await typed("CPU", ""), "");
      assert.equal(await page.getByRole("button", { name: "Resize" }).isEnabled(), false);
    });
  });

  test("the template of user data is valid for the image that is selected first", async () => {
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/servers/create");
      await page.getByLabel("Name", { exact: true }).fill("template");
      await page.getByRole("radio", { name: "Brume Tiny Linux", checked: true }).waitFor();
      await page.getByRole("button", { name: "Insert a template" }).click();
      // Drawn with the field, so that the verdict below is that of the template.
      const userData = () => page.getByRole("textbox", { name: "User data" }).inputValue();
      await waitUntil("the template", userData, (text) => text.startsWith("#cloud-config"));
      await page.getByText("The request is valid.").waitFor();
    });
  });

  test("an image of a deleted server has no link to it", async () => {
    const { client, token } = fixture.brume;
    const { ID } = await client.createServer({ body: { Name: "short-lived", RAM: 256, HDD: 1 } }, { wait: 60 });
    await client.createImage({ body: { Name: "kept", ServerID: ID } }, { wait: 60 });
    await client.deleteServer({ path: { id: ID } }, { wait: 60 });
    await story(
      token,
      async (page) => {
        await page.goto("/console/images");
        await page.getByRole("row", { name: /^kept/ }).getByText("Deleted").waitFor();
      },
      { width: widths[2] },
    );
  });

  test("a group is deleted as a whole, and not while one of its servers is protected", async () => {
    const { client, token } = fixture.brume;
    const group = await client.createBatch({ body: { Name: "pool", Count: 2, RAM: 256 } }, { wait: 20 });
    const [first] = group.Servers;
    const path = { id: first?.ID ?? 0 };
    await client.updateServer({ path, body: { IsProtected: true } }, { wait: 20 });
    await story(token, async (page) => {
      await page.goto(`/console/servers?group=${group.ID}`);
      await page.getByRole("link", { name: "pool-2" }).waitFor();
      await page.getByRole("button", { name: "Delete group" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Type delete to confirm").fill("delete");
      await dialog.getByRole("button", { name: "Delete", exact: true }).click();
      await page
        .getByText(/protected/i)
        .first()
        .waitFor();
      assert.equal((await client.listServers({ query: { batch: group.ID } })).length, 2);
      await client.updateServer({ path, body: { IsProtected: false } }, { wait: 20 });
      await dialog.getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByText(`Group ${group.ID} is being deleted`).waitFor();
      await page.getByRole("link", { name: "web-1" }).waitFor();
      await page.getByRole("link", { name: "pool-1" }).waitFor({ state: "detached" });
    });
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
      await page.getByRole("button", { name: "Create image" }).click();
      await page.getByLabel("Name", { exact: true }).fill("before-upgrade");
      await page.getByRole("dialog").getByRole("button", { name: "Create image" }).click();
      await page.getByText("Its progress is shown under Images.").waitFor();
      await page.getByRole("row", { name: /before-upgrade.*Ready/ }).waitFor();
      await page.getByRole("button", { name: "Restore: before-upgrade" }).getByText("Restore", { exact: true }).click();
      await page.getByText("The disk is replaced by before-upgrade.", { exact: false }).waitFor();
      await page.getByLabel("Type web-1 to confirm").fill("web-1");
      await page.getByRole("dialog").getByRole("button", { name: "Restore", exact: true }).click();
      await page.getByText("web-1: Rebuild completed").waitFor();
      assert.equal(
        await page
          .locator(".toast")
          .filter({ hasText: /rebuil/i })
          .count(),
        1,
      );
      await page.getByRole("button", { name: "More: web-1" }).click();
      await page.getByRole("menuitem", { name: "Copy" }).click();
      await page.getByRole("dialog").getByText("This request").click();
      await page.getByText("brume server copy", { exact: false }).waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Copy", exact: true }).click();
      await page.getByRole("heading", { name: "web-1-copy" }).waitFor();
      await page.getByText("Running", { exact: true }).first().waitFor();
    });
    assert.equal((await client.readServer({ path })).Image, "before-upgrade");
  });

  test("a copy stays in the network of its source unless another one is selected", async () => {
    const { client, token } = fixture.brume;
    const { Id: network } = await client.createPublicNetwork({ body: { Name: "closed" } }, { wait: 60 });
    const { ID } = await client.createServer(
      { body: { Name: "inside", RAM: 128, HDD: 1, NetworkID: network } },
      { wait: 60 },
    );
    const networkOf = async (name: string) =>
      (await client.listServers({ query: { name } }))[0]?.LinkedNetworks.map(({ NetworkName }) => NetworkName);
    await story(token, async (page) => {
      const dialog = page.getByRole("dialog");
      for (const [name, choice] of [
        ["inside-2", null],
        ["outside", "Shared network"],
      ] as const) {
        await page.goto(`/console/servers/${ID}`);
        await page.getByRole("button", { name: "More: inside" }).click();
        await page.getByRole("menuitem", { name: "Copy" }).click();
        await dialog.getByLabel("Name", { exact: true }).fill(name);
        await dialog.getByLabel("Network", { exact: true }).locator("option", { hasText: "closed (Public" }).waitFor({
          state: "attached",
        });
        if (choice !== null) await dialog.getByLabel("Network", { exact: true }).selectOption(choice);
        await dialog.getByRole("button", { name: "Copy", exact: true }).click();
        await page.getByRole("heading", { name }).waitFor();
      }
    });
    assert.deepEqual(await networkOf("inside-2"), ["closed"]);
    assert.deepEqual(await networkOf("outside"), ["Shared"]);
  });

  test("labels are edited, servers are filtered by one, and power actions are shown as commands", async () => {
    const path = { id: fixture.scene.server };
    await story(fixture.brume.token, async (page) => {
      await page.goto(`/console/servers/${path.id}?tab=settings`);
      await page.getByLabel("Labels").fill("stage=production, team=web");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Saved").waitFor();
      await page.goto("/console/servers");
      await page.getByLabel("Labels").selectOption("team=web");
      await page.getByText(/^1 of \d+$/).waitFor();
      await page.getByRole("button", { name: "More: web-1" }).click();
      await page.getByRole("menuitem", { name: "Commands" }).click();
      await page.getByText(`brume server shutdown ${path.id}`).waitFor();
      await page.getByLabel("Action", { exact: true }).selectOption("PowerReboot");
      await page.getByText(`brume server reset ${path.id}`).waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "More: web-1" }).click();
      await page.getByRole("menuitem", { name: "Reset" }).click();
      await page.getByRole("dialog").getByText("What its programs have not written to the disk is lost.").waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Reset" }).click();
      await page.getByText("web-1: Reset", { exact: true }).waitFor();
    });
    assert.deepEqual((await fixture.brume.client.readServer({ path })).Labels, { stage: "production", team: "web" });
  });

  test("the end of an action takes the place of its start, also if more events arrive with it than a page keeps", async () => {
    const { client, token } = fixture.brume;
    const { ID: id } = await client.createServer({ body: { Name: "crowded" } }, { wait: 60 });
    const { ID: domain } = await client.createDomain({ body: { Name: "crowded.example" } });
    const { Token } = await client.readAccount();
    await story(token, async (page) => {
      const { promise: made, resolve: begin } = Promise.withResolvers<void>();
      await page.route(/\/event$/, async (route) => {
        await made;
        await route.continue();
      });
      // As in a hidden tab, which draws no frame and has slow timers: all that arrives until the release is one batch.
      await page.addInitScript(`{
        const [frame, timer, held] = [requestAnimationFrame, setTimeout, []];
        globalThis.isHeld = false;
        globalThis.arrived = 0;
        requestAnimationFrame = (draw) => (isHeld ? held.push(draw) : frame(draw));
        setTimeout = (run, ...rest) => (isHeld ? held.push(run) : timer(run, ...rest));
        globalThis.release = () => { isHeld = false; for (const run of held) run(); };
        new BroadcastChannel("brume-events-${Token.ID}").onmessage = ({ data }) => { arrived += data.events?.length ?? 0; };
      }`);
      await page.goto(`/console/servers/${id}`);
      await page.getByRole("button", { name: "More: crowded" }).click();
      await page.getByRole("menuitem", { name: "Power off" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Power off" }).click();
      await page.getByText("crowded: Powering off…").waitFor();
      await client.waitFor("readServer", { path: { id } }, { until: ({ IsPowerOn }) => !IsPowerOn });
      const ZoneFile = Array.from({ length: 600 }, (_, index) => `n${index} 60 A 192.0.2.1\n`).join("");
      await client.importZone({ path: { id: domain }, body: { ZoneFile } });
      await page.evaluate("isHeld = true");
      begin();
      await waitUntil(
        "the events",
        () => page.evaluate("arrived"),
        (count) => Number(count) > 600,
      );
      await page.evaluate("release()");
      await page.getByText("crowded: Powered off").waitFor();
      assert.equal(await page.getByText("crowded: Powering off…").count(), 0);
    });
    await client.deleteServer({ path: { id } }, { wait: 60 });
    await client.deleteDomain({ path: { id: domain } });
  });

  test("name, labels and protection of a server are restored unless another client has changed them", async () => {
    const { client, token } = fixture.brume;
    const { ID: id } = await client.createServer({ body: { Name: "before" } }, { wait: 60 });
    const path = { id };
    const name = async () => (await client.readServer({ path })).Name;
    await story(token, async (page) => {
      await page.goto(`/console/servers/${id}?tab=settings`);
      await page.getByLabel("Name").fill("after");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("before: change undone", { exact: true }).waitFor();
      assert.equal(await name(), "before");
      await page.reload();
      await page.getByLabel("Name").fill("again");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("button", { name: "Undo" }).waitFor();
      await client.updateServer({ path, body: { Name: "other" } });
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("It has changed again since then", { exact: false }).waitFor();
      assert.equal(await name(), "other");
    });
    await client.deleteServer({ path }, { wait: 60 });
  });

  test("the page shows the action that runs, and whether another size restarts the server", async () => {
    const { client, token, machines } = fixture.brume;
    const { ID: id } = await client.createServer({ body: { Name: "worker", CPU: 1, HDD: 2 } }, { wait: 60 });
    await story(token, async (page) => {
      await page.goto(`/console/servers/${id}?tab=settings`);
      await page.getByLabel("Disk").fill("3");
      await page.getByText("The server is not restarted.").waitFor();
      await page.getByLabel("Memory").fill("1048576");
      await page.getByText("This change restarts the server.").waitFor();
      await page.getByLabel("Memory").fill("100");
      await page.getByLabel("Memory").and(page.locator("[aria-invalid=true]")).waitFor();
      const release = machines.hold("ensureStopped");
      const head = page.locator(".title");
      await page.getByRole("button", { name: "Shut down" }).click();
      await head.getByText("Shutting down", { exact: true }).waitFor();
      await head.getByText("Running", { exact: true }).waitFor();
      const messages = page.locator(".toast strong");
      await messages.getByText("worker: Shutting down…", { exact: true }).waitFor();
      assert.equal(await page.getByRole("button", { name: "Shut down" }).isDisabled(), true);
      release();
      await messages.getByText("worker: Shut down", { exact: true }).waitFor();
      assert.deepEqual(await messages.allTextContents(), ["worker: Shut down"]);
      await page.getByRole("button", { name: "Power on" }).waitFor();
      await head.getByText("Shutting down", { exact: true }).waitFor({ state: "detached" });
      await page.getByRole("link", { name: "Summary" }).click();
      await page.getByText("The server is off. Power it on first.", { exact: true }).waitFor();
    });
    await client.deleteServer({ path: { id } }, { wait: 60 });
  });

  test("a server without a network shows that it has none, and is linked to one", async () => {
    const { client } = fixture.brume;
    const { ID } = await client.createServer({ body: { Name: "alone", RAM: 128, HDD: 1 } }, { wait: 60 });
    const NetworkLinkID = (await client.readServer({ path: { id: ID } })).LinkedNetworks[0]?.LinkID ?? 0;
    await client.startAction({ path: { id: ID }, body: { Type: "RemoveNetwork", NetworkLinkID } }, { wait: 60 });
    await story(fixture.brume.token, async (page) => {
      await page.goto(`/console/servers/${ID}`);
      await page.getByText("The server is in no network.").waitFor();
      const hint = page.getByText("The server has just started.", { exact: false });
      await hint.getByRole("link", { name: "Boot log" }).click();
      await page.getByText("Follows the output").waitFor();
      await page.goBack();
      await page.getByText("The server is in no network.").waitFor();
      assert.equal(await page.getByText(/^ssh /).count(), 0);
      assert.equal(await page.getByText("Address", { exact: true }).count(), 0);
      await client.createPublicNetwork({ body: { Name: "late" } }, { wait: 20 });
      await page.getByRole("button", { name: "Link to network" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Network").selectOption("late");
      await dialog.getByRole("button", { name: "Link to network" }).click();
      await page.getByRole("link", { name: "late" }).waitFor();
      await page.getByText(/^ssh /).waitFor();
    });
    await client.deleteServer({ path: { id: ID } });
  });

  test("axe finds nothing on the parts of a server", async () => {
    const server = `/console/servers/${fixture.scene.server}`;
    await checkPages(
      fixture,
      [
        [`${server}?tab=backups`, "Daily backup"],
        [`${server}?tab=screen`, "Click into the screen"],
        [`${server}?tab=console`, "Press Enter if there is no prompt"],
        [`${server}?tab=log`, "Follows the output"],
      ],
      (path) => path.endsWith("backups"),
    );
  });
});
