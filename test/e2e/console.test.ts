/**
 * Stories of the web console in headless Chromium, against the real service on simulated engines.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { checkAccess, checkPages, describeConsole } from "../support/consolefixture.ts";

describeConsole("the console", {}, (fixture) => {
  const { story } = fixture;

  test("a wrong token is rejected; a right one opens the requested pages of all tabs; signing out ends the session", async () => {
    await story(null, async (page) => {
      await page.goto("/console/servers");
      await page.getByLabel("Token").fill("0".repeat(64));
      await page.keyboard.press("Enter");
      await page.getByText("This token is not valid.").waitFor();
      await page.getByText("The first token is in the file token", { exact: false }).waitFor();
      await page.getByLabel("Token").fill("токен");
      await page.keyboard.press("Enter");
      await page.getByText("A token has 64 characters").waitFor();
      const other = await page.context().newPage();
      await other.goto("/console/images");
      await other.getByRole("heading", { name: "Sign in to Brume" }).waitFor();
      await page.getByLabel("Token").fill(fixture.brume.token);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Servers" }).waitFor();
      await other.getByRole("heading", { name: "Images" }).waitFor();
      await other.close();
      assert.equal(await page.evaluate("document.cookie"), "");
      await page.getByRole("button", { name: "Account" }).click();
      await page.getByRole("menuitem", { name: "Sign out" }).click();
      await page.getByRole("heading", { name: "Sign in to Brume" }).waitFor();
      assert.equal((await page.context().cookies()).length, 0);
    });
  });

  test("a signed-in user sees why the account cannot be read, and the page when it can, by a button or later", async () => {
    await story(fixture.brume.token, async (page) => {
      let isDown = true;
      await page.route("**/account", async (route) => {
        if (isDown) await route.fulfill({ status: 429, contentType: "text/plain", body: "later" });
        else await route.continue();
      });
      // What the page does by itself is left to the test.
      await page.addInitScript(`{
        const { setTimeout } = window;
        window.later = [];
        window.setTimeout = (run, ms, ...rest) => (ms >= 1000 ? window.later.push(run) : setTimeout(run, ms, ...rest));
      }`);
      await page.goto("/console/servers");
      await page.getByRole("alert").getByText("not an error object").waitFor();
      assert.equal(await page.getByLabel("Token").count(), 0);
      assert.equal(await page.locator(".placeholder").count(), 0);
      await checkAccess(page);
      isDown = false;
      await page.getByRole("button", { name: "Try again" }).click();
      await page.getByRole("heading", { name: "Servers" }).waitFor();
      isDown = true;
      await page.reload();
      await page.getByRole("alert").waitFor();
      isDown = false;
      await page.evaluate("later.forEach((run) => run())");
      await page.getByRole("heading", { name: "Servers" }).waitFor();
    });
  });

  test("a server is created with the keyboard only, checked as one types, and shows its steps", async () => {
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/");
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      // Requests stay open, as the user has left them.
      await page.evaluate("localStorage.setItem('brume-request', 'open')");
      await page.keyboard.press("Control+k");
      await page.keyboard.type("create serv");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Create server" }).waitFor();
      await page.keyboard.type("shop<1");
      await page
        .getByText(/no control characters/)
        .first()
        .waitFor();
      await page.keyboard.press("Backspace");
      await page.keyboard.press("Backspace");
      await page.keyboard.type("-1");
      await page.getByText("The request is valid.").waitFor();
      await page.getByText("brume server create shop-1 --cpu 1 --ram 256 --hdd 1 --image 1").waitFor();
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "shop-1" }).waitFor();
      await page.getByText("Running", { exact: true }).first().waitFor();
      const [made] = await fixture.brume.client.listServers({ query: { name: "shop-1" } });
      assert.deepEqual([made?.RAM, made?.CPU, made?.HDD], [256, 1, 1]);
      // The only key is selected.
      assert.deepEqual(
        made?.LinkedSshKeys.map(({ Title }) => Title),
        ["laptop"],
      );
    });
  });

  test("pages follow changes of other clients without a reload, and several tabs agree", async () => {
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/servers");
      await page.getByRole("link", { name: "web-1" }).waitFor();
      const other = await page.context().newPage();
      await other.goto("/console/servers?q=live");
      await other.getByText("No server matches the filter.").waitFor();
      const made = await fixture.brume.client.createServer({ body: { Name: "live-1" } }, { wait: 60 });
      for (const tab of [page, other]) await tab.getByRole("link", { name: "live-1" }).waitFor();
      await fixture.brume.client.updateServer({ path: { id: made.ID }, body: { Name: "live-2" } });
      for (const tab of [page, other]) await tab.getByRole("link", { name: "live-2" }).waitFor();
      await fixture.brume.client.deleteServer({ path: { id: made.ID } }, { wait: 60 });
      for (const tab of [page, other]) await tab.getByRole("link", { name: "live-2" }).waitFor({ state: "detached" });
    });
  });

  test("a stopped service is noticed, and the page heals when it is back", async () => {
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/servers");
      await page.getByRole("link", { name: "web-1" }).waitFor();
      await page.context().setOffline(true);
      await page.evaluate(() => (globalThis as unknown as { stop(): void }).stop());
      await page.getByText("Live updates are interrupted.", { exact: false }).waitFor();
      const made = await fixture.brume.client.createServer({ body: { Name: "later-1" } }, { wait: 60 });
      await page.context().setOffline(false);
      await page.getByRole("link", { name: "later-1" }).waitFor();
      await page.getByText("Live updates are interrupted.", { exact: false }).waitFor({ state: "detached" });
      await fixture.brume.client.deleteServer({ path: { id: made.ID } }, { wait: 60 });
    });
  });

  test("a server is deleted only after its name was typed", async () => {
    const made = await fixture.brume.client.createServer({ body: { Name: "doomed" } }, { wait: 60 });
    await story(fixture.brume.token, async (page) => {
      await page.goto(`/console/servers/${made.ID}?tab=settings`);
      await page.getByRole("button", { name: "Delete", exact: true }).click();
      const confirm = page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true });
      assert.equal(await confirm.isDisabled(), true);
      await page.getByLabel("Type doomed to confirm").fill("doomed");
      await confirm.click();
      await page.getByText("doomed is being deleted").waitFor();
      await page.waitForURL("**/console/servers");
      await page.getByRole("link", { name: "web-1" }).waitFor();
    });
  });

  test("a key is added while a server is created, and is selected for it", async () => {
    const key = Buffer.concat([Buffer.from("\0\0\0\x0bssh-ed25519\0\0\0 "), Buffer.alloc(32, 8)]).toString("base64");
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/servers/create");
      await page.getByRole("button", { name: "Add SSH key" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Public key").fill("ssh-ed25519 nonsense");
      await dialog.locator("textarea[aria-invalid=true]").waitFor();
      await dialog.getByLabel("Name", { exact: true }).fill("desk");
      const sent: string[] = [];
      page.on("request", (request) => sent.push(request.postData() ?? ""));
      await dialog.getByLabel("Public key").fill("-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n");
      await dialog.getByText("This is the private key.", { exact: false }).waitFor();
      assert.equal(await dialog.getByRole("button", { name: "Add SSH key" }).isDisabled(), true);
      assert.equal(await dialog.getByText("This request").count(), 0);
      await dialog.getByLabel("Name", { exact: true }).fill("");
      await dialog.getByLabel("Public key").fill(`ssh-ed25519 ${key} bob@desk`);
      await dialog.getByRole("button", { name: "Add SSH key" }).click();
      await page.getByRole("checkbox", { name: "bob@desk", checked: true }).waitFor();
      assert.ok(sent.some((body) => body.includes(key)) && !sent.some((body) => body.includes("PRIVATE")));
    });
  });

  test("a zone file is imported after a preview", async () => {
    const domain = await fixture.brume.client.createDomain({ body: { Name: "paste.example" } });
    await story(fixture.brume.token, async (page) => {
      await page.goto(`/console/dns/${domain.ID}`);
      await page.getByRole("button", { name: "Import zone file" }).click();
      await page.getByLabel("Zone file", { exact: true }).fill("www 60 IN A 192.0.2.7\n<script> IN X y\n");
      await page.getByRole("alert").waitFor();
      const dialog = page.getByRole("dialog");
      // A user who leaves the selection of a file without one keeps what was typed.
      await dialog.locator("input[type=file]").dispatchEvent("cancel", { bubbles: true });
      assert.match(await page.getByLabel("Zone file", { exact: true }).inputValue(), /^www 60/);
      const file = { name: "zone", mimeType: "text/plain", buffer: Buffer.from("www 60 IN A 192.0.2.7\n") };
      await dialog.locator("input[type=file]").setInputFiles(file);
      await dialog.getByText("+ www 60 IN A 192.0.2.7").waitFor();
      await dialog.getByText("This request").click();
      await dialog.getByText(`brume domain import ${domain.ID} paste.example.zone --mode Merge`).waitFor();
      await dialog.getByRole("button", { name: "Import" }).click();
      await page.getByLabel("Value: www A").waitFor();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("Added record www A removed").waitFor();
      await page.getByLabel("Value: www A").waitFor({ state: "detached" });
      // Several lines in the clipboard are a zone file too.
      await page.evaluate(`
        const clipboardData = new DataTransfer();
        clipboardData.setData("text/plain", "a 60 IN A 192.0.2.8\\nb 60 IN A 192.0.2.9\\n");
        const paste = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
        document.querySelector("main .table").dispatchEvent(paste);
      `);
      await dialog.getByText("+ b 60 IN A 192.0.2.9").waitFor();
      await page.keyboard.press("Escape");
      const saved = page.waitForEvent("download");
      await page.getByRole("button", { name: "Export zone file" }).click();
      const download = await saved;
      assert.equal(download.suggestedFilename(), "paste.example.zone");
      assert.match(readFileSync(await download.path(), "utf8"), /^paste\.example\.\s.*\bSOA\b/m);
    });
  });

  test("the queries of a domain are counted by their answers", async () => {
    const { brume } = fixture;
    const domain = await brume.client.createDomain({ body: { Name: "asked.example", Ip: "192.0.2.1" } });
    await story(brume.token, async (page) => {
      await page.goto(`/console/dns/${domain.ID}?tab=queries`);
      await page.getByText("No query yet").waitFor();
      await page.getByText(/^dig @.* asked\.example SOA$/).waitFor();
      await brume.resolver.resolve4("asked.example");
      await assert.rejects(brume.resolver.resolve4("none.asked.example"));
      await page.getByText("the name does not exist").waitFor();
      assert.equal(await page.getByRole("meter").count(), 2);
    });
  });

  test("a domain is deleted after its name was typed, with the request as a command", async () => {
    const domain = await fixture.brume.client.createDomain({ body: { Name: "gone.example" } });
    await story(fixture.brume.token, async (page) => {
      await page.goto(`/console/dns/${domain.ID}?tab=settings`);
      await page.getByRole("button", { name: "Delete", exact: true }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("This request").click();
      await dialog.getByText(`brume domain delete ${domain.ID}`).waitFor();
      const confirm = dialog.getByRole("button", { name: "Delete", exact: true });
      assert.equal(await confirm.isDisabled(), true);
      await page.getByLabel("Type gone.example to confirm").fill("gone.example");
      await confirm.click();
      await page.getByRole("link", { name: "example.com" }).waitFor();
      await page.getByRole("link", { name: "gone.example" }).waitFor({ state: "detached" });
    });
  });

  test("a token is built, shown once, and its session ends with it", async () => {
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/access");
      await page.getByRole("button", { name: "Create token" }).click();
      await page.getByLabel("Name", { exact: true }).fill("robot");
      await page.getByLabel("Purpose").selectOption("certificate");
      await page.getByText("change records of one domain, names _acme-challenge*, types TXT").waitFor();
      await page.getByLabel("Domain", { exact: true }).selectOption("example.com");
      const denied = page.getByRole("list", { name: "It cannot" }).getByRole("listitem");
      assert.match((await denied.allTextContents()).join("|"), /^see servers, .*\|change networks/);
      const allowed = page.getByRole("list", { name: "This token can" }).getByRole("listitem");
      const right = "change records of example.com, names _acme-challenge*, types TXT";
      assert.deepEqual(await allowed.allTextContents(), [right]);
      // The border and the scroll bar are parts of the dialog.
      const box = await page.getByRole("dialog").boundingBox();
      assert.ok(box !== null);
      await page.mouse.click(box.x, box.y + box.height / 2);
      assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "robot");
      await page.getByRole("dialog").getByRole("button", { name: "Create token" }).click();
      await page.getByText("Copy the token now").first().waitFor();
      const value = (await page.getByRole("dialog").locator("pre").textContent()) ?? "";
      assert.match(value, /^[0-9a-f]{64}$/);
      await page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();
      await page.getByText("robot").waitFor();
      await page.getByRole("button", { name: "Create token" }).click();
      await page.getByRole("dialog").waitFor();
      await page.mouse.click(box.x - 5, box.y + box.height / 2);
      await page.getByRole("dialog").waitFor({ state: "detached" });
      const { Token } = await fixture.brume.clientOf(value).readAccount();
      assert.deepEqual(Token.Scopes, ["dns:write"]);
      await story(value, async (robots) => {
        await robots.goto("/console/access");
        await robots.getByText("this session").waitFor();
        assert.equal(await robots.getByRole("link", { name: "Tokens" }).count(), 0);
        await fixture.brume.client.deleteToken({ path: { id: Token.ID } });
        await robots.getByRole("heading", { name: "Sign in to Brume" }).waitFor();
        await robots.getByText("Your session has ended", { exact: false }).waitFor();
      });
    });
  });

  test("a session of another browser is ended from the list", async () => {
    const { Token, ID } = await fixture.brume.client.createToken({ body: { Name: "lost", Scopes: ["dns:read"] } });
    await story(Token, async (lost) => {
      await lost.goto("/console/dns");
      await lost.getByRole("link", { name: "example.com" }).waitFor();
      await story(fixture.brume.token, async (page) => {
        await page.goto("/console/access?tab=sessions");
        await page.getByRole("row", { name: /lost/ }).getByRole("button", { name: "End" }).click();
        await page.getByRole("dialog").getByText("This request").click();
        await page.getByText(/brume session delete \d+/).waitFor();
        await page.getByRole("dialog").getByRole("button", { name: "End", exact: true }).click();
        await page.getByText("The session has ended").waitFor();
      });
      await lost.getByRole("heading", { name: "Sign in to Brume" }).waitFor();
    });
    await fixture.brume.client.deleteToken({ path: { id: ID } });
  });

  test("events appear as they happen, and can be paused", async () => {
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/activity?kind=domain");
      await page.getByText("example.com", { exact: true }).first().waitFor();
      await fixture.brume.client.createDomain({ body: { Name: "news.example" } });
      await page.getByText("news.example").first().waitFor();
      await page.getByRole("button", { name: "Pause" }).click();
      await page.getByText("Paused", { exact: true }).waitFor();
      assert.equal(await page.getByText("Every change in this project, live.").count(), 0);
      await fixture.brume.client.createDomain({ body: { Name: "later.example" } });
      await page.getByText("Paused, 1 new event", { exact: true }).waitFor();
      assert.equal(await page.getByText("later.example").count(), 0);
      await page.getByRole("button", { name: "Continue" }).click();
      await page.getByText("later.example").first().waitFor();
      // The event of a deletion contains only the id.
      const { ID } = await fixture.brume.client.createDomain({ body: { Name: "erased.example" } });
      await fixture.brume.client.deleteDomain({ path: { id: ID } });
      const deleted = page.getByRole("row").filter({ hasText: "Domain deleted" });
      await deleted.getByText("erased.example").waitFor();
    });
  });

  test("a token without rights sees no actions", async () => {
    const { Token } = await fixture.brume.client.createToken({ body: { Name: "reader", Scopes: ["server:read"] } });
    await story(Token, async (page) => {
      await page.goto(`/console/servers/${fixture.scene.server}`);
      await page.getByRole("heading", { name: "web-1" }).waitFor();
      assert.equal(await page.getByRole("button", { name: "Shut down" }).count(), 0);
      assert.equal(await page.getByRole("link", { name: "Settings" }).count(), 0);
      await page.goto("/console/");
      await page.getByText("Servers running").waitFor();
      assert.equal(await page.getByRole("link", { name: "Create server" }).count(), 0);
    });
  });

  test("hostile names are text", async () => {
    const made = await fixture.brume.client.createServer({
      body: { Name: "'\"&amp;{{7*7}}${alert(1)}" },
    });
    await story(fixture.brume.token, async (page) => {
      await page.goto(`/console/servers/${made.ID}`);
      await page.getByRole("heading", { name: "'\"&amp;{{7*7}}${alert(1)}" }).waitFor();
    });
    await fixture.brume.client.deleteServer({ path: { id: made.ID } });
  });

  test("the texts are in Russian for a Russian browser", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto("/console/servers");
        await page.getByRole("heading", { name: "Серверы" }).waitFor();
        assert.equal(await page.locator("html").getAttribute("lang"), "ru");

        const isTableLoaded = () =>
          page.evaluate(() => performance.getEntriesByType("resource").some(({ name }) => name.includes("/details-")));
        await page.goto(`/console/servers/${fixture.scene.server}?tab=settings`);
        await page.getByLabel("Имя", { exact: true }).fill("<b>");
        assert.equal(await isTableLoaded(), false);
        await page.getByRole("button", { name: "Сохранить" }).click();
        const reason = 'ужен текст: без управляющих знаков, без < и >; получено: "<b>".';
        await page.locator(".field").getByText(`Н${reason}`, { exact: true }).waitFor();
        assert.equal(await page.locator(".toast").count(), 0);
        assert.equal(await isTableLoaded(), true);
        await page.goto(`/console/activity/webhooks/${fixture.scene.webhook}`);
        await page.getByText("Получатель недоступен: соединение отклонено.").first().waitFor();
      },
      { locale: "ru-RU" },
    );
  });

  test("axe finds nothing on any page, wide in light and narrow in dark", async () => {
    const { scene } = fixture;
    const pages = [
      ["/console/", "Latest changes"],
      ["/console/servers", "web-1"],
      ["/console/servers/create", "Shared network"],
      [`/console/servers/${scene.server}`, "Bandwidth"],
      [`/console/servers/${scene.server}?tab=settings`, "Rebuild from image"],
      ["/console/dns", "Not checked"],
      ["/console/dns?create=1", "Optional: paste"],
      [`/console/dns/${scene.domain}`, "Add record"],
      ["/console/activity", "Every change in this project"],
      ["/console/access", "certificates"],
      ["/console/access?tab=keys", "laptop"],
      ["/console/access?tab=sessions", "this session"],
      ["/console/access?tab=projects", "Usage"],
      [`/console/dns/${scene.domain}?tab=queries`, "No query yet"],
      [`/console/dns/${scene.domain}?tab=history`, "Every version of the zone"],
      ["/console/servers/999", "This server does not exist"],
      ["/console/nothing/here?tab=none", "This page does not exist"],
    ] as const;
    // Lists and forms of one kind look alike on a phone.
    await checkPages(fixture, pages, (path) => !/tab=|create=1|activity/.test(path));
    await story(null, async (page) => {
      await page.goto("/console/");
      await page.getByLabel("Token").waitFor();
      await checkAccess(page);
    });
  });
});
