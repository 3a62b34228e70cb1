/** Stories of the console about domains: long tables with the keyboard, labels, claims and reserved names. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { checkPages, describeConsole, isDesktop, widths } from "../support/consolefixture.ts";

/** Returns the distance of the table from the top of the page in pixels. */
const top = (page: Page): Promise<number> =>
  page.evaluate<number>("document.querySelector('[role=table]').getBoundingClientRect().top + scrollY");

describeConsole("domains in the console", {}, (fixture) => {
  const { story } = fixture;

  test("a long table is read as a table, scrolls with the keyboard, and keeps the focus of a row out of view", async () => {
    const lines = Array.from({ length: 400 }, (_, index) => `host-${1000 + index} 300 IN A 192.0.2.1`);
    const { ID } = await fixture.brume.client.createDomain({
      body: { Name: "long.example", ZoneFile: lines.join("\n") },
    });
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto(`/console/dns/${ID}`);
        const table = page.getByRole("table", { name: "Records" });
        const nameOf = (row: number) => page.getByLabel(`Name: host-${1000 + row} A`);
        await nameOf(0).waitFor();
        assert.equal(await page.getByRole("grid").count(), 0);
        assert.equal(await table.getAttribute("aria-rowcount"), "401");
        assert.ok((await table.getByRole("row").count()) < 60);
        await page.getByRole("button", { name: "Import zone file" }).focus();
        await page.keyboard.press("Tab");
        await table.and(page.locator(":focus")).waitFor();
        await page.keyboard.press("End");
        await nameOf(399).waitFor();
        await page.getByRole("row").last().and(page.locator("[aria-rowindex='401']")).waitFor();
        await page.keyboard.press("Home");
        await nameOf(2).focus();
        await table.hover();
        await page.mouse.wheel(0, 6000);
        await nameOf(155).waitFor();
        await nameOf(2).and(page.locator(":focus")).waitFor({ state: "attached" });
        await page.keyboard.type("x");
        await page.getByText("1 pending change").first().waitFor();
        // Tab continues at the control after it, and the table scrolls there.
        await page.keyboard.press("Tab");
        await page
          .getByLabel(/^TTL: (x?host-1002x?) A/)
          .and(page.locator(":focus"))
          .waitFor();
        await page.getByRole("button", { name: "Discard" }).click();
      },
      { width: widths[2] },
    );
  });

  test("labels of a domain are set, found by, and restored unless another client has changed them", async () => {
    const { client, token } = fixture.brume;
    const { ID } = await client.createDomain({ body: { Name: "labelled.example" } });
    const labels = async () => (await client.readDomain({ path: { id: ID } })).Labels;
    await story(token, async (page) => {
      await page.goto(`/console/dns/${ID}?tab=settings`);
      const field = page.getByLabel("Labels");
      await field.fill("-stage=test");
      await page.getByText(/^Must have keys /).waitFor();
      await field.fill("stage=test, team");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("labelled.example is saved").waitFor();
      assert.deepEqual(await labels(), { stage: "test", team: "" });
      await page.getByRole("link", { name: "Domains" }).click();
      await page.getByRole("combobox", { name: "Labels" }).selectOption("stage=test");
      await page.getByText(/^1 of \d+$/).waitFor();
      const labelled = isDesktop(page) ? /^labelled.example .*stage=test.*team/ : /^labelled.example /;
      await page.getByRole("row", { name: labelled }).waitFor();
      await page.reload();
      await page.getByText(/^1 of \d+$/).waitFor();
      await page.getByRole("link", { name: "labelled.example" }).click();
      await page.getByRole("link", { name: "Settings", exact: true }).click();
      await field.fill("stage=live");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("labelled.example: change undone").waitFor();
      assert.deepEqual(await labels(), { stage: "test", team: "" });
      await field.fill("stage=live");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("button", { name: "Undo" }).waitFor();
      await client.updateDomain({ path: { id: ID }, body: { Labels: { stage: "other" } } });
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("It has changed again since then", { exact: false }).waitFor();
      assert.deepEqual(await labels(), { stage: "other" });
    });
  });

  test("a domain of another project is claimed, proven by its record, and withdrawn there with its zone file", async () => {
    const { brume } = fixture;
    const project = await brume.client.createProject({ body: { Name: "rival" } });
    const other = await brume.client.createToken({
      body: { Name: "rival", Scopes: ["dns:write", "account:admin"], ProjectID: project.ID },
    });
    const parent = await brume.client.createDomain({ body: { Name: "wanted.example", Ip: "192.0.2.1" } });
    await story(other.Token, async (page) => {
      await page.goto("/console/dns?create=1");
      await page.getByRole("dialog").getByLabel("Domain name").fill("shop.wanted.example");
      await page.getByRole("link", { name: "Claim this name" }).click();
      await page.waitForURL("**/dns?tab=claims&create=1&q=shop.wanted.example");
      const dialog = page.getByRole("dialog");
      await dialog.getByText("This request").click();
      await dialog.getByText("brume claim create shop.wanted.example").waitFor();
      await dialog.getByRole("button", { name: "Claim domain" }).click();
      await dialog.getByRole("heading", { name: "Claim of shop.wanted.example" }).waitFor();
      await dialog.getByText("Open the DNS records of shop.wanted.example", { exact: false }).waitFor();
      await dialog.getByText("_brume-challenge.shop.wanted.example.").waitFor();
      const text = (await dialog.getByText(/^brume-claim=[0-9a-f]{32}$/).textContent()) ?? "";
      await dialog.getByRole("button", { name: "Check now" }).click();
      await page.getByText("The record was not found yet").waitFor();
      const body = { DomainId: parent.ID, Name: "_brume-challenge.shop.wanted.example.", Text: text };
      await brume.client.createRecordTXT({ body });
      await dialog.getByRole("button", { name: "Check now" }).click();
      await page.getByText("shop.wanted.example belongs to this project").waitFor();
      await dialog.getByText("Proven").waitFor();
      await dialog.getByRole("link", { name: "shop.wanted.example" }).click();
      await page.getByRole("heading", { name: "shop.wanted.example" }).waitFor();
      await page.goto("/console/dns?tab=claims");
      await page.getByRole("button", { name: "Claim domain" }).click();
      await dialog.getByLabel("Domain name").fill("example.com");
      await dialog.getByRole("button", { name: "Claim domain" }).click();
      await dialog.getByRole("button", { name: "Delete claim" }).click();
      await page.getByRole("dialog").last().getByRole("button", { name: "Delete claim" }).click();
      await page.getByRole("link", { name: "example.com", exact: true }).waitFor({ state: "detached" });
      await page.getByRole("row", { name: /^shop.wanted.example Proven/ }).waitFor();
    });
    // The rival reserves the name for itself, which proves the next claim without a record.
    await brume.client.createReservation({ body: { Name: "wanted.example", ProjectID: project.ID } });
    await story(brume.token, async (page) => {
      await page.goto("/console/dns?tab=withdrawn");
      await page.getByText("No withdrawn domains").waitFor();
      const rival = brume.clientOf(other.Token);
      await rival.createClaim({ body: { Name: "wanted.example" } }, { wait: 20 });
      await page.getByRole("button", { name: "Zone file of wanted.example" }).click();
      await page
        .getByRole("dialog")
        .getByText(/wanted\.example\. 3600 IN A 192\.0\.2\.1/)
        .waitFor();
      const download = page.waitForEvent("download");
      await page.getByRole("dialog").getByRole("button", { name: "Export zone file" }).click();
      assert.equal((await download).suggestedFilename(), "wanted.example.zone");
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Delete wanted.example" }).click();
      await page.getByLabel("Type wanted.example to confirm").fill("wanted.example");
      await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByText("No withdrawn domains").waitFor();
    });
  });

  test("the operator reserves a name for a project and releases it, and other tokens do not see the names", async () => {
    const { brume } = fixture;
    await story(brume.token, async (page) => {
      await page.goto("/console/dns?tab=reserved");
      await page.getByRole("button", { name: "Reserve name" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Reserved name").fill("a b");
      await dialog.getByText(/^Must be a name /).waitFor();
      await dialog.getByLabel("Reserved name").fill("brand.example");
      await dialog.getByText("This request").click();
      await dialog.getByText("brume reservation create brand.example").waitFor();
      await dialog.getByRole("button", { name: "Reserve name" }).click();
      await page.getByText("brand.example is reserved").waitFor();
      await page.getByRole("row", { name: /^brand.example No project/ }).waitFor();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByRole("row", { name: /^brand.example/ }).waitFor({ state: "detached" });
      await brume.client.createReservation({ body: { Name: "brand.example" } });
      await page.reload();
      await page.getByRole("button", { name: "Release brand.example" }).click();
      await dialog.getByRole("button", { name: "Release", exact: true }).click();
      await page.getByText("brand.example is released").waitFor();
      await page.getByRole("row", { name: /^brand.example/ }).waitFor({ state: "detached" });
    });
    const { Token } = await brume.client.createToken({ body: { Name: "dns reader", Scopes: ["dns:read"] } });
    await story(Token, async (page) => {
      await page.goto("/console/dns?tab=reserved");
      await page.getByRole("link", { name: "example.com", exact: true }).waitFor();
      assert.equal(await page.getByRole("link", { name: "Reserved names" }).count(), 0);
      await page.getByRole("link", { name: "Claims" }).click();
      await page.getByText("No claims").waitFor();
      assert.equal(await page.getByRole("button", { name: "Claim domain" }).count(), 0);
    });
  });

  test("records are edited in the table, reviewed as a diff and applied as one changeset", async () => {
    const domain = await fixture.brume.client.createDomain({ body: { Name: "edit.example", Ip: "192.0.2.1" } });
    const path = { id: domain.ID };
    await story(fixture.brume.token, async (page) => {
      await page.goto(`/console/dns/${domain.ID}?q=192`);
      await page.getByLabel("Value: @ A").waitFor();
      const before = await top(page);
      await page.getByLabel("Value: @ A").fill("not an address");
      const bar = page.getByRole("toolbar").getByRole("status");
      await bar.getByText("1 error: @ A, Value: must be an IPv4 address", { exact: false }).waitFor();
      assert.equal(await page.getByLabel("Value: @ A").getAttribute("aria-invalid"), "true");
      assert.equal(await page.getByLabel("Name: @ A").getAttribute("aria-invalid"), null);
      // The error is at the field that has the focus, and no row has moved for it.
      await page.getByRole("row").getByText("Must be an IPv4 address", { exact: false }).waitFor();
      assert.equal(await top(page), before);
      assert.equal(await page.getByRole("button", { name: "Review" }).isDisabled(), true);
      await page.getByLabel("Value: @ A").fill("192.0.2.99");
      await bar.getByText("1 error").waitFor({ state: "detached" });
      // A visit to another page keeps the edits, and closing the page is warned about.
      await page.getByRole("link", { name: "History" }).click();
      await page.getByText("Every version of the zone", { exact: false }).waitFor();
      const isHeld = `!dispatchEvent(new Event("beforeunload", { cancelable: true }))`;
      assert.equal(await page.evaluate(isHeld), true);
      await page.goBack();
      await page.getByText("1 pending change").waitFor();
      assert.equal(await page.getByLabel("Value: @ A").inputValue(), "192.0.2.99");
      await page.getByRole("button", { name: "Add record" }).click();
      await page.getByLabel("Name:  A").and(page.locator(":focus")).waitFor();
      await page.getByText("Write a value in each new row.").waitFor();
      assert.equal(await page.getByRole("button", { name: "Review" }).isDisabled(), true);
      await page.getByLabel("Type", { exact: true }).last().selectOption("MX");
      await page.getByLabel("Value:  MX").fill("mail.example.net.");
      await page.getByText("2 pending changes").first().waitFor();
      await page.getByRole("button", { name: "Review" }).click();
      await page.getByText("− @ 3600 IN A 192.0.2.1").waitFor();
      await page.getByText("+ @ 3600 IN MX 10 mail.example.net.").waitFor();
      await page.getByRole("button", { name: "Apply" }).click();
      await page.getByText(/edit\.example: applied as version \d+/).waitFor();
      await page.getByText("2 pending changes").waitFor({ state: "detached" });
    });
    const records = (await fixture.brume.client.readDomain({ path })).LinkedRecords;
    assert.ok(records.some(({ IP }) => IP === "192.0.2.99"));
    assert.ok(records.some(({ ExtHostName }) => ExtHostName === "mail.example.net."));
  });

  test("a version is restored after a preview, and name servers that no registrar accepts have a note", async () => {
    const { client, token } = fixture.brume;
    const { ID } = await client.createDomain({ body: { Name: "back.example", Ip: "192.0.2.1" } });
    const { Serial } = await client.readDomain({ path: { id: ID } });
    await client.createRecordTXT({ body: { DomainId: ID, Name: "new", Text: "x\u202ey" } });
    await client.createRecordTXT({ body: { DomainId: ID, Name: "a", Text: "x" } });
    await story(token, async (page) => {
      await page.goto(`/console/dns/${ID}?type=TXT`);
      const owners = page.getByLabel(/^Name: /);
      await owners.nth(1).waitFor();
      assert.deepEqual([await owners.nth(0).inputValue(), await owners.nth(1).inputValue()], ["a", "new"]);
      await page.goto(`/console/dns/${ID}?tab=history`);
      const version = page.getByRole("listitem").filter({ hasText: `Version ${Serial}` });
      assert.match(
        (await page.getByRole("listitem").filter({ hasText: "Version" }).first().textContent()) ?? "",
        /Current/,
      );
      assert.equal(await version.getByText("Current").count(), 0);
      await version.getByText("Token first").waitFor();
      await version.getByRole("button", { name: "Restore this version" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText('− new 3600 IN TXT "x\\u{202e}y"').waitFor();
      await dialog.getByRole("button", { name: "Restore", exact: true }).click();
      await page.getByText("back.example: applied as version", { exact: false }).waitFor();
      await page.getByRole("link", { name: "Delegation" }).click();
      await page.getByText("No registrar accepts these names", { exact: false }).waitFor();
      await page.getByText("It is not checked while", { exact: false }).waitFor();
      await page.getByText("Delegation not checked", { exact: true }).waitFor();
      const address = (await client.readReadiness({})).Checks.find(({ Name }) => Name === "nameserver")?.Detail ?? "";
      const [host, port] = address.split(":");
      await page.getByText(`dig @${host} -p ${port} back.example SOA`).waitFor();
    });
  });

  test("a token of some records shows which they are, and adds a record of a type that it may have", async () => {
    const { client } = fixture.brume;
    const { ID } = await client.createDomain({ body: { Name: "limited.example", Ip: "192.0.2.1" } });
    const { Token } = await client.createToken({
      body: { Name: "acme", Scopes: ["dns:write"], DomainID: ID, RecordPattern: "_acme*", RecordTypes: ["TXT"] },
    });
    await story(Token, async (page) => {
      const rights = Promise.withResolvers<void>();
      await page.route(/\/token\/\d+$/, async (route) => {
        await rights.promise;
        await route.continue();
      });
      await page.goto(`/console/dns/${ID}`);
      // Before the rights of the token are known, no type can be suggested.
      await page.getByRole("button", { name: "Add record", disabled: true }).waitFor();
      rights.resolve();
      await page
        .getByText("Your token is limited to records of limited.example, names _acme*, types TXT.", { exact: true })
        .waitFor();
      await page.getByRole("button", { name: "Add record" }).click();
      assert.deepEqual(await page.getByRole("combobox", { name: "Type" }).last().locator("option").allTextContents(), [
        "TXT",
      ]);
      await page.getByLabel("Name:  TXT").and(page.locator(":focus")).waitFor();
      await page.keyboard.type("_acme-challenge");
      await page.getByLabel("Value: _acme-challenge TXT").fill("abc");
      await page.getByRole("button", { name: "Review" }).click();
      await page.getByRole("button", { name: "Apply" }).click();
      await page.getByText(/applied as version/).waitFor();
      // What concerns the zone as a whole is not offered: the service would reject it.
      assert.equal(await page.getByRole("button", { name: "Undo" }).count(), 0);
      assert.equal(await page.getByRole("button", { name: "Import zone file" }).count(), 0);
      await page.getByRole("link", { name: "History" }).click();
      await page.getByText("Current", { exact: true }).waitFor();
      assert.equal(await page.getByRole("button", { name: "Restore this version" }).count(), 0);
    });
  });

  test("a domain without records shows no number of them", async () => {
    const { client, token } = fixture.brume;
    const { ID } = await client.createDomain({ body: { Name: "bare.example" } });
    await story(token, async (page) => {
      await page.goto(`/console/dns/${ID}`);
      await page.getByText("No records besides the name servers.", { exact: false }).waitFor();
      assert.equal(await page.getByText("0 of 0").count(), 0);
    });
  });

  test("axe finds nothing, wide in light and narrow in dark", async () => {
    const { client } = fixture.brume;
    await client.createReservation({ body: { Name: "kept.example" } });
    await checkPages(
      fixture,
      [
        ["/console/dns?tab=claims", "No claims"],
        ["/console/dns?tab=claims&create=1", "You get a TXT record"],
        ["/console/dns?tab=withdrawn", "No withdrawn domains"],
        ["/console/dns?tab=reserved", "kept.example"],
        [`/console/dns/${fixture.scene.domain}?tab=settings`, "Labels"],
      ],
      (path) => !path.includes("withdrawn"),
    );
  });

  test("a long error of the first record is not cut, and the bar shortens a long name", async () => {
    const { ID: id } = await fixture.brume.client.createDomain({ body: { Name: "edge.example" } });
    await story(fixture.brume.token, async (page) => {
      await page.goto(`/console/dns/${id}`);
      await page.getByRole("button", { name: "Add record" }).first().click();
      const first = (name: RegExp) => page.getByLabel(name).first();
      await first(/^Name:/).fill("x".repeat(300));
      await first(/^Value:/).fill("wrong");
      await page.getByRole("status").getByText("x".repeat(40).concat("… A"), { exact: false }).waitFor();
      await first(/^Name:/).focus();
      const note = page.locator(".field-note:visible");
      await note.getByText("Must be at most 253 characters long").waitFor();
      // What is drawn at its first line is the note itself.
      const isWhole = `(() => {
        const note = [...document.querySelectorAll(".field-note")].find((one) => one.checkVisibility());
        const { left, top } = note.getBoundingClientRect();
        return document.elementFromPoint(left + 20, top + 4) === note;
      })()`;
      assert.equal(await page.evaluate(isWhole), true);
    });
    await fixture.brume.client.deleteDomain({ path: { id } });
  });

  test("the bar of pending records shows an error without a field whole, with what to do", async () => {
    const { brume } = fixture;
    const project = await brume.client.createProject({ body: { Name: "small", Quotas: { RecordsPerDomain: 1 } } });
    const { Token } = await brume.client.createToken({
      body: { Name: "small", Scopes: ["dns:write"], ProjectID: project.ID },
    });
    const { ID: id } = await brume.clientOf(Token).createDomain({ body: { Name: "small.example", Ip: "192.0.2.1" } });
    await story(Token, async (page) => {
      await page.goto(`/console/dns/${id}`);
      const isClicked = Promise.withResolvers<void>();
      await page.route(`**/dns/${id}/changeset*`, async (route) => {
        await isClicked.promise;
        await route.continue();
      });
      await page.getByRole("button", { name: "Add record" }).click();
      await page
        .getByLabel(/^Value:/)
        .first()
        .fill("192.0.2.2");
      // The review waits for the check, whose error is shown instead.
      await page.getByRole("button", { name: "Review" }).click();
      isClicked.resolve();
      const status = page.getByRole("toolbar").getByRole("status");
      await status.getByText("The request exceeds the quota of the project.").waitFor();
      await status.getByText("Request less, delete objects of this kind", { exact: false }).waitFor();
      const isCut = `(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)(document.querySelector(".bulk [role=status]"))`;
      assert.equal(await page.evaluate(isCut), false);
      assert.equal(await page.getByRole("button", { name: "Review" }).isDisabled(), true);
      assert.equal(await page.getByRole("dialog").count(), 0);
      await page.getByRole("button", { name: "Discard" }).click();
    });
  });
});
