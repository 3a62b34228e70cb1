/** Stories of the console about firewall rules: their order, review, confirmation, matches and undo. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { PublicNetwork } from "@brume/api/network.ts";
import type { Page } from "playwright-core";
import { requestOf, ruleSetOf, setText } from "../../console/src/data/firewall.ts";
import { describeConsole, isDesktop, widths } from "../support/consolefixture.ts";
import { fillNetworks, type NetworkScene } from "../support/networkscene.ts";
import { waitUntil } from "../support/waituntil.ts";

/** The first rule of the list that a phone or tablet shows instead of the table. */
const firstListed = (page: Page) => page.getByRole("list", { name: "Rules" }).getByRole("listitem").first();

/** Waits until the first rule has the name. */
const firstIs = (page: Page, name: string) =>
  isDesktop(page)
    ? waitUntil(
        `the first rule ${name}`,
        () => page.getByLabel("Name 1").inputValue(),
        (shown) => shown === name,
      )
    : firstListed(page).getByText(name, { exact: true }).waitFor();

/** Only there rules are a table. */
const desktop = { width: widths[2] };

describeConsole("the console of firewalls", {}, (fixture) => {
  const { story } = fixture;
  let scene: NetworkScene;
  before(async () => {
    scene = await fillNetworks(fixture.brume.client);
  });
  const stored = () => fixture.brume.client.readPublicNetwork({ path: { id: scene.network } });

  test("rules are ordered with keys and mouse, tested, reviewed, and kept by a confirmation", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto(`/console/networks/${scene.network}?tab=firewall`);
        await page.getByRole("button", { name: "Add rule" }).click();
        await page.getByRole("dialog").getByRole("button", { name: "Add rule" }).click();
        await page.getByLabel("Port 1").fill("99999");
        await page.getByText('Rule 1, Port: must have ports between 1 and 65535, not "99999".').waitFor();
        assert.equal(await page.getByLabel("Port 1").getAttribute("aria-invalid"), "true");
        assert.equal(await page.getByRole("button", { name: "Review" }).isDisabled(), true);
        await page.getByLabel("Port 1").fill("8080");
        await page.getByLabel("Name 1").fill('a"proxy');
        await page.getByRole("alert").waitFor({ state: "detached" });
        await page.getByRole("button", { name: "Move rule 1" }).focus();
        await page.keyboard.press("ArrowDown");
        await page.getByText('Rule a"proxy is now at position 2 of 6').waitFor();
        await page.keyboard.press("ArrowDown");
        await page.getByText('Rule a"proxy is now at position 3 of 6').waitFor();
        await page.getByRole("button", { name: "Move rule 6" }).hover();
        await page.mouse.down();
        // Not `hover`, which begins again when the rule below the pointer has changed.
        const target = await page.getByRole("button", { name: "Move rule 5" }).boundingBox();
        assert.ok(target !== null);
        await page.mouse.move(target.x + target.width / 2, target.y + target.height / 2);
        await page.getByRole("button", { name: "Move rule 5 Everything out" }).waitFor();
        await page.mouse.up();
        await page.getByText("Rule Everything out is now at position 5 of 6").waitFor();
        await page.getByText("Fill in both addresses to see which rule decides.").waitFor();
        // The rule is not applied yet; the test packet takes it into account.
        await page.getByLabel("From address").fill("198.51.100.7");
        await page.getByLabel("To port").fill("8080");
        await page.getByText("Rule 3 decides.").waitFor();
        await page.getByLabel("To port").press("x");
        assert.equal(await page.getByLabel("To port").inputValue(), "8080");
        await page.locator(".row.decides").getByLabel("Name 3").waitFor();
        await page.getByLabel("To port").fill("81");
        await page.getByText("No rule matches: the default action decides.").waitFor();
        await page.getByLabel("From address").fill("10.64.0.9");
        await page.getByText("Both addresses are in the network: such traffic does not cross its router").waitFor();
        assert.equal(await page.locator(".decides").count(), 0);
        await page.getByRole("button", { name: "Review" }).click();
        await page.getByText('+ 3. Allow TCP from any to internal port 8080 (a"proxy)').waitFor();
        await page.getByRole("button", { name: "Apply" }).click();
        await page.getByRole("timer").waitFor();
        assert.notEqual((await stored()).Firewall.ConfirmBy, null);
        await page.goto("/console/dns");
        await page.getByRole("timer").getByText("Roll-back in 0:").waitFor();
        await page.getByRole("button", { name: "Commands: Keep the rules" }).click();
        await page.getByText(/brume firewall (set|confirm) \d+/).waitFor();
        await page.keyboard.press("Escape");
        await page.getByRole("button", { name: "Keep the rules", exact: true }).click();
        await page.getByText("The rules are confirmed").waitFor();
        await page.getByRole("timer").waitFor({ state: "detached" });
      },
      desktop,
    );
    const { Rules, ConfirmBy } = (await stored()).Firewall;
    assert.deepEqual(
      [ConfirmBy, ...Rules.map(({ Name }) => Name.slice(0, 8))],
      [null, "Web", "SSH from", 'a"proxy', "No datab", "Everythi", "Metrics "],
    );
  });

  test("rules that are not confirmed in time are rolled back with a message, and can be applied again", async () => {
    const { client, token } = fixture.brume;
    const before = (await stored()).Firewall;
    await story(token, async (page) => {
      await page.goto(`/console/networks/${scene.network}?tab=firewall`);
      await firstIs(page, before.Rules[0]?.Name ?? "");
      const Rules = before.Rules.slice(1).map(({ Name, Action, Protocol, Source, Destination, DestinationPort }) => ({
        Name,
        Action,
        Protocol,
        Source,
        Destination,
        DestinationPort,
      }));
      await client.configureFirewall({ path: { id: scene.network }, body: { Rules, ConfirmWithin: 10 } });
      await page.getByRole("timer").waitFor();
      await page.getByText("were rolled back").waitFor();
      await page.getByText("1 pending change").waitFor();
      assert.equal((await stored()).Firewall.Rules.length, before.Rules.length);
      assert.equal(await page.getByRole("list", { name: "Deleted rules" }).getByRole("listitem").count(), 1);
      assert.equal(await page.locator(".row:is(.changed, .new), li:is(.changed, .new)").count(), 0);
      await page.goto("/console/activity");
      await page.getByText("Public network firewall rolled back").waitFor();
    });
  });

  test("rules that wait for a confirmation are rolled back at once by a button, also after a reload", async () => {
    const { client, token } = fixture.brume;
    const path = { id: scene.network };
    const { Firewall: before, Name } = await stored();
    await client.configureFirewall({ path, body: { Rules: [], ConfirmWithin: 3600 } });
    await client.configureFirewall({ path, body: { Enabled: false, Rules: [], ConfirmWithin: 3600 } });
    await story(token, async (page) => {
      await page.goto("/console/dns");
      await page.getByRole("button", { name: "Roll back now" }).click();
      await page.getByText(`The previous firewall rules of ${Name} are in effect again`).waitFor();
      await page.getByRole("timer").waitFor({ state: "detached" });
    });
    const { Firewall: after } = await stored();
    assert.equal(after.ConfirmBy, null);
    assert.equal(setText(ruleSetOf(after)), setText(ruleSetOf(before)));
    // Another client confirms the rules in the same moment.
    await client.configureFirewall({ path, body: { Rules: [], ConfirmWithin: 3600 } });
    await story(token, async (page) => {
      await page.goto("/console/dns");
      await page.route(`**/publicnetwork/${scene.network}`, async (route) => {
        await client.configureFirewall({ path, body: { Confirm: true } });
        await route.continue();
      });
      await page.getByRole("button", { name: "Roll back now" }).click();
      await page.getByText("It has changed again since then", { exact: false }).waitFor();
      assert.equal(await page.getByText("are in effect again", { exact: false }).count(), 0);
    });
    assert.deepEqual((await stored()).Firewall.Rules, []);
    await client.configureFirewall({ path, body: requestOf(ruleSetOf(before)) });
  });

  test("on a phone rules are a list: one is added in a dialog, moved, tested, reviewed, applied and undone", async () => {
    const names = async () => (await stored()).Firewall.Rules.map(({ Name }) => Name);
    const before = await names();
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto(`/console/networks/${scene.network}?tab=firewall`);
        await firstIs(page, before[0] ?? "");
        await page.getByRole("button", { name: "Add rule" }).tap();
        const dialog = page.getByRole("dialog");
        const port = dialog.getByLabel("Port", { exact: true });
        const invalid = page.locator("[aria-invalid=true]");
        await port.fill("99999");
        await port.and(invalid).waitFor();
        await port.fill("8443");
        await dialog.getByLabel("Name", { exact: true }).fill("phone");
        await invalid.waitFor({ state: "detached" });
        await dialog.getByRole("button", { name: "Add rule" }).tap();
        await firstListed(page).getByText("TCP from any to internal port 8443").waitFor();
        await page.getByRole("button", { name: "Move rule 1 phone" }).press("ArrowDown");
        await firstIs(page, before[0] ?? "");
        await page.getByLabel("From address").fill("198.51.100.7");
        await page.getByLabel("To port").fill("8443");
        await page.getByText("Rule 2 decides.").waitFor();
        await page.getByRole("button", { name: "Review" }).tap();
        await page.getByLabel("Confirmation").selectOption("none");
        await page.getByRole("button", { name: "Apply" }).tap();
        await page.getByText("The rules are applied", { exact: true }).waitFor();
        assert.deepEqual(await names(), [before[0], "phone", ...before.slice(1)]);
        await page.getByRole("button", { name: "Undo" }).tap();
        await page.getByText(/^The previous firewall rules of .* are in effect again$/).waitFor();
      },
      { width: widths[0] },
    );
    assert.deepEqual(await names(), before);
  });

  test("a new network gets common rules by buttons, and its servers are not cut off without a warning", async () => {
    const { client, token } = fixture.brume;
    const { Id: id, CIDR } = await client.createPublicNetwork({ body: { Name: "fresh" } }, { wait: 60 });
    const path = { id };
    const warning = "The servers of this network could no longer open connections to the outside";
    await story(token, async (page) => {
      await page.goto(`/console/networks/${id}?tab=firewall`);
      await page.getByText("The firewall is off: every packet passes, also from outside.", { exact: false }).waitFor();
      const preset = (name: string) =>
        page.getByRole("group", { name: "Common rules" }).getByRole("button", { name, exact: true });
      await preset("Allow SSH").click();
      await preset("Allow web (80, 443)").click();
      await preset("Allow web (80, 443)").click();
      await page.getByText("1 pending change").waitFor();
      await preset("Allow web (80, 443)").click();
      // A rule that is not completed is not added.
      await page.getByRole("button", { name: "Add rule" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
      assert.equal(await page.getByText(warning, { exact: false }).count(), 0);
      await page.getByLabel("Firewall is on").check();
      await page.getByText("The firewall is still off. It is turned on when you apply the changes.").waitFor();
      await page.getByText("3 pending changes").waitFor();
      await page.getByRole("button", { name: "Review" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText(warning, { exact: false }).waitFor();
      await dialog.getByText("+ Firewall on, default action Deny").waitFor();
      await dialog.getByRole("button", { name: "Cancel" }).click();
      await page.getByText(warning, { exact: false }).waitFor();
      await preset("Allow outgoing connections").click();
      await page.getByText(warning, { exact: false }).waitFor({ state: "detached" });
      assert.equal(await preset("Allow outgoing connections").getAttribute("aria-pressed"), "true");
      await page.getByRole("button", { name: "Review" }).click();
      await dialog.getByText("+ 3. Allow everything from internal to external (Outgoing connections)").waitFor();
      await dialog.getByLabel("Confirmation").selectOption("none");
      await dialog.getByRole("button", { name: "Apply" }).click();
      await page.getByText("The rules are applied", { exact: true }).waitFor();
      await page.getByText("Common rules").waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Delete rule 3" }).click();
      await page.getByText(warning, { exact: false }).waitFor();
      // The message about the applied rules does not cover the bar of the next change.
      const message = await page.locator(".toast").last().boundingBox();
      const bar = await page.getByRole("toolbar").boundingBox();
      assert.ok(
        message !== null && bar !== null && message.y + message.height <= bar.y,
        JSON.stringify([message, bar]),
      );
      await page.getByRole("list", { name: "Deleted rules" }).getByText("Outgoing connections").waitFor();
      await page.getByRole("button", { name: "Keep rule 3 Outgoing connections" }).click();
      await page.getByRole("toolbar").waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Delete rule 3" }).click();
      await page.getByRole("button", { name: "Allow outgoing connections" }).click();
      await page.getByText(warning, { exact: false }).waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Edit rule 3" }).click();
      assert.equal(await dialog.getByLabel("Name", { exact: true }).inputValue(), "Outgoing connections");
      await dialog.getByRole("button", { name: "Done" }).click();
      // The rule is where it was, so nothing is left to apply.
      await page.getByRole("toolbar").waitFor({ state: "detached" });
    });
    const inside = CIDR.replace(/(\d+)\/.*/, (_, last) => String(Number(last) + 2));
    const verdict = async (Source: string, Destination: string, DestinationPort: number) =>
      (await client.checkFirewall({ path, body: { Protocol: "Tcp", Source, Destination, DestinationPort } })).Verdict;
    assert.equal((await client.readPublicNetwork({ path })).Firewall.Enabled, true);
    for (const port of [22, 80, 443]) assert.equal(await verdict("203.0.113.7", inside, port), "Allow", String(port));
    assert.equal(await verdict("203.0.113.7", inside, 5432), "Deny");
    assert.equal(await verdict(inside, "203.0.113.7", 5432), "Allow");
    await client.deletePublicNetwork({ path }, { wait: 60 });
  });

  test("a dragged rule moves alone, also after the wheel has scrolled its row out of view", async () => {
    const { client, token } = fixture.brume;
    const { Id: id } = await client.createPublicNetwork({ body: { Name: "long" } }, { wait: 60 });
    const names = Array.from({ length: 200 }, (_, index) => `rule-${index + 1}`);
    await client.configureFirewall({
      path: { id },
      body: { Rules: names.map((Name) => ({ Name, Action: "Allow", Protocol: "Tcp" })) },
    });
    let position = 0;
    await story(
      token,
      async (page) => {
        await page.goto(`/console/networks/${id}?tab=firewall`);
        // Another program may get the release of the button.
        await page.evaluate('addEventListener("pointerup", (event) => event.stopImmediatePropagation(), true)');
        const handle = (number: number) => page.getByRole("button", { name: new RegExp(`^Move rule ${number} `) });
        const announced = page.getByText(/^Rule .* is now at position/);
        const from = await handle(3).boundingBox();
        const to = await handle(4).boundingBox();
        assert.ok(from !== null && to !== null);
        const [x, y] = [from.x + from.width / 2, to.y + to.height / 2];
        await page.mouse.move(x, from.y + from.height / 2);
        await page.mouse.down();
        await page.mouse.move(x, y);
        await page.getByRole("button", { name: "Move rule 4 rule-3" }).waitFor();
        await page.mouse.wheel(0, 2000);
        await handle(4).waitFor({ state: "detached" });
        const moves = [y + 1, y + to.height * 2];
        let shown = await announced.textContent();
        for (const next of moves) {
          const before = shown;
          await page.mouse.move(x, next);
          shown = await waitUntil(
            "the next position of a rule",
            () => announced.textContent(),
            (text) => text !== before,
          );
        }
        position = Number(/^Rule rule-3 is now at position (\d+) of 200$/.exec(shown ?? "")?.[1]);
        await page.mouse.up();
        await page.mouse.move(x, y);
        await page.getByRole("button", { name: "Review" }).click();
        await page.getByLabel("Confirmation").selectOption("none");
        await page.getByRole("button", { name: "Apply" }).click();
        await page.getByText("The rules are applied", { exact: true }).waitFor();
      },
      desktop,
    );
    const { Rules } = (await client.readPublicNetwork({ path: { id } })).Firewall;
    const order = Rules.map(({ Name }) => Name);
    assert.deepEqual(
      order.filter((name) => name !== "rule-3"),
      names.filter((name) => name !== "rule-3"),
    );
    assert.ok(position > 20, order.join());
    assert.equal(order.indexOf("rule-3"), position - 1);
    await client.deletePublicNetwork({ path: { id } }, { wait: 60 });
  });

  test("edits do not overwrite rules that another client has changed meanwhile", async () => {
    const { brume } = fixture;
    const path = { id: scene.network };
    await story(brume.token, async (page) => {
      await page.goto(`/console/networks/${scene.network}?tab=firewall`);
      await page.getByLabel("Default action").selectOption("Allow");
      await page.getByText("1 pending change").first().waitFor();
      const { Rules } = (await stored()).Firewall;
      await brume.client.configureFirewall({ path, body: { Rules: Rules.slice(1) } });
      await page.getByText("The rules have changed since you began", { exact: false }).waitFor();
      assert.equal(await page.getByRole("button", { name: "Review" }).isDisabled(), true);
      await page.getByRole("button", { name: "Discard" }).click();
      await firstIs(page, "SSH from the office");
      await brume.client.configureFirewall({ path, body: { Rules } });
      await firstIs(page, "Web");
    });
  });

  test("rules show how often they match lately, and applied rules are undone unless they have changed again", async () => {
    const { client, token } = fixture.brume;
    const path = { id: scene.network };
    const texts = async () => (await stored()).Firewall.Rules.map(({ Name }) => Name);
    const { Rules: first } = (await stored()).Firewall;
    const before = first.map(({ Name }) => Name);
    await story(
      token,
      async (page) => {
        // The simulated router counts no packets.
        let packets = 1000;
        await page.route(`**/publicnetwork/${scene.network}`, async (route) => {
          const response = await route.fetch();
          const network = (await response.json()) as PublicNetwork;
          packets += 500;
          const Rules = network.Firewall.Rules.map((rule, at) => ({ ...rule, Packets: at === 0 ? packets : 7 }));
          await route.fulfill({ response, json: { ...network, Firewall: { ...network.Firewall, Rules } } });
        });
        await page.goto(`/console/networks/${scene.network}?tab=firewall`);
        await page.getByLabel("Name 1").waitFor();
        const rates = page.getByRole("img", { name: /^Matches: [\d.,]+ per second/ });
        for (let read = 0; read < 3; read++) {
          // After an event the counters are read again, perhaps before the response to the change.
          const again = page.waitForResponse(`**/publicnetwork/${scene.network}`);
          await client.updatePublicNetwork({ path, body: { Labels: { read: String(read) } } });
          await again;
        }
        await rates.first().waitFor();
        assert.equal(await rates.count(), 1);
        await page
          .getByRole("row")
          .nth(1)
          .getByRole("img", { name: /^Matches/ })
          .waitFor();
        // A read may still be under way: its changed response would come too late for a route that is gone.
        await page.unrouteAll({ behavior: "wait" });

        const apply = async () => {
          await page.getByRole("button", { name: "Delete rule 1" }).click();
          await page.getByRole("button", { name: "Review" }).click();
          await page.getByLabel("Confirmation").selectOption("none");
          await page.getByRole("button", { name: "Apply" }).click();
          await page.getByText("The rules are applied", { exact: true }).last().waitFor();
        };
        await apply();
        assert.deepEqual(await texts(), before.slice(1));
        await page.getByRole("button", { name: "Undo" }).click();
        await page.getByText(/^The previous firewall rules of .* are in effect again$/).waitFor();
        assert.deepEqual(await texts(), before);
        await firstIs(page, before[0] ?? "");
        await apply();
        const { Rules } = (await stored()).Firewall;
        await client.configureFirewall({ path, body: { Rules: Rules.slice(1) } });
        await page.getByRole("button", { name: "Undo" }).click();
        await page.getByText("It has changed again since then", { exact: false }).waitFor();
        assert.deepEqual(await texts(), before.slice(2));
      },
      desktop,
    );
    await client.configureFirewall({ path, body: { Rules: first } });
  });
});
