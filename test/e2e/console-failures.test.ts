/** Stories of the console about what fails: it is shown where one looks for it, and nothing of another client is lost. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page, Route } from "playwright-core";
import { describeConsole, followLink } from "../support/consolefixture.ts";
import { waitUntil } from "../support/waituntil.ts";

const refuse = (route: Route): Promise<void> => route.abort("connectionrefused");
const reject = (route: Route): Promise<void> =>
  route.fulfill({ status: 403, contentType: "text/plain", body: "rejected" });

describeConsole("failures in the console", {}, (fixture) => {
  const { story } = fixture;

  test("an error of a field that the form does not show is shown: of a deleted key, of folded labels, of a request that fails", async () => {
    const { client, token } = fixture.brume;
    const blob = Buffer.concat([Buffer.from("\0\0\0\x0bssh-ed25519\0\0\0 "), Buffer.alloc(32, 9)]).toString("base64");
    const key = await client.createSshKey({ body: { Title: "spare", PublicKey: `ssh-ed25519 ${blob}` } });
    await story(token, async (page) => {
      await client.createImage({ body: { Name: "half-sent", Size: 512, Sha256: "0".repeat(64), Family: "Linux" } });
      await page.goto("/console/servers/create");
      assert.equal(await page.getByRole("radio", { name: "half-sent" }).isDisabled(), true);
      await page.getByLabel("Name", { exact: true }).fill("unplaced");
      await page.getByRole("checkbox", { name: "spare" }).check();
      await page.getByText("The request is valid.").waitFor();
      await client.deleteSshKey({ path: { id: key.ID } });
      await page.getByRole("checkbox", { name: "spare" }).waitFor({ state: "detached" });
      await page.getByLabel("Name", { exact: true }).fill("unplaced-2");
      await page.getByRole("alert").getByText(`SSH key ${key.ID} does not exist`, { exact: false }).waitFor();
      await page.getByRole("checkbox", { name: String(key.ID), exact: true }).click();
      await page.getByText("The request is valid.").waitFor();
      await page.getByText("Advanced").click();
      await page.getByLabel("Complete when").waitFor();
      assert.equal(await page.getByLabel("Location").count(), 0);
      await page.getByLabel("Labels").fill("-x=1");
      await page.locator("[aria-invalid=true]").and(page.getByLabel("Labels")).waitFor();
      assert.equal(await page.getByRole("alert").count(), 0);
      // The field is far from the button.
      await page.getByRole("button", { name: "Create server" }).click();
      await page.getByLabel("Labels").and(page.locator(":focus")).waitFor();
      // A folded field shows nothing.
      await page.getByText("Advanced").click();
      await page.getByRole("button", { name: "Create server" }).click();
      await page.getByRole("alert").getByText("Labels", { exact: false }).waitFor();
      const { domain } = fixture.scene;
      await page.route(`**/dns/${domain}`, (route) =>
        route.request().method() === "PUT" ? refuse(route) : route.continue(),
      );
      await followLink(page, `/console/dns/${domain}?tab=settings`);
      await page.getByLabel("Labels").fill("stage=test");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("alert").waitFor();
    });
  });

  test("an error at a field is shown only there, the first of several; and a new name reports no resize", async () => {
    const { client, token } = fixture.brume;
    const { ID } = await client.createServer({ body: { Name: "renamed" } }, { wait: 60 });
    await story(token, async (page) => {
      await page.goto(`/console/servers/${ID}?tab=settings`);
      await page.getByLabel("Labels").fill("a b=c");
      await page.getByRole("button", { name: "Save" }).click();
      await page.locator(".field-error").getByText("Must have keys", { exact: false }).waitFor();
      assert.equal(await page.locator(".toast, .error-box").count(), 0);
      await page.getByLabel("Labels").fill("");
      await page.getByLabel("Name", { exact: true }).fill("renamed-2");
      await page.getByRole("button", { name: "Save" }).click();
      await page.locator(".toast").getByText("Saved").waitFor();
      await client.startAction({ path: { id: ID }, body: { Type: "PowerReboot" } }, { wait: 60 });
      await page.getByText("renamed-2: Reset", { exact: true }).waitFor();
      assert.equal(await page.locator(".toast").getByText("Resize", { exact: false }).count(), 0);
      await followLink(page, "/console/access");
      await page.getByRole("button", { name: "Create token" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Name", { exact: true }).fill("elsewhere");
      await dialog.getByLabel("Addresses").fill("first\nsecond");
      await dialog.locator(".field-error").getByText('not "first"', { exact: false }).waitFor();
      assert.equal(await dialog.locator(".error-box.bad, [role=alert]").count(), 0);
    });
  });

  test("the error of a rule is one of the editor, not of the packet that is tested", async () => {
    const { client, token } = fixture.brume;
    const { Id: id } = await client.createPublicNetwork({ body: { Name: "wrong-rule" } }, { wait: 60 });
    await story(token, async (page) => {
      await page.goto(`/console/networks/${id}?tab=firewall`);
      await page.getByLabel("From address").fill("198.51.100.7");
      await page.getByLabel("To address").fill("10.64.0.2");
      await page.getByLabel("To port").fill("0");
      await page.getByText("Must be between 1 and 65535, not 0.").waitFor();
      await page.getByLabel("To port").fill("");
      await page.getByText("Fill in the port to see which rule decides.").waitFor();
      assert.equal(await page.getByText("Must be between 1 and 65535, not 0.").count(), 0);
      await page.getByLabel("To port").fill("443");
      await page.getByRole("button", { name: "Add rule" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Source port").fill("wrong");
      await dialog.getByRole("button", { name: "Add rule" }).click();
      await page.getByText("Correct the rules to see which of them decides.").waitFor();
      await page.getByRole("alert").getByText("Rule 1, Source port", { exact: false }).waitFor();
      // A table has a column of source ports if a rule has one; a list has sentences.
      if ((page.viewportSize()?.width ?? 0) > 1265)
        assert.equal(await page.getByLabel("Source port 1", { exact: true }).getAttribute("aria-invalid"), "true");
      else await page.locator(".sentence").getByText("port wrong", { exact: false }).waitFor();
      assert.equal(await page.getByRole("alert").count(), 1);
    });
    await client.deletePublicNetwork({ path: { id } });
  });

  test("a sign-in with another token in one tab is that of all tabs: they show its project and follow it", async () => {
    const { brume } = fixture;
    const { ID } = await brume.client.createProject({ body: { Name: "neighbours" } });
    const other = await brume.client.createToken({
      body: { Name: "neighbour", Scopes: ["dns:write", "account:admin"], ProjectID: ID },
    });
    const neighbour = brume.clientOf(other.Token);
    await neighbour.createDomain({ body: { Name: "theirs.example" } });
    await story(null, async (page) => {
      const signIn = async (tab: Page, token: string, name: string): Promise<void> => {
        await tab.goto("/console/dns");
        await tab.getByLabel("Token").fill(token);
        await tab.keyboard.press("Enter");
        await tab.getByRole("link", { name, exact: true }).waitFor();
      };
      await signIn(page, brume.token, "example.com");
      // Otherwise the second tab would be signed in.
      await page.context().clearCookies();
      const second = await page.context().newPage();
      await signIn(second, other.Token, "theirs.example");
      await page.getByRole("link", { name: "theirs.example" }).waitFor();
      assert.equal(await page.getByRole("link", { name: "example.com", exact: true }).count(), 0);
      await neighbour.createDomain({ body: { Name: "later.example" } });
      for (const tab of [page, second]) await tab.getByRole("link", { name: "later.example" }).waitFor();
    });
  });

  test("a typed checksum is not that of a file, and a file that cannot be read is an error", async () => {
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/images?create=1");
      const dialog = page.getByRole("dialog");
      const checksum = dialog.getByLabel("SHA-256");
      await checksum.fill("typed");
      const source = (name: string) => dialog.getByRole("button", { name, exact: true }).click();
      const file = { name: "disk.img", mimeType: "application/octet-stream", buffer: Buffer.from("disk") };
      await source("This computer");
      assert.equal(await checksum.inputValue(), "");
      await dialog.locator("input[type=file]").setInputFiles(file);
      await waitUntil(
        "the checksum of the file",
        () => checksum.inputValue(),
        (value) => /^[0-9a-f]{64}$/.test(value),
      );
      await source("An address");
      assert.equal(await checksum.inputValue(), "typed");
      await page.evaluate("Blob.prototype.arrayBuffer = () => Promise.reject(new Error('gone'))");
      await source("This computer");
      await dialog.locator("input[type=file]").setInputFiles(file);
      await dialog.getByText("The file cannot be read.", { exact: false }).waitFor();
    });
  });

  test("a token is copied from its dialog without TLS, and a copy that fails is reported", async () => {
    await story(fixture.brume.token, async (page) => {
      await page.addInitScript('Object.defineProperty(Navigator.prototype, "clipboard", { value: undefined })');
      await page.goto("/console/access?tab=tokens");
      await page.getByRole("button", { name: "Create token" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Name", { exact: true }).fill("copied");
      await dialog.getByRole("button", { name: "Create token" }).click();
      const secret = dialog.locator("pre").filter({ hasText: /^[0-9a-f]{64}$/ });
      const value = await secret.textContent();
      const copy = dialog.getByRole("button", { name: /^Copy/ });
      await copy.click();
      await dialog.getByRole("button", { name: /^Copied/ }).waitFor();
      await copy.waitFor();
      await page.evaluate("document.execCommand = () => false");
      await copy.click();
      await dialog.getByRole("button", { name: /^Not copied/ }).waitFor();
      await dialog.getByRole("button", { name: "Close" }).last().click();
      await page.getByRole("button", { name: "Create token" }).click();
      await dialog.getByLabel("Name", { exact: true }).press("Control+v");
      assert.equal(await dialog.getByLabel("Name", { exact: true }).inputValue(), value);
    });
  });

  test("a console is connected to the server that the page shows, and to none after one has left", async () => {
    const [first, second] = await fixture.brume.client.listServers({ query: { limit: 2 } });
    await story(fixture.brume.token, async (page) => {
      let sockets = 0;
      page.on("websocket", () => {
        sockets++;
      });
      const show = (server = first) =>
        page.evaluate(`history.pushState({}, "", "/console/servers/${server?.ID}?tab=console")`);
      await page.goto(`/console/servers/${second?.ID}?tab=console`);
      await page.getByRole("heading", { name: second?.Name ?? "" }).waitFor();
      await show(first);
      await page.getByRole("heading", { name: first?.Name ?? "" }).waitFor();
      await page.getByRole("button", { name: "Connect" }).click();
      await page.getByText("Connected", { exact: true }).waitFor();
      await show(second);
      await page.getByRole("heading", { name: second?.Name ?? "" }).waitFor();
      await page.getByText("Connected", { exact: true }).waitFor({ state: "detached" });
      await show(first);
      const waiting = Promise.withResolvers<Route>();
      await page.route("**/server/*/console", (route) => waiting.resolve(route));
      await page.getByRole("button", { name: "Connect" }).click();
      const ticket = await waiting.promise;
      await followLink(page, "/console/servers");
      const answered = page.waitForEvent("requestfinished", (request) => request.url().endsWith("/console"));
      await ticket.continue();
      await answered;
      await page.evaluate("fetch('/livez').then((response) => response.text())");
      assert.equal(sockets, 1);
    });
  });

  test("the tokens of another project are listed as they are after one is created and deleted", async () => {
    const { client, token } = fixture.brume;
    const { ID } = await client.createProject({ body: { Name: "suppliers" } });
    await client.createToken({ body: { Name: "old", Scopes: ["dns:read"], ProjectID: ID } });
    await story(token, async (page) => {
      await page.goto("/console/access?tab=tokens");
      await page.getByLabel("Project").selectOption("suppliers");
      await page.getByRole("button", { name: "Delete token old" }).click();
      await page.getByLabel("Type old to confirm").fill("old");
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByRole("row", { name: /^old/ }).waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Create token" }).click();
      await dialog.getByLabel("Name", { exact: true }).fill("new");
      await dialog.getByLabel("Project").selectOption("suppliers");
      await dialog.getByRole("button", { name: "Create token" }).click();
      await dialog.getByRole("button", { name: "Close" }).last().click();
      await page.getByRole("row", { name: /^new/ }).waitFor();
    });
  });

  test("servers are found by the name of their image, also if the images are read after them", async () => {
    await story(fixture.brume.token, async (page) => {
      const { promise: mayRead, resolve: read } = Promise.withResolvers<void>();
      await page.route("**/image", async (route) => {
        await mayRead;
        await route.continue();
      });
      await page.goto("/console/servers?q=Tiny+Linux");
      await page.getByText("No server matches the filter.").waitFor();
      read();
      await page.getByRole("link", { name: "web-1", exact: true }).waitFor();
    });
  });

  test("what cannot be read is an error with a button, and no good news", async () => {
    const { client, token } = fixture.brume;
    const project = await client.createProject({ body: { Name: "unread" } });
    await story(token, async (page) => {
      const reads: readonly (readonly [address: string, read: string])[] = [
        ["/console/activity", "**/event?newest=true&limit=200"],
        [`/console/servers/${fixture.scene.server}?tab=actions`, "**/server/*/action?*"],
        ["/console/servers/create", "**/sshkey"],
        ["/console/", "**/server?limit=1000"],
      ];
      for (const [address, read] of reads) {
        await page.route(read, reject);
        await page.goto(address);
        const retry = page.getByRole("alert").getByRole("button", { name: "Try again" });
        await retry.waitFor();
        assert.equal(await page.getByText("Everything works").count(), 0);
        await page.unroute(read);
        // The page may read it again by itself, when its connection opens.
        await page.evaluate("document.querySelector('[role=alert] button')?.click()");
        await retry.waitFor({ state: "detached" });
      }
      await page.route(`**/project/${project.ID}`, reject);
      await followLink(page, "/console/access?tab=projects");
      await page.getByRole("button", { name: "Edit project: unread" }).click();
      await page.getByRole("dialog").getByRole("alert").waitFor();
    });
  });

  test("a server that was not created shows why, and what one can do about it", async () => {
    const { client, machines, token } = fixture.brume;
    const release = machines.hold("ensureDisk");
    const { ID } = await client.createServer({ body: { Name: "not-created" } });
    const [creation] = await client.listActions({ path: { id: ID } });
    assert(creation);
    await client.cancelAction({ path: { id: ID, actionID: creation.ID } });
    release();
    await client.waitFor("readServer", { path: { id: ID } }, { until: ({ State }) => State === "Failed" });
    await story(token, async (page) => {
      await page.goto(`/console/servers/${ID}`);
      await page.getByText("It was canceled by token", { exact: false }).first().waitFor();
      await page.getByText("Delete it, then create it again.", { exact: false }).waitFor();
    });
  });

  test("a check or an import that could not be sent is possible again without typing", async () => {
    const { client, token } = fixture.brume;
    const { ID } = await client.createDomain({ body: { Name: "again.example", Ip: "192.0.2.1" } });
    await story(token, async (page) => {
      let isDown = true;
      await page.route(`**/dns/${ID}/{changeset,zonefile}*`, (route) => (isDown ? refuse(route) : route.continue()));
      await page.goto(`/console/dns/${ID}`);
      await page.getByLabel("Value: @ A").fill("192.0.2.2");
      await page.getByRole("toolbar").getByRole("status").getByText("The service did not respond.").waitFor();
      assert.equal(await page.getByRole("button", { name: "Review" }).isDisabled(), true);
      isDown = false;
      await page.getByRole("button", { name: "Review", disabled: false }).waitFor();
      await page.getByRole("button", { name: "Discard" }).click();
      await page.getByRole("button", { name: "Import zone file" }).click();
      await page.getByLabel("Zone file", { exact: true }).fill("www 60 IN A 192.0.2.7");
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("button", { name: "Import", disabled: false }).waitFor();
      isDown = true;
      await dialog.getByRole("button", { name: "Import" }).click();
      await dialog.getByRole("alert").waitFor();
      isDown = false;
      await dialog.getByRole("button", { name: "Import" }).click();
      await page.getByLabel("Value: www A").waitFor();
    });
  });

  test("undo of a zone keeps what another client had changed before, also if the page did not know it", async () => {
    const { client, token } = fixture.brume;
    const { ID } = await client.createDomain({ body: { Name: "undone.example", Ip: "192.0.2.1" } });
    const addresses = async () =>
      (await client.readDomain({ path: { id: ID } })).LinkedRecords.flatMap(({ IP }) => (IP ? [IP] : [])).sort();
    await story(token, async (page) => {
      await page.route("**/event", refuse);
      await page.goto(`/console/dns/${ID}`);
      const field = page.getByLabel("Value: @ A", { exact: true });
      await field.waitFor();
      await client.createRecordA({ body: { DomainId: ID, Name: "other.undone.example.", IP: "192.0.2.8" } });
      await field.fill("192.0.2.2");
      await page.getByRole("button", { name: "Review" }).click();
      await page.getByRole("button", { name: "Apply" }).click();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("Changed record @ A restored", { exact: true }).waitFor();
      assert.deepEqual(await addresses(), ["192.0.2.1", "192.0.2.8"]);
    });
  });

  test("labels of several servers keep what another client has changed before and since", async () => {
    const { client, token } = fixture.brume;
    const servers = [];
    for (const Name of ["bulk-1", "bulk-2"]) servers.push(await client.createServer({ body: { Name } }, { wait: 60 }));
    const [first, second] = servers.map(({ ID }) => ({ id: ID }));
    assert.ok(first && second);
    const labels = async (path: { id: number }) => (await client.readServer({ path })).Labels;
    await story(token, async (page) => {
      await page.goto("/console/servers?q=bulk-");
      await page.getByRole("checkbox", { name: "Select all" }).check();
      await page.getByRole("toolbar").getByRole("button", { name: "Labels" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Labels to set").fill("stage=test");
      await client.updateServer({ path: second, body: { Labels: { owner: "ann" } } });
      await dialog.getByRole("button", { name: "Labels" }).click();
      await page.getByRole("button", { name: "Undo" }).waitFor();
      assert.deepEqual(await labels(second), { owner: "ann", stage: "test" });
      await client.updateServer({ path: first, body: { Labels: { stage: "test", since: "1" } } });
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("Not undone on 1 server", { exact: false }).waitFor();
      assert.deepEqual([await labels(first), await labels(second)], [{ stage: "test", since: "1" }, { owner: "ann" }]);
    });
  });
});
