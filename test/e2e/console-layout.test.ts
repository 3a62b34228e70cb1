/** Where the console places things: the main action of a page, and what a phone shows of tables, choices and tools. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Locator } from "playwright-core";
import { describeConsole, followLink } from "../support/consolefixture.ts";
import { consolePages } from "../support/consolepages.ts";
import { fillNetworks, type NetworkScene } from "../support/networkscene.ts";

describeConsole("the layout of the console", {}, (fixture) => {
  const { story } = fixture;
  let networks: NetworkScene;
  before(async () => {
    networks = await fillNetworks(fixture.brume.client);
  });
  const phone = { width: 390 };

  const boxOf = async (element: Locator) => {
    const box = await element.boundingBox();
    assert.ok(box, String(element));
    return box;
  };
  const rowsOf = async (elements: Locator): Promise<number> =>
    new Set((await Promise.all((await elements.all()).map(boxOf))).map(({ y }) => Math.round(y))).size;

  test("a request beside a form is open until it is folded", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        const command = page.getByText("brume server create web-1", { exact: false });
        await page.goto("/console/servers/create");
        await command.waitFor();
        await page.getByText("This request").click();
        await command.waitFor({ state: "hidden" });
        await page.reload();
        await page.getByText("This request").waitFor();
        assert.equal(await command.isVisible(), false);
      },
      { width: 1440 },
    );
  });

  test("the main action of each page is at the end of its head", async () => {
    const { scene, brume } = fixture;
    const pages = consolePages({
      server: scene.server,
      network: networks.network,
      privateNetwork: networks.privateNetwork,
      domain: scene.domain,
      webhook: scene.webhook,
    });
    const elsewhere: string[] = [];
    const heads = new Map<string, string>();
    await story(
      brume.token,
      async (page) => {
        await page.goto("/console/");
        for (const [name, address] of Object.entries(pages)) {
          if (address.includes("create=")) continue;
          await followLink(page, address);
          await page.locator("main h1").first().waitFor();
          await page.locator("main .skeleton").first().waitFor({ state: "detached" });
          // Forms, empty states and starting points have their own button beside it.
          const stray = page.locator(
            "main .button.primary:not(.page-head *, form *, .empty *, .start *, .over *, aside *)",
          );
          elsewhere.push(...(await stray.allTextContents()).map((text) => `${name}: ${text}`));
          const last = page.locator(".page-head > .line .button").last();
          if ((await page.locator(".page-head .button.primary").count()) > 0) {
            assert.match((await last.getAttribute("class")) ?? "", /primary/, name);
            heads.set(name, (await last.textContent()) ?? "");
          }
        }
      },
      { width: 1440 },
    );
    assert.deepEqual(elsewhere, []);
    assert.deepEqual(
      ["servers", "records", "network-firewall", "network-vpn", "tokens", "keys", "projects", "webhooks"].map((name) =>
        heads.get(name),
      ),
      [
        "Create server",
        "Add record",
        "Add rule",
        "Create tunnel",
        "Create token",
        "Add SSH key",
        "Create project",
        "Add webhook",
      ],
    );
  });

  test("each first step of an empty project opens its form", async () => {
    const { client } = fixture.brume;
    const project = await client.createProject({ body: { Name: "empty" } });
    const { Token } = await client.createToken({
      body: { Name: "empty", Scopes: ["server:write", "dns:write", "network:write"], ProjectID: project.ID },
    });
    await story(Token, async (page) => {
      for (const [step, title] of [
        ["Add SSH key", "Add SSH key"],
        ["Add domain", "Add domain"],
        ["Create network", "Create public network"],
      ] as const) {
        await page.goto("/console/");
        await page.getByRole("region", { name: "Start here" }).getByRole("link", { name: step }).click();
        await page.getByRole("dialog", { name: title }).waitFor();
        await page.keyboard.press("Escape");
        await page.getByRole("dialog").waitFor({ state: "detached" });
      }
    });
  });

  test("an object is deleted in the last section of its page or settings", async () => {
    const { scene, brume } = fixture;
    const places = [
      `/console/servers/${scene.server}?tab=settings`,
      `/console/networks/${networks.network}?tab=settings`,
      `/console/networks/private/${networks.privateNetwork}?tab=settings`,
      `/console/dns/${scene.domain}?tab=settings`,
      `/console/activity/webhooks/${scene.webhook}`,
    ];
    await story(brume.token, async (page) => {
      for (const place of places) {
        await page.goto(place);
        await page.locator("main .panel").last().getByRole("button", { name: "Delete", exact: true }).waitFor();
        assert.equal(await page.getByRole("button", { name: "Delete", exact: true }).count(), 1, place);
      }
      await page.goto(`/console/servers/${scene.server}`);
      await page.getByRole("button", { name: "More: web-1" }).click();
      await page.getByRole("menuitem", { name: "Copy" }).waitFor();
      assert.equal(await page.getByRole("menuitem", { name: "Delete" }).count(), 0);
    });
  });

  test("a phone shows what a figure on the second line of a row is", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto("/console/access");
        const row = page.getByRole("row", { name: /^certificates/ });
        await row.getByText("Restriction").waitFor();
        await row.getByText("example.com, _acme-challenge*").waitFor();
        assert.equal(
          await page
            .getByRole("row", { name: /^monitoring/ })
            .getByText("Restriction")
            .count(),
          0,
        );
        await page.goto(`/console/dns/${fixture.scene.domain}`);
        await page.getByRole("row", { name: /AAAA/ }).getByText("TTL").waitFor();
        await page.goto("/console/activity");
        const event = page.getByRole("row").nth(1);
        const [what, time] = [event.getByRole("cell").first(), event.locator("time")];
        assert.match((await what.textContent()) ?? "", /^[A-Z][A-Za-z ]+ [a-z]+$/);
        assert.ok((await boxOf(what)).y < (await boxOf(time)).y);
      },
      phone,
    );
  });

  test("on a phone each field of a new record has a line, and the name and type are above", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto(`/console/dns/${fixture.scene.domain}`);
        await page.getByRole("button", { name: "Add record" }).click();
        const fields = await Promise.all(
          ["Name:  A", "TTL:  A", "Value:  A"].map((name) => boxOf(page.getByLabel(name, { exact: true }))),
        );
        for (const [index, { y, width, height }] of fields.entries()) {
          assert.ok(width > 180 && height >= 32, `field ${index}: ${width} × ${height}`);
          const above = fields[index - 1];
          assert.ok(above === undefined || y >= above.y + above.height, `field ${index} is below the one before`);
        }
        const next = await boxOf(page.getByRole("row").nth(2));
        const last = fields.at(-1);
        assert.ok(last && next.y >= last.y + last.height);
      },
      phone,
    );
  });

  test("on a phone choices fill the width in even rows, and the tools of a console take two rows", async () => {
    const { server } = fixture.scene;
    await story(
      fixture.brume.token,
      async (page) => {
        for (const [address, rows] of [
          [`/console/servers/${server}?tab=metrics`, 1],
          [`/console/servers/${server}?tab=log`, 1],
          ["/console/images?create=1", 2],
        ] as const) {
          await page.goto(address);
          const group = page.locator(".segments").first();
          await group.waitFor();
          const buttons = group.getByRole("button");
          assert.equal(await rowsOf(buttons), rows, address);
          const [{ x, width }, last] = await Promise.all([boxOf(group), boxOf(buttons.last())]);
          assert.ok(Math.abs(x + width - last.x - last.width) < 4, `${address} fills the width`);
        }
        await page.goto(`/console/servers/${server}?tab=console`);
        const state = await boxOf(page.getByText("Not connected"));
        await page.getByRole("button", { name: "Type password and Enter" }).waitFor();
        const pane = await boxOf(page.locator(".resizable"));
        assert.ok(pane.y - state.y < 90, `${pane.y - state.y} pixels`);
      },
      phone,
    );
  });

  test("on a phone the buttons of rules that wait for a confirmation share a row", async () => {
    const path = { id: networks.network };
    await fixture.brume.client.configureFirewall({ path, body: { Rules: [], ConfirmWithin: 3600 } });
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto("/console/dns");
        const notice = page.locator(".notice.stays");
        await notice.getByRole("button", { name: "Roll back now" }).waitFor();
        assert.equal(await rowsOf(notice.getByRole("button")), 1);
        await notice.getByRole("button", { name: "Keep the rules", exact: true }).click();
        await notice.waitFor({ state: "detached" });
      },
      phone,
    );
  });

  test("rules that wait for a confirmation are kept within an open dialog, which covers the page", async () => {
    const path = { id: networks.network };
    const { configureFirewall } = fixture.brume.client;
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/dns");
      const dialog = page.getByRole("dialog");
      const keep = dialog.getByRole("button", { name: "Keep the rules", exact: true });
      await page.getByRole("button", { name: "Add domain" }).click();
      await dialog.getByLabel("Domain name").fill("unsaved.example");
      await configureFirewall({ path, body: { Rules: [], DefaultRuleAction: "Allow", ConfirmWithin: 3600 } });
      await keep.waitFor();
      // A dialog that the notice itself opens shows it too.
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Commands: Keep the rules" }).click();
      await keep.waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Add domain" }).click();
      await dialog.getByLabel("Domain name").fill("unsaved.example");
      await keep.click();
      await keep.waitFor({ state: "detached" });
      assert.equal(await dialog.getByLabel("Domain name").inputValue(), "unsaved.example");
    });
    assert.equal((await fixture.brume.client.readPublicNetwork({ path })).Firewall.ConfirmBy, null);
  });

  test("the error of a record is inside of the table, and the buttons of pending changes share a row", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto(`/console/dns/${fixture.scene.domain}`);
        await page.getByLabel("Value: @ A", { exact: true }).fill("not an address");
        const note = page.locator(".field-note:visible");
        await note.waitFor();
        const [{ x, width }, table] = await Promise.all([boxOf(note), boxOf(page.getByRole("table"))]);
        assert.ok(x >= table.x && x + width <= table.x + table.width);
        assert.equal(await rowsOf(page.locator(".bulk button")), 1);
      },
      { width: 768 },
    );
  });

  test("on a phone the error of a record does not cover its name, and the tabs of a domain stay where they are", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto(`/console/dns/${fixture.scene.domain}`);
        await page.getByLabel("Value: @ A", { exact: true }).fill("not an address");
        const note = page.locator(".field-note:visible");
        await note.waitFor();
        const [below, name] = await Promise.all([boxOf(note), boxOf(page.getByLabel("Name: @ A", { exact: true }))]);
        assert.ok(below.y >= name.y + name.height, JSON.stringify([below, name]));
        await page.getByRole("button", { name: "Discard" }).click();
        const tops = new Set<number>();
        for (const tab of ["Records", "History", "Delegation"]) {
          await page.getByRole("link", { name: tab }).click();
          await page.locator(`[aria-current=page]:text-is("${tab}")`).waitFor();
          tops.add((await boxOf(page.locator(".tabs"))).y);
        }
        assert.equal(tops.size, 1, JSON.stringify([...tops]));
      },
      phone,
    );
  });

  test("both dates of the audit log are in one row, and the result of a claim is whole", async () => {
    await fixture.brume.client.createClaim({ body: { Name: "brand.example" } });
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto("/console/activity/audit");
        await page.getByLabel("From").waitFor();
        assert.equal(await rowsOf(page.locator(".filters input[type=date]")), 1);
        await page.goto("/console/dns?tab=claims");
        await page.getByText("No resolver is configured", { exact: false }).waitFor();
        const isCut = `[...document.querySelectorAll(".two-lines")].some(({ scrollWidth, clientWidth, scrollHeight, clientHeight }) => scrollWidth > clientWidth || scrollHeight > clientHeight)`;
        assert.equal(await page.locator(".two-lines").count(), 1);
        assert.equal(await page.evaluate(isCut), false);
      },
      { width: 768 },
    );
  });

  test("the last error of a delivery is shown whole, beside the time of the next attempt", async () => {
    const { scene, brume } = fixture;
    await story(
      brume.token,
      async (page) => {
        await page.goto(`/console/activity/webhooks/${scene.webhook}`);
        const error = page.getByRole("row").getByText("Could not reach the endpoint: it refused the connection.");
        await error.first().waitFor();
        const isCut = `[...document.querySelectorAll(".two-lines")].some(({ scrollHeight, clientHeight }) => scrollHeight > clientHeight)`;
        assert.equal(await page.evaluate(isCut), false);
        await page.getByRole("columnheader", { name: "Next attempt" }).waitFor();
      },
      { width: 1440 },
    );
  });

  test("in Russian, operations are whole on a tablet, the state of a domain is beside its name, and algorithms are translated", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto("/console/activity/audit");
        await page.locator(".row > .cell").filter({ hasText: "Изменить межсетевой экран" }).first().waitFor();
        const isCut = `[...document.querySelectorAll(".row > .cell")].filter(({ textContent }) => textContent.startsWith("Изменить")).flatMap((cell) => [cell, ...cell.children]).some(({ scrollWidth, clientWidth, scrollHeight, clientHeight }) => scrollWidth > clientWidth || scrollHeight > clientHeight)`;
        assert.equal(await page.evaluate(isCut), false);
        await page.goto(`/console/dns/${fixture.scene.domain}`);
        const state = page.getByText("Делегирование не проверено", { exact: true });
        await state.waitFor();
        assert.ok((await boxOf(page.getByRole("heading", { level: 1 }))).height < 40);
        await page.goto(`/console/networks/${networks.network}?tab=vpn`);
        await page.getByText("Имитация", { exact: true }).first().waitFor();
      },
      { width: 768, locale: "ru-RU" },
    );
  });

  test("in Russian, the bar of selected servers has two rows on a phone", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto("/console/servers");
        await page.getByRole("checkbox", { name: "web-1" }).check();
        assert.equal(await rowsOf(page.getByRole("toolbar").getByRole("button")), 2);
      },
      { width: 390, locale: "ru-RU" },
    );
  });

  test("a wide list of servers with labels shows a long name whole", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto("/console/servers");
        const name = page.getByRole("link", { name: "build-runner-with-a-rather-long-name" });
        await name.waitFor();
        await page.getByRole("columnheader", { name: "Labels" }).waitFor();
        const isCut = `[...document.querySelectorAll("a.whole")].some((link) => link.scrollWidth > link.clientWidth)`;
        assert.equal(await page.evaluate(isCut), false);
      },
      { width: 1440 },
    );
  });
});
