/** Stories of the console about images, the audit log, webhooks, projects, sessions and the host. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { deleteLink, listLinksOfServer } from "../../service/src/network/linktable.ts";
import { deleteServer } from "../../service/src/server/table.ts";
import { checkPages, describeConsole, isDesktop } from "../support/consolefixture.ts";
import { openEndpoint } from "../support/webhookendpoint.ts";

describeConsole("the console of an operator", {}, (fixture) => {
  const { story } = fixture;

  test("an image is made from a server, with its progress, and deleted after its name was typed", async () => {
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/images");
      await page.getByRole("button", { name: "Add image" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Name").fill("gold");
      await dialog.getByLabel("Address").fill("http://127.0.0.1/disk");
      await dialog.getByLabel("SHA-256").fill("short");
      await dialog.getByText("64 hexadecimal digits").first().waitFor();
      await dialog.getByRole("button", { name: "A server", exact: true }).click();
      await dialog.getByLabel("From server").selectOption("web-1");
      await dialog.getByText("This request").click();
      await dialog.getByText("brume image create gold --server 1").waitFor();
      await dialog.getByRole("button", { name: "Add image" }).click();
      await page.getByText("gold is being added").waitFor();
      await page.getByRole("row", { name: /^gold Ready/ }).waitFor();
      await page.getByRole("button", { name: "Delete image gold" }).click();
      await page.getByLabel("Type gold to confirm").fill("gold");
      await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByRole("row", { name: /^gold/ }).waitFor({ state: "detached" });
    });
  });

  test("a file is uploaded with its progress, paused, and continued after a reload with the same file only", async () => {
    const disk = randomBytes(3_000_000);
    disk.fill(0, 0, 512);
    const fileOf = (buffer: Buffer) => ({ name: "mine.raw", mimeType: "application/octet-stream", buffer });
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/images");
      await page.getByRole("button", { name: "Add image" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("button", { name: "This computer" }).click();
      await dialog.getByLabel("Disk image").setInputFiles(fileOf(disk));
      await dialog.getByText("This request").click();
      await dialog.getByText("brume image upload FILE --name mine").waitFor();
      const sum = createHash("sha256").update(disk).digest("hex");
      assert.equal(await dialog.getByLabel("SHA-256").inputValue(), sum);
      // The content is held back, so that the upload is still running at the pause.
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      await page.route("**/image/*/content", async (route) => {
        await released;
        // The request may have ended with the pause.
        await route.continue().catch(() => undefined);
      });
      await dialog.getByRole("button", { name: "Add image" }).click();
      await page.getByText("Uploading: 0%").waitFor();
      await page.getByRole("button", { name: "Pause mine" }).click();
      await page.getByText("Paused: 0%").waitFor();
      await page.reload();
      const input = page.getByLabel("Choose the same file to continue");
      await input.setInputFiles(fileOf(randomBytes(3_000_000)));
      await page.getByText("This file differs").waitFor();
      release();
      await page.getByLabel("Choose the same file to continue").setInputFiles(fileOf(disk));
      await page.getByRole("row", { name: /^mine Failed/ }).waitFor();
      await page.getByRole("listitem").filter({ hasText: "mine" }).getByText("servers are simulated").waitFor();
      const image = (await fixture.brume.client.listImages()).find(({ Name }) => Name === "mine");
      assert.match(image?.Error?.detail ?? "", /servers are simulated/);
      await fixture.brume.client.deleteImage({ path: { id: image?.ID ?? 0 } });
    });
  });

  test("a webhook shows its secret once, its deliveries with their errors, and resends one", async () => {
    let status = 500;
    const endpoint = await openEndpoint(() => status);
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/activity/webhooks");
      await page.getByRole("button", { name: "Add webhook" }).click();
      await page.getByLabel("Address").fill("ftp://example.com");
      await page
        .getByRole("dialog")
        .getByText(/https?:\/\//)
        .first()
        .waitFor();
      await page.getByLabel("Address").fill(endpoint.url);
      await page.getByRole("checkbox", { name: "Domain" }).check();
      await page.getByRole("dialog").getByRole("button", { name: "Add webhook" }).click();
      const secret = page
        .getByRole("dialog")
        .locator("pre")
        .filter({ hasText: /^[0-9a-f]{64}$/ });
      assert.match((await secret.textContent()) ?? "", /^[0-9a-f]{64}$/);
      await page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();
      await page.getByRole("button", { name: "Undo" }).waitFor();
      await page.getByRole("link", { name: endpoint.url }).click();
      await page.getByText("No delivery yet", { exact: false }).waitFor();
      await fixture.brume.client.createDomain({ body: { Name: "hook.example" } });
      await page
        .getByRole("row", { name: /domain\.created/ })
        .getByRole("cell", { name: "500", exact: true })
        .waitFor();
      status = 200;
      await page.getByRole("button", { name: /^Resend: domain.created/ }).click();
      await page.getByRole("row", { name: /domain\.created.* Delivered/ }).waitFor();
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByText("No webhooks yet").or(page.getByText("127.0.0.1:9")).first().waitFor();
    });
    await endpoint.close();
  });

  test("the audit log is filtered, folds repeated rejections, and shows the changed fields", async () => {
    const { brume } = fixture;
    const domain = await brume.client.createDomain({ body: { Name: "audited.example" } });
    for (let time = 0; time < 3; time++)
      await brume.client.deleteServer({ path: { id: 999_999 } }).catch(() => undefined);
    await story(brume.token, async (page) => {
      await page.goto("/console/activity/audit?operation=deleteServer");
      const row = page.getByRole("row", { name: /Delete server 3 times/ });
      await row.getByText("404").waitFor();
      await row.getByText("Server 999999").waitFor();
      await page.getByRole("button", { name: "Clear filter" }).click();
      await page.getByLabel("Object", { exact: true }).selectOption("Domain");
      await page.getByLabel("ID of the object").fill(String(domain.ID));
      const added = page.getByRole("row").filter({ hasText: `Domain ${domain.ID} · audited.example` });
      await added.getByRole("button", { name: /Details: Add domain/ }).click();
      await page.getByRole("dialog").getByText("createDomain", { exact: true }).waitFor();
      await page.getByRole("dialog").getByText('+ "audited.example"').first().waitFor();
      await page.keyboard.press("Escape");
      await page.getByLabel("Operation").selectOption({ label: "All deletions (delete*)" });
      await page.getByText("No entry matches the filter.").waitFor();
      await page.getByRole("button", { name: "Clear filter" }).click();
      await brume.client.deleteDomain({ path: { id: domain.ID } });
      await page
        .getByRole("row", { name: /Delete domain/ })
        .first()
        .waitFor();
    });
  });

  test("a project is created, gets a quota, is blocked and deleted", async () => {
    const { brume } = fixture;
    await story(brume.token, async (page) => {
      await page.goto("/console/access?tab=projects");
      await page.getByText(/of 256\sGB$/).waitFor();
      await page.getByRole("button", { name: "Create project" }).click();
      assert.equal(await page.getByRole("spinbutton", { name: "Memory", description: "MB" }).inputValue(), "262144");
      await page.getByRole("dialog").getByLabel("Name").fill("<b>team</b> 'x'");
      await page.keyboard.press("Enter");
      await page
        .getByRole("dialog")
        .getByText(/no control characters/)
        .first()
        .waitFor();
      await page.getByRole("dialog").getByLabel("Name").fill("team  'x'");
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "Edit project: team 'x'" }).click();
      await page.getByRole("spinbutton", { name: "Servers" }).fill("2");
      await page.getByLabel("Block the project").check();
      await page.getByRole("button", { name: "Save" }).click();
      await page
        .getByRole("row", { name: /team 'x'/ })
        .getByText("Blocked")
        .waitFor();
      const id = (await brume.client.readAccount()).Projects.find(({ Name }) => Name === "team  'x'")?.ID ?? 0;
      await page.getByRole("button", { name: "Edit project: team 'x'" }).click();
      await page.getByRole("spinbutton", { name: "Servers" }).fill("3");
      await page.getByRole("dialog").getByLabel("Labels").fill("unit=north");
      await page.getByRole("button", { name: "Save" }).click();
      // The message of the creation offers to undo it, too.
      const saved = page.locator(".toast").filter({ hasText: "Saved" });
      await saved.getByRole("button", { name: "Undo" }).click();
      await page.getByText("team 'x': change undone").waitFor();
      assert.deepEqual((await brume.client.readProject({ path: { id } })).Labels, {});
      const { Quotas, IsBlocked } = await brume.client.readProject({ path: { id } });
      assert.deepEqual([Quotas.Servers, IsBlocked], [2, true]);
      // Each row has it at the same place, also the one of the project of the token, which cannot be deleted.
      const edits = await page.getByRole("button", { name: /^Edit project: / }).all();
      const places = await Promise.all(edits.map(async (edit) => (await edit.boundingBox())?.x));
      const rows = await Promise.all(
        (await page.getByRole("row").all()).map(async (row) => {
          const box = await row.boundingBox();
          return box === null ? 0 : box.x + box.width;
        }),
      );
      assert.ok(places.every((x) => x !== undefined && Math.max(...rows) - x < 60));
      await page.getByRole("button", { name: "Delete project team 'x'" }).click();
      await page.getByLabel("Type team 'x' to confirm").fill("team 'x'");
      await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByRole("row", { name: /team 'x'/ }).waitFor({ state: "detached" });
    });
  });

  test("a token is created for another project, with record types and a rate, and is listed there", async () => {
    const { brume } = fixture;
    const { ID } = await brume.client.createProject({ body: { Name: "partners" } });
    await story(brume.token, async (page) => {
      await page.goto("/console/access?tab=tokens");
      await page.getByRole("button", { name: "Create token" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Name", { exact: true }).fill("deploy");
      await dialog.getByLabel("Project").selectOption("partners");
      await dialog.getByText("Advanced").click();
      await dialog.getByRole("spinbutton").first().fill("100");
      await dialog.getByLabel("Labels").fill("team=web");
      await dialog.getByText("Rate limit", { exact: false }).first().waitFor();
      for (const field of await dialog.getByRole("spinbutton").all()) await field.fill("100");
      await dialog.getByRole("button", { name: "Create token" }).click();
      await dialog
        .locator("pre")
        .filter({ hasText: /^[0-9a-f]{64}$/ })
        .waitFor();
      await dialog.getByRole("button", { name: "Close" }).last().click();
      assert.equal(await page.getByRole("row", { name: /^deploy/ }).count(), 0);
      await page.getByLabel("Project").selectOption("partners");
      await page.getByRole("row", { name: /^deploy/ }).waitFor();
    });
    const [made] = await brume.client.listTokens({ query: { project: ID } });
    assert.deepEqual([made?.Name, made?.Labels, made?.RateLimit?.Requests], ["deploy", { team: "web" }, 100]);
  });

  test("a token for the certificates of a domain needs the domain, and is listed with its restriction", async () => {
    const { brume, scene } = fixture;
    await story(brume.token, async (page) => {
      await page.goto("/console/access?tab=tokens");
      await page.getByRole("button", { name: "Create token" }).click();
      const dialog = page.getByRole("dialog");
      const create = dialog.getByRole("button", { name: "Create token" });
      await dialog.getByLabel("Name", { exact: true }).fill("certbot");
      await dialog.getByLabel("Purpose").selectOption("Certificates of one domain");
      assert.equal(await create.isDisabled(), true);
      assert.equal(await dialog.getByLabel("Record types").inputValue(), "TXT");
      await dialog.getByLabel("Domain", { exact: true }).selectOption("example.com");
      await dialog.getByText("change records of example.com, names _acme-challenge*, types TXT").waitFor();
      await dialog.getByLabel("Record types").fill("txt, x");
      await dialog.getByText(/^Must be /).waitFor();
      await dialog.getByLabel("Record types").fill("txt");
      await create.click();
      await dialog.getByRole("button", { name: "Close" }).last().click();
      const text = "example.com, _acme-challenge*, TXT";
      if (isDesktop(page))
        await page
          .getByRole("row", { name: /^certbot/ })
          .getByText(text)
          .waitFor();
      else await page.getByRole("row", { name: /^certbot/ }).waitFor();
      // No event shows that a token is used: the list is read again when it is opened.
      await page.getByRole("link", { name: "SSH keys" }).click();
      await page.getByText("A key can be placed on a server", { exact: false }).waitFor();
      const again = page.waitForRequest((request) => new URL(request.url()).pathname === "/token");
      await page.getByRole("link", { name: "Tokens" }).click();
      await again;
    });
    const made = (await brume.client.listTokens()).find(({ Name }) => Name === "certbot");
    assert.deepEqual(
      [made?.DomainID, made?.RecordPattern, made?.RecordTypes],
      [scene.domain, "_acme-challenge*", ["TXT"]],
    );
  });

  test("signing out without a connection shows the error, and the user stays signed in until the session has ended", async () => {
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/servers");
      const signOut = async () => {
        await page.getByRole("button", { name: "Account" }).click();
        await page.getByRole("menuitem", { name: "Sign out" }).click();
      };
      const signIn = page.getByLabel("Token");
      await page.route("**/session", (route) => route.abort("internetdisconnected"));
      await signOut();
      await page.getByText("The service did not respond.").or(signIn).waitFor();
      assert.equal(await signIn.count(), 0);
      await page.unroute("**/session");
      await signOut();
      await signIn.waitFor();
      assert.equal((await page.context().cookies()).length, 0);
    });
    // A session that has ended elsewhere.
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/servers");
      await page.getByRole("heading", { name: "Servers" }).waitFor();
      await page.route("**/session", (route) => route.fulfill({ status: 401, body: "" }));
      await page.getByRole("button", { name: "Account" }).click();
      await page.getByRole("menuitem", { name: "Sign out" }).click();
      await page.getByLabel("Token").waitFor();
      assert.equal(await page.getByText("not an error object").count(), 0);
    });
  });

  test("disks of a server are copied for a backup and all copies are deleted, and the request of metrics is shown", async () => {
    const { brume, scene } = fixture;
    await story(brume.token, async (page) => {
      await page.goto("/console/host");
      await page.getByRole("button", { name: "Copy server disks" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Id of the server").fill("999999");
      await dialog.getByText("999999", { exact: false }).first().waitFor();
      await dialog.getByLabel("Id of the server").fill(String(scene.server));
      await dialog.getByRole("button", { name: "Copy server disks" }).click();
      await page.getByText("The server is simulated, so there is no folder").waitFor();
      await page.getByRole("button", { name: "Delete all disk copies" }).click();
      await dialog.getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByText("The disk copies are deleted").waitFor();
      const operations = (await brume.client.listAudit({ query: { limit: 2 } })).map(({ Operation }) => Operation);
      assert.deepEqual(operations, ["deleteDiskCopies", "createDiskCopy"]);
      await page.getByText("Metrics for Prometheus").click();
      await page.getByText("brume service metrics", { exact: true }).waitFor();
    });
  });

  test("an orphan appears on the page of the host and is adopted", async () => {
    const { client, store } = fixture.brume;
    const { ID } = await client.createServer({ body: { Name: "precious" } }, { wait: 60 });
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/host");
      await page.getByText("Every disk on the host belongs to a server or image.").waitFor();
      await store.write(async (tx) => {
        for (const link of await listLinksOfServer(tx, ID)) await deleteLink(tx, link.id);
        await tx.deleteFrom("task").where("subject", "=", "server").where("subject_id", "=", ID).execute();
        await deleteServer(tx, ID);
      });
      await page.getByRole("button", { name: "Adopt Server precious" }).click();
      await page.getByRole("dialog").getByText("This request").click();
      await page.getByRole("dialog").getByText("brume orphan adopt").waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Adopt", exact: true }).click();
      await page.getByText("precious is adopted").waitFor();
      await page.getByText("Every disk on the host belongs to a server or image.").waitFor();
      assert.equal((await client.readServer({ path: { id: ID } })).Name, "precious");
    });
  });

  test("settings are found by name and meaning, with value, unit and default", async () => {
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/host");
      await page.getByRole("link", { name: "Settings", exact: true }).click();
      await page.getByRole("searchbox").fill("low disk");
      const row = page.getByRole("listitem").filter({ hasText: "BRUME_DISK_LOW" });
      await row.getByText("1000 MB").waitFor();
      await page.getByText(/^1 of \d+$/).waitFor();
      await page.getByText("This request").click();
      await page.getByText("brume service settings", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Set here" }).click();
      await page.getByRole("button", { name: "Set here", pressed: true }).waitFor();
      await page.getByText("No setting matches the filter.").waitFor();
    });
  });

  test("a token without administration sees events, but neither audit nor webhooks nor orphans", async () => {
    const { Token } = await fixture.brume.client.createToken({ body: { Name: "viewer", Scopes: ["server:read"] } });
    await story(Token, async (page) => {
      await page.goto("/console/activity");
      await page.getByText("Every change in this project").waitFor();
      assert.equal(await page.getByRole("link", { name: "Audit log" }).count(), 0);
      await page.goto("/console/images");
      await page.getByText("Brume Tiny Linux").waitFor();
      assert.equal(await page.getByRole("button", { name: "Add image" }).count(), 0);
      // The server calls its image by the name of the API.
      await page.goto(`/console/servers/${fixture.scene.server}`);
      await page.getByText("Brume Tiny Linux").waitFor();
      assert.equal(await page.getByText("brume-tiny").count(), 0);
      await page.goto("/console/host");
      await page.getByText("Name server").waitFor();
      assert.equal(await page.getByText("Orphans", { exact: true }).count(), 0);
      await page.goto("/console/activity/audit");
      await page.getByText("Sign in with a token that has the scope.").waitFor();
    });
  });

  test("a token of one domain sees neither the host nor its capacity", async () => {
    const { brume, scene } = fixture;
    const { Token } = await brume.client.createToken({
      body: { Name: "zone", Scopes: ["dns:write"], DomainID: scene.domain },
    });
    await story(Token, async (page) => {
      await page.goto("/console/");
      await page.getByText("Domains", { exact: true }).last().waitFor();
      await page.getByText("Latest changes").waitFor();
      assert.equal(await page.getByText("Memory allocated").count(), 0);
      assert.equal(await page.getByRole("link", { name: "Host", exact: true }).count(), 0);
      await page.goto("/console/host");
      await page.getByText("Your token may not see this page").waitFor();
    });
  });

  test("axe finds nothing on any page, wide in light and narrow in dark", async () => {
    const pages = [
      ["/console/images", "web-golden"],
      ["/console/images?create=1", "64 hexadecimal digits"],
      ["/console/activity/audit", "Add webhook"],
      ["/console/activity/webhooks", "domain.*"],
      [`/console/activity/webhooks/${fixture.scene.webhook}`, "domain.created"],
      ["/console/access?tab=projects", "Current"],
      ["/console/host", "Name server"],
      ["/console/host?tab=settings", "disk_low"],
    ] as const;
    await checkPages(fixture, pages, (path) => !/create=1|projects|webhooks$/.test(path));
  });
});
