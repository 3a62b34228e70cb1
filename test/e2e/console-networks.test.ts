/** Stories of the console about networks: lists, map and tunnels. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServerMetrics } from "@brume/api/monitor.ts";
import type { Locator, Page } from "playwright-core";
import { checkAccess, checkPages, describeConsole, isDesktop, widths } from "../support/consolefixture.ts";
import { fillNetworks, type NetworkScene } from "../support/networkscene.ts";
import { tunnelUp } from "../support/tunnelspec.ts";
import { until } from "../support/waituntil.ts";

/** Presses Tab until the element has the focus. */
async function tabTo(page: Page, element: Locator): Promise<void> {
  for (let presses = 0; presses < 60; presses++) {
    if ((await element.and(page.locator(":focus")).count()) > 0) return;
    await page.keyboard.press("Tab");
  }
  assert.fail("the element is not reachable with the keyboard");
}

describeConsole("the console of networks", {}, (fixture) => {
  const { story } = fixture;
  let scene: NetworkScene;
  before(async () => {
    scene = await fillNetworks(fixture.brume.client);
  });
  const stored = () => fixture.brume.client.readPublicNetwork({ path: { id: scene.network } });

  test("events of networks and tunnels lead to their pages", async () => {
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/activity?kind=tunnel");
      await page.getByRole("link", { name: "office" }).first().click();
      await page.getByRole("button", { name: "Create tunnel" }).waitFor();
      await page.goto("/console/activity?kind=network");
      await page.getByRole("link", { name: "storage" }).first().click();
      await page.getByRole("heading", { name: "storage", level: 1 }).waitFor();
    });
  });

  test("a network with rules gets the common rules that it does not have", async () => {
    const { client, token } = fixture.brume;
    const Rules = [
      { Action: "Allow", Name: "shell", Protocol: "Tcp", Destination: "internal", DestinationPort: "22" } as const,
      { Action: "Deny", Name: "rest" } as const,
    ];
    const { Id: id } = await client.createPublicNetwork({ body: { Name: "older" } }, { wait: 60 });
    await client.configureFirewall({ path: { id }, body: { Enabled: true, Rules } }, { wait: 60 });
    await story(token, async (page) => {
      await page.goto(`/console/networks/${id}?tab=firewall`);
      const web = page.getByRole("button", { name: "Allow web (80, 443)" });
      await page.getByText("Common rules").waitFor();
      assert.equal(await web.isVisible(), false);
      await page.getByText("Common rules").click();
      await web.click();
      await page.getByRole("group").getByRole("button", { name: "Allow outgoing connections" }).click();
      assert.equal(await page.getByRole("button", { name: "Allow SSH" }).count(), 0);
      await page.getByRole("button", { name: "Review" }).click();
      // Where each decides: not behind the rule that denies the rest.
      for (const line of [
        "+ 1. Allow TCP from any to internal port",
        "+ 3. Allow everything from internal to external",
      ])
        await page.getByRole("dialog").getByText(line, { exact: false }).waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
      await page.getByRole("button", { name: "Discard" }).click();
    });
  });

  test("a rule is a sentence in Russian too", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        await page.goto(`/console/networks/${scene.network}?tab=firewall`);
        for (const sentence of [
          /^TCP: любой адрес → внутренние адреса, порт\s80,443$/,
          /^TCP: .*\/24 → внутренние адреса/,
        ])
          await page.getByText(sentence).waitFor();
      },
      { width: widths[0], locale: "ru-RU" },
    );
  });

  test("a network is created with the keyboard only, gets a server, and is deleted after its name was typed", async () => {
    await story(fixture.brume.token, async (page) => {
      await page.goto("/console/");
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      // Requests stay open, as the user has left them.
      await page.evaluate("localStorage.setItem('brume-request', 'open')");
      await page.keyboard.press("Control+k");
      await page.keyboard.type("create netw");
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").getByRole("heading", { name: "Create public network" }).waitFor();
      await page.keyboard.type("dmz<");
      await page.getByText("no < and no >", { exact: false }).first().waitFor();
      await page.keyboard.press("Backspace");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Tab");
      await page.keyboard.type("99999");
      await page.getByText("not 99999", { exact: false }).first().waitFor();
      await page.keyboard.press("Control+a");
      await page.keyboard.type("250");
      await page.getByText("brume public-network create dmz --prefix 29 --bandwidth 250").waitFor();
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "dmz" }).waitFor();
      await page.getByRole("link", { name: "Firewall", exact: true }).click();
      // Without a server the router would be the only address to name, which rules do not filter.
      await page.getByText(/^For example the address of a server in 10\.64\./).waitFor();
      await page.goBack();
      await page.getByRole("button", { name: "Link server" }).click();
      await page.getByRole("dialog").getByLabel("Server", { exact: true }).selectOption("web-1");
      await page.getByRole("dialog").getByLabel("Address").fill("10.0.0.999");
      await page.getByRole("dialog").getByText('not "10.0.0.999"', { exact: false }).first().waitFor();
      await page.getByRole("dialog").getByLabel("Address").fill("");
      await page.getByRole("dialog").getByRole("button", { name: "Link server" }).click();
      await page.getByRole("row", { name: isDesktop(page) ? /^web-1 Running 10\.64/ : /^web-1 .*10\.64/ }).waitFor();
      // The end of the action takes the place of its start.
      await page.getByText("web-1: Link to network completed").waitFor();
      assert.equal(await page.getByText("web-1 is being linked").count(), 0);
      // The page of the server leads back.
      await page.getByRole("link", { name: "web-1", exact: true }).click();
      await page.getByText("Shared network", { exact: true }).waitFor();
      await page.getByRole("link", { name: "dmz", exact: true }).click();
      await page.getByRole("heading", { name: "dmz" }).waitFor();
      await page.getByRole("link", { name: "Settings" }).click();
      assert.equal(await page.getByRole("button", { name: "Delete" }).isDisabled(), true);
      await page.getByRole("main").getByRole("link", { name: "Overview" }).click();
      await page.getByRole("button", { name: "Unlink web-1" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Unlink", exact: true }).click();
      await page.getByText("No server is linked", { exact: false }).waitFor();
      await page.getByRole("link", { name: "Create server" }).click();
      assert.equal(await page.getByRole("radio", { name: /^dmz Public/ }).isChecked(), true);
      await page.goBack();
      await page.getByRole("link", { name: "Settings" }).click();
      await page.getByLabel("Labels").fill("stage=test");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("dmz is saved").waitFor();
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByLabel("Type dmz to confirm").fill("dmz");
      await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByRole("link", { name: "shop" }).waitFor();
      await page.getByRole("link", { name: "dmz" }).waitFor({ state: "detached" });
    });
  });

  test("bandwidth and labels of a network are restored, and a new network is removed again", async () => {
    const { client, token } = fixture.brume;
    await story(token, async (page) => {
      await page.goto("/console/networks?create=private");
      await page.getByRole("dialog").getByLabel("Name", { exact: true }).fill("passing");
      await page.getByRole("dialog").getByRole("button", { name: "Create private network" }).click();
      await page.getByRole("heading", { name: "passing", level: 1 }).waitFor();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.waitForURL("**/console/networks?tab=private");
      await page.getByText("passing is being deleted").waitFor();
      assert.deepEqual(await client.listNetworks({ query: { name: "passing" } }), []);
      const { Bandwidth, Labels } = await stored();
      await page.goto(`/console/networks/${scene.network}?tab=settings`);
      await page.getByLabel("Bandwidth").fill("77");
      await page.getByLabel("Labels").fill("stage=test");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("button", { name: "Undo" }).waitFor();
      assert.deepEqual([(await stored()).Bandwidth, (await stored()).Labels], [77, { stage: "test" }]);
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText(/: change undone$/).waitFor();
      assert.deepEqual([(await stored()).Bandwidth, (await stored()).Labels], [Bandwidth, Labels]);
    });
  });

  test("a tunnel shows its private key once, its state and the reason of it", async () => {
    const { brume } = fixture;
    await story(brume.token, async (page) => {
      await page.goto(`/console/networks/${scene.network}?tab=vpn`);
      await page.getByRole("button", { name: "Create tunnel" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Name", { exact: true }).fill("laptop");
      const behind = dialog.getByLabel("Networks behind the peer");
      assert.equal(await behind.inputValue(), "10.9.0.2/32");
      await dialog.getByRole("radio", { name: /^IPsec/ }).check();
      assert.equal(await behind.inputValue(), "");
      await dialog.getByText("Advanced").click();
      await dialog.getByLabel("Encryption").selectOption("AES-256");
      await dialog.getByLabel("Hash").selectOption("SHA-512");
      await dialog.getByLabel("Diffie-Hellman group").selectOption("MODP-2048 (group 14)");
      await dialog.getByRole("radio", { name: /^WireGuard/ }).check();
      assert.equal(await behind.inputValue(), "10.9.0.2/32");
      await behind.fill("10.20.0.0/16");
      await dialog
        .getByText(/^Must /)
        .first()
        .waitFor();
      await dialog.getByLabel("Networks behind the peer").fill("10.29.0.2/32");
      await dialog.getByText("This request").click();
      await dialog.getByText(/^brume vpn set \d+ --tunnels '\[\{"Id":.*"PeerNetwork":"10\.29\.0\.2\/32"/).waitFor();
      await dialog.getByRole("button", { name: "Create tunnel" }).click();
      await dialog.getByText("<private key>", { exact: false }).waitFor();
      // One sentence about the missing key, also when the state is known.
      const panel = page.locator("section.panel").filter({ hasText: "No key yet" });
      await panel.getByText("Last handshake").waitFor();
      assert.equal(await page.getByText("has no key yet", { exact: false }).count(), 0);
      assert.equal(await dialog.getByText("previous key", { exact: false }).count(), 0);
      await dialog.getByRole("button", { name: "Create keys and show" }).click();
      await dialog.getByRole("img", { name: "Configuration as QR code" }).waitFor();
      assert.match((await dialog.locator("pre").first().textContent()) ?? "", /PrivateKey = [A-Za-z0-9+/]{43}=/);
      await dialog.getByRole("button", { name: "Close" }).last().click();
      await page.getByRole("button", { name: "Configuration" }).last().click();
      await dialog.getByText("A device with the previous key is disconnected", { exact: false }).waitFor();
      await dialog.getByRole("button", { name: "Close" }).last().click();
      await page.getByRole("button", { name: "Delete laptop" }).click();
      await page.getByLabel("Type laptop to confirm").fill("laptop");
      await dialog.getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByText("laptop is deleted").waitFor();
      const [office, ...others] = (await stored()).Vpn.Tunnels;
      assert.deepEqual([office?.SharedKey, others.length], ["not-a-real-key-0001", 2]);
      await page.getByRole("button", { name: "Edit office" }).click();
      await dialog.getByLabel("Address of the peer").fill("203.0.113.51");
      await dialog.getByRole("button", { name: "Save" }).click();
      await page.getByText("203.0.113.51").waitFor();
      assert.equal((await stored()).Vpn.Tunnels[0]?.SharedKey, "not-a-real-key-0001");
      // The router forgets a report when it gets other tunnels.
      while (!JSON.stringify(brume.router.images()).includes("203.0.113.51")) await sleep(5);
      brume.router.report(scene.network, {
        ...tunnelUp(office?.Id ?? 0),
        state: "down",
        reason: { fault: "peer_unreachable", detail: "No reply from 203.0.113.51." },
      });
      const phone = others.find(({ Name }) => Name === "phone");
      brume.router.report(scene.network, { ...tunnelUp(phone?.Id ?? 0), state: "connecting", lastSeen: null });
      await page.reload();
      await page.getByText("Waiting for the peer").waitFor();
      await page.getByText("No reply from 203.0.113.51.").waitFor();
      await page.getByText("Down", { exact: true }).waitFor();
      await page.goto("/console/");
      await page.getByText("No reply from 203.0.113.51.").waitFor();
      await page.getByRole("link", { name: "Tunnel office of network shop: Down" }).click();
      await page.waitForURL(`**/networks/${scene.network}?tab=vpn`);
      await page.getByText("Waiting for the peer").waitFor();
      brume.router.report(scene.network, tunnelUp(phone?.Id ?? 0));
    });
  });

  test("the overview names as well only what the token may read", async () => {
    const { client } = fixture.brume;
    const { Token } = await client.createToken({ body: { Name: "names", Scopes: ["dns:read"] } });
    await story(Token, async (page) => {
      await page.goto("/console/");
      await page.getByText("No missing delegation is known. All engines respond.", { exact: true }).waitFor();
    });
  });

  test("a token that may only read networks sees no servers and changes nothing", async () => {
    const { brume } = fixture;
    const { Token } = await brume.client.createToken({ body: { Name: "reader", Scopes: ["network:read"] } });
    await story(Token, async (page) => {
      await page.goto("/console/networks");
      await page.getByRole("link", { name: "shop" }).waitFor();
      assert.equal(await page.getByRole("button", { name: "Create network" }).count(), 0);
      await page.goto(`/console/networks/${scene.network}`);
      await page
        .getByRole("row", { name: /^#\d+ 10\.64/ })
        .first()
        .waitFor();
      assert.equal(await page.getByRole("link", { name: "Settings" }).count(), 0);
      await page.getByRole("link", { name: "Firewall" }).click();
      await page.getByText("SSH from the office").waitFor();
      assert.equal(await page.getByRole("table").getByRole("textbox").count(), 0);
      assert.equal(await page.getByRole("button", { name: /Add rule|Move|Delete|Edit/ }).count(), 0);
      await page.getByRole("link", { name: "VPN" }).click();
      await page.getByRole("button", { name: "Configuration" }).first().click();
      await page.getByRole("dialog").getByText("<SharedKey>", { exact: false }).waitFor();
      assert.equal(await page.getByRole("button", { name: /^(Create keys|Show with)/ }).count(), 0);
    });
    const { Token: other } = await brume.client.createToken({ body: { Name: "dns", Scopes: ["dns:read"] } });
    await story(other, async (page) => {
      await page.goto("/console/networks");
      await page.getByText("Sign in with a token that has the scope.").waitFor();
    });
  });

  test("the map shows traffic on its edges, leads to pages with the keyboard, and is also a list", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        // Simulated servers have no traffic.
        await page.route("**/server/*/metrics*", async (route) => {
          const response = await route.fetch();
          const metrics = (await response.json()) as ServerMetrics;
          const NetIn = metrics.Times.map(() => 250_000);
          await route.fulfill({ response, json: { ...metrics, Series: { ...metrics.Series, NetIn } } });
        });
        await page.goto("/console/networks?tab=map");
        await page.getByText("↓ 2 Mbit/s").first().waitFor();
        await page.locator(".graph path.flow-2").nth(1).waitFor({ state: "attached" });
        const server = page.getByRole("link", {
          name: /^front-1 10\.64\S+ Running, 2 Mbit\/s in, 0 bit\/s out/,
        });
        await tabTo(page, server);
        await page.locator("path.active").first().waitFor({ state: "attached" });
        await page.keyboard.press("Enter");
        await page.getByRole("heading", { name: "front-1" }).waitFor();
        await page.goBack();
        await page.getByText("Traffic: the wider, the more").waitFor();
        await page.getByText("Off or waiting", { exact: true }).waitFor();
        await page.getByText("Legend", { exact: true }).click();
        await page.getByText("Traffic: the wider, the more").waitFor({ state: "hidden" });
        // The event of the change comes after it.
        await until(
          "the choice is kept",
          async () => (await page.evaluate("localStorage['brume-map-legend']")) === "folded",
        );
        await page.reload();
        await page.getByText("↓ 2 Mbit/s").first().waitFor();
        assert.equal(await page.getByText("Traffic: the wider, the more").isVisible(), false);
        await page.getByRole("button", { name: "List", exact: true }).click();
        const listed = page.getByRole("listitem").filter({ hasText: "storage" });
        await listed.getByRole("link", { name: /store-1/ }).waitFor();
      },
      { width: widths[2] },
    );
  });

  test("rules that are rolled back while the user is on another page are pending changes again", async () => {
    await story(
      fixture.brume.token,
      async (page) => {
        // The shortest time that the dialog offers is too long for a test.
        await page.route("**/firewall", async (route) => {
          const body = route.request().postDataJSON() as object;
          const postData = JSON.stringify({ ...body, ...("ConfirmWithin" in body && { ConfirmWithin: 10 }) });
          await route.continue({ postData });
        });
        await page.goto(`/console/networks/${scene.network}?tab=firewall`);
        await page.getByLabel("Name 1").fill("Late");
        await page.getByRole("button", { name: "Review" }).click();
        await page.getByRole("dialog").getByRole("button", { name: "Apply", exact: true }).click();
        await page.getByRole("timer").waitFor();
        await page.getByRole("link", { name: "VPN" }).click();
        await page.getByText("Yours are pending changes again.").waitFor();
        await page.getByRole("main").getByRole("link", { name: "Firewall" }).click();
        await page.getByText("1 pending change").waitFor();
        assert.equal(await page.getByLabel("Name 1").inputValue(), "Late");
        // The message ends when rules are applied again.
        await page.getByRole("button", { name: "Review" }).click();
        await page.getByRole("dialog").getByRole("button", { name: "Apply", exact: true }).click();
        await page.getByText("Yours are pending changes again.").waitFor({ state: "detached" });
        await page.getByRole("button", { name: "Roll back now" }).click();
        await page.getByRole("timer").waitFor({ state: "detached" });
      },
      { width: widths[2] },
    );
  });

  test("hostile names are text", async () => {
    const Name = "'\"&amp;{{7*7}}${alert(1)}";
    const { brume } = fixture;
    const { Id } = await brume.client.createPublicNetwork({ body: { Name } }, { wait: 60 });
    const rule = { Action: "Deny", Name } as const;
    await brume.client.configureFirewall({ path: { id: Id }, body: { Rules: [rule], ConfirmWithin: 600 } });
    await story(brume.token, async (page) => {
      await page.goto(`/console/networks/${Id}?tab=firewall`);
      await page.getByRole("heading", { name: Name }).waitFor();
      if (isDesktop(page)) assert.equal(await page.getByLabel("Name 1").inputValue(), Name);
      else await page.getByRole("main").getByRole("listitem").getByText(Name).waitFor();
      await page.getByText(`The firewall rules of ${Name} wait`, { exact: false }).waitFor();
      await checkAccess(page);
      await page.goto("/console/networks?tab=map");
      await page.getByRole("link", { name: Name }).waitFor();
    });
    await brume.client.deletePublicNetwork({ path: { id: Id } }, { wait: 60 });
  });

  test("axe finds nothing, wide in light and narrow in dark, and nothing is too wide on a tablet", async () => {
    const page = `/console/networks/${scene.network}`;
    const pages = [
      ["/console/networks", "shop"],
      ["/console/networks?create=public", "The service selects"],
      ["/console/networks?tab=private", "storage"],
      ["/console/networks?tab=map", "store-1"],
      [page, "External address"],
      [`${page}?tab=firewall`, "Default action"],
      [`${page}?tab=vpn`, "Algorithms"],
      [`${page}?tab=settings`, "Delete shop"],
      [`/console/networks/private/${scene.privateNetwork}`, "172.16.5.0/24"],
    ] as const;
    await checkPages(fixture, pages, (path) => !/create=|settings|private/.test(path));
    await story(
      fixture.brume.token,
      async (tablet) => {
        for (const tab of ["firewall", "vpn"]) {
          await tablet.goto(`${page}?tab=${tab}`);
          const shown = tablet.getByText(tab === "vpn" ? "Algorithms" : "Default action");
          await shown.first().waitFor();
          await checkAccess(tablet);
        }
      },
      { width: 768 },
    );
  });
});
