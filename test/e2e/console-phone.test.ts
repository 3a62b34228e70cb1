/** What a phone shows while a user works: no error, message or bar covers what the user needs, and what belongs together is close. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Locator } from "playwright-core";
import { untilDrawn } from "../support/browser.ts";
import { describeConsole } from "../support/consolefixture.ts";

describeConsole("the console on a phone", {}, (fixture) => {
  const { story } = fixture;
  const phone = { width: 390 };

  const boxOf = async (element: Locator) => {
    const box = await element.boundingBox();
    assert.ok(box, String(element));
    return { ...box, bottom: box.y + box.height };
  };

  test("an error of a new record is below its field, whole, and covers no other field", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto(`/console/dns/${fixture.scene.domain}`);
        await page.getByRole("button", { name: "Add record" }).click();
        const row = page.locator(".row.new");
        const fields = row.locator("input, select");
        const note = row.locator(".field-note:visible");
        const values = [
          ["Name", "bad name..x"],
          ["TTL", "99999999999"],
          ["Value", "not an address"],
        ] as const;
        for (const [part, value] of values) {
          const field = row.getByLabel(`${part}:`);
          const before = await field.inputValue();
          await row.getByLabel("Value:").fill("192.0.2.1");
          await field.fill(value);
          await note.waitFor();
          const box = await boxOf(note);
          for (const other of await fields.all()) {
            const { y, bottom } = await boxOf(other);
            assert.ok(box.y >= bottom || box.bottom <= y, `${part}: ${JSON.stringify([box, y, bottom])}`);
          }
          assert.ok(box.y >= (await boxOf(field)).bottom, part);
          assert.ok(box.bottom <= (await boxOf(row)).bottom, part);
          await field.fill(before);
          await note.waitFor({ state: "detached" });
        }
      },
      phone,
    );
  });

  test("in Russian, the error of a rule does not begin with the name of its field in the API", async () => {
    const { Id } = await fixture.brume.client.createPublicNetwork({ body: { Name: "filtered" } }, { wait: 60 });
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto(`/console/networks/${Id}?tab=firewall`);
        await page.getByRole("button", { name: "Добавить правило" }).click();
        await page.getByRole("dialog").getByLabel("Источник", { exact: true }).fill("!!");
        await page
          .locator(".field-error")
          .getByText(/^Нужен адрес.*!!/)
          .waitFor();
        await page.keyboard.press("Escape");
      },
      { ...phone, locale: "ru-RU" },
    );
  });

  test("an error of a stored record covers no field of this record, and no bar covers it", async () => {
    const { client, token } = fixture.brume;
    const lines = Array.from({ length: 70 }, (_, index) => `host-${index} 3600 IN A 192.0.2.${index}`);
    const long = await client.createDomain({ body: { Name: "long.example", ZoneFile: `${lines.join("\n")}\n` } });
    const values = [
      ["Name", "bad name..x"],
      ["TTL", "99999999999"],
      ["Value", "not an address"],
    ] as const;
    await story(
      token,
      async (page) => {
        for (const [domain, places] of [
          [long.ID, [0, 4]],
          [fixture.scene.domain, [0, 5, 7]],
        ] as const) {
          await page.goto(`/console/dns/${domain}`);
          for (const place of places)
            for (const [part, value] of values) {
              const row = page.locator(".body > .row").nth(place);
              const field = row.getByLabel(`${part}:`);
              await field.fill(value);
              await page.locator(".bulk").getByText("1 error", { exact: false }).waitFor();
              const note = field.locator("+ .field-note");
              const [box, bar] = await Promise.all([boxOf(note), boxOf(page.locator(".bulk"))]);
              const what = `${domain} ${place} ${part} ${JSON.stringify([box, bar])}`;
              for (const other of await row.locator("input, button").all()) {
                const { y, bottom } = await boxOf(other);
                assert.ok(box.y >= bottom - 1 || box.bottom <= y + 1, `${what} ${y} ${bottom}`);
              }
              assert.ok(box.bottom <= bar.y, what);
              await page.getByRole("button", { name: "Discard" }).click();
            }
        }
      },
      phone,
    );
    await client.deleteDomain({ path: { id: long.ID } });
  });

  test("the longest name of a server makes no dialog wider than the screen", async () => {
    const { client, token } = fixture.brume;
    const Name = "W".repeat(64);
    await story(
      token,
      async (page) => {
        const dialog = page.getByRole("dialog");
        const wider = "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('dialog'))";
        await page.goto("/console/servers");
        await page.getByRole("link", { name: "web-1" }).waitFor();
        const { ID } = await client.createServer({ body: { Name } }, { wait: 60 });
        await page.getByRole("button", { name: "Actions", exact: true }).click();
        await dialog.getByRole("link", { name: Name }).waitFor();
        assert.equal(await page.evaluate(wider), 0, "actions");
        await page.goto(`/console/servers/${ID}?tab=settings`);
        await page.getByRole("button", { name: "Delete", exact: true }).click();
        await dialog.getByText("to confirm", { exact: false }).waitFor();
        assert.equal(await page.evaluate(wider), 0, "delete");
        await client.deleteServer({ path: { id: ID } }, { wait: 60 });
      },
      phone,
    );
  });

  test("an invalid field of a form stays red while it has the focus", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto("/console/images?create=1");
        const dialog = page.getByRole("dialog");
        const field = dialog.getByLabel("SHA-256");
        for (const each of [dialog.getByLabel("Name", { exact: true }), dialog.getByLabel("Address"), field])
          await each.fill("x");
        await dialog.locator(".field-error").getByText("hexadecimal", { exact: false }).waitFor();
        const colours = await page.evaluate<string[]>(
          "(({ outlineColor, borderTopColor }) => [outlineColor, borderTopColor])(getComputedStyle(document.activeElement))",
        );
        await field.and(page.locator(":focus")).waitFor();
        assert.equal(colours[0], colours[1]);
      },
      phone,
    );
  });

  test("figures that could not be read leave no empty box", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        await page.route(/\/(server|dns|dcLocation)\b[^/]*$/, (route) =>
          route.request().resourceType() === "document" ? route.continue() : route.abort("connectionrefused"),
        );
        await page.goto("/console/");
        await page.getByRole("alert").first().waitFor();
        await page.getByText("Latest changes").waitFor();
        assert.equal(await page.locator(".figures").isVisible(), false);
      },
      phone,
    );
  });

  test("the bar of pending changes does not cover the field that one types into, and a deleted record is struck through", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto(`/console/dns/${fixture.scene.domain}`);
        const last = page.getByRole("table").locator("input").last();
        await last.fill("not a name!! x");
        await page.locator(".bulk").getByText("1 error", { exact: false }).waitFor();
        assert.ok((await boxOf(last)).bottom <= (await boxOf(page.locator(".bulk"))).y);
        await page.getByRole("button", { name: "Discard" }).click();
        await page.getByRole("button", { name: "Delete record mail A" }).click();
        const line =
          "getComputedStyle(document.querySelector('.row.removed .below .cell:last-child input')).textDecorationLine";
        assert.equal(await page.evaluate(line), "line-through");
      },
      phone,
    );
  });

  test("a message is above the bar of selected servers", async () => {
    const { client, token } = fixture.brume;
    await story(
      token,
      async (page) => {
        await page.goto("/console/servers");
        await page.getByRole("checkbox", { name: "Select all" }).check();
        await client.startAction({ path: { id: fixture.scene.server }, body: { Type: "PowerReboot" } }, { wait: 60 });
        const message = page.getByText("web-1: Reset", { exact: true });
        await message.waitFor();
        // On the low screen the bar is at its end, on the high one below the table.
        for (const height of [844, 400]) {
          await page.setViewportSize({ ...phone, height });
          await untilDrawn(page);
          const [toast, bar] = await Promise.all([boxOf(page.locator(".toasts")), boxOf(page.getByRole("toolbar"))]);
          assert.ok(toast.bottom <= bar.y, JSON.stringify([height, toast, bar]));
        }
      },
      phone,
    );
  });

  test("a tab that is cut at an edge fades there", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        const fades = `["--fade-in", "--fade-out"].map((name) => getComputedStyle(document.querySelector(".tabs")).getPropertyValue(name))`;
        for (const [tab, expected] of [
          ["summary", ["0px", "32px"]],
          ["log", ["32px", "32px"]],
          ["settings", ["32px", "0px"]],
        ] as const) {
          await page.goto(`/console/servers/${fixture.scene.server}?tab=${tab}`);
          await page.locator(".tabs [aria-current=page]").waitFor();
          // The selected tab comes into view after the page was drawn.
          await page.waitForFunction(`JSON.stringify(${fades}) === '${JSON.stringify(expected)}'`);
        }
      },
      phone,
    );
  });

  test("the steps of a claim show each name next to its value", async () => {
    const claim = await fixture.brume.client.createClaim({ body: { Name: "brand.example" } });
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto(`/console/dns?tab=claims&claim=${claim.ID}`);
        await page.getByRole("dialog").locator("ol .facts").waitFor();
        const distances = `(() => {
          const textOf = (kind, index) => {
            const range = document.createRange();
            range.selectNodeContents(document.querySelectorAll("dialog ol " + kind)[index]);
            return range.getBoundingClientRect();
          };
          const value = textOf("dd", 1);
          return [value.top - textOf("dt", 1).bottom, textOf("dt", 2).top - value.bottom];
        })()`;
        const [above = 0, below = 0] = await page.evaluate<number[]>(distances);
        assert.ok(above < below, JSON.stringify([above, below]));
      },
      phone,
    );
  });
});
