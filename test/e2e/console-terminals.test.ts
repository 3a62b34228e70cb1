/** Stories of the console about the serial console and the screen of a server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { WebSocketRoute } from "playwright-core";
import { describeConsole, widths } from "../support/consolefixture.ts";
import { waitUntil } from "../support/waituntil.ts";

/** Bytes of the messages of a client of RFB (RFC 6143, section 7.5) by their type: a number, or from the message. */
const lengths: Readonly<Record<number, number | ((rest: Buffer) => number)>> = {
  0: 20,
  2: (rest) => 4 + 4 * rest.readUInt16BE(2),
  3: 10,
  4: 8,
  5: 6,
};

const shiftKey = 0xffe1;

/**
 * Continues as an RFB server with an empty screen: the simulated one only sends its version. Returns the text that the keys of the client type. As in
 * QEMU, a letter without Shift is a small one.
 */
function serveScreen(socket: WebSocketRoute): () => string {
  socket.connectToServer();
  const init = Buffer.alloc(24);
  init.writeUInt16BE(64, 0);
  init.writeUInt16BE(48, 2);
  // 32 bits per pixel, depth 24, true colour, 8 bits for each colour.
  init.set([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0], 4);
  const replies = [Buffer.from([1, 1]), Buffer.from([0, 0, 0, 0]), init];
  let rest = Buffer.alloc(0);
  let keys = "";
  let isShifted = false;
  const press = (key: number, isDown: boolean): void => {
    const character = String.fromCodePoint(key);
    if (key === shiftKey) isShifted = isDown;
    else if (isDown) keys += isShifted ? character : character.toLowerCase();
  };
  socket.onMessage((message) => {
    const reply = replies.shift();
    if (reply !== undefined) return socket.send(reply);
    rest = Buffer.concat([rest, Buffer.from(message)]);
    for (;;) {
      const known = lengths[rest[0] ?? -1];
      if (known === undefined) return undefined;
      const length = typeof known === "number" ? known : known(rest);
      if (rest.length < length) return undefined;
      if (rest[0] === 4) press(rest.readUInt32BE(4), rest[1] === 1);
      rest = rest.subarray(length);
    }
  });
  return () => keys;
}

describeConsole("terminals in the console", {}, (fixture) => {
  const { story } = fixture;

  test("the screen shows user and password, and types the password and Enter as keys, and reports a clipboard that cannot be read", async () => {
    const { client, token } = fixture.brume;
    const { AdminUserName, AdminPassword } = await client.readServer({ path: { id: fixture.scene.server } });
    let keysOf = (): string => "";
    await story(token, async (page) => {
      await page.routeWebSocket("**", (socket) => {
        keysOf = serveScreen(socket);
      });
      await page.goto(`/console/servers/${fixture.scene.server}?tab=screen`);
      await page.getByText(AdminUserName, { exact: true }).waitFor();
      // noVNC looks for the members of a socket only in its own class, not above it, where the routed one has them.
      await page.evaluate(`Object.defineProperties(
        WebSocket.prototype, Object.getOwnPropertyDescriptors(Object.getPrototypeOf(WebSocket.prototype)))`);
      const type = page.getByRole("button", { name: "Type password and Enter" });
      assert.equal(await type.isDisabled(), true);
      await page.getByRole("button", { name: "Connect" }).click();
      await page.getByText("Connected", { exact: true }).waitFor();
      await type.click();
      // The key Return of X11.
      await waitUntil("the keys", keysOf, (keys) => keys === `${AdminPassword}\uff0d`);
      assert.notEqual(AdminPassword, AdminPassword.toLowerCase());
      await page.evaluate("navigator.clipboard.readText = () => Promise.reject(new Error('denied'))");
      await page.getByRole("button", { name: "Paste" }).click();
      await page.getByText("Allow it for this page in the browser.").waitFor();
    });
  });

  test("a terminal that was replaced, as by another language, leaves no listener and sends nothing any more", async () => {
    const sent: string[] = [];
    await story(
      fixture.brume.token,
      async (page) => {
        await page.routeWebSocket("**", (socket) => {
          const server = socket.connectToServer();
          socket.onMessage((message) => {
            sent.push(String(message));
            server.send(message);
          });
        });
        await page.goto(`/console/servers/${fixture.scene.server}?tab=console`);
        await page.getByRole("button", { name: "Connect" }).click();
        await page.getByText("Connected", { exact: true }).waitFor();
        await page.getByRole("button", { name: "Account" }).click();
        await page.getByRole("menuitem", { name: "Русский" }).click();
        const input = page.getByRole("textbox", { name: "Последовательная консоль" });
        await input.focus();
        // As an emoji panel or dictation does.
        await page.keyboard.insertText("once");
        await page.keyboard.press("Enter");
        await waitUntil(
          "the text",
          () => sent.join(""),
          (text) => text.endsWith("\r"),
        );
        assert.equal(sent.join(""), "once\r");
        const session = await page.context().newCDPSession(page);
        const { result } = await session.send("Runtime.evaluate", {
          expression: 'document.querySelector(".terminal")',
        });
        const { listeners } = await session.send("DOMDebugger.getEventListeners", { objectId: result.objectId ?? "" });
        assert.deepEqual(
          listeners.map(({ type }) => type),
          [],
        );
      },
      { width: widths[2] },
    );
  });

  test("the serial console shows the log and what the guest prints, and sends what one types and the password", async () => {
    const { client, token } = fixture.brume;
    const { AdminUserName, AdminPassword } = await client.readServer({ path: { id: fixture.scene.server } });
    await story(token, async (page) => {
      const shown = (text: string) => page.locator(".xterm-accessibility").getByText(text).first().waitFor();
      await page.route("**/server/*/log?*", (route) =>
        route.fulfill({
          contentType: "text/plain",
          body: "Booting\n\u001b[6n\u001b[31mweb-1 ready\u001b[0m\nweb-1 login: ",
        }),
      );
      await page.goto(`/console/servers/${fixture.scene.server}?tab=console`);
      await page.getByText(AdminUserName, { exact: true }).waitFor();
      const type = page.getByRole("button", { name: "Type password and Enter" });
      assert.equal(await type.isDisabled(), true);
      const before = await page.locator(".resizable").boundingBox();
      await page.getByRole("button", { name: "Connect" }).click();
      await page.getByText("Connected", { exact: true }).waitFor();
      assert.equal((await page.locator(".resizable").boundingBox())?.y, before?.y);
      // As an emoji panel or dictation does.
      await page.keyboard.insertText("dear ");
      await page.keyboard.type("hello guest");
      await page.keyboard.press("Enter");
      await shown("dear hello guest");
      await shown("web-1 ready");
      await type.click();
      await shown(AdminPassword);
      await page.getByRole("button", { name: "Show", exact: true }).click();
      await page.getByText(AdminPassword, { exact: true }).first().waitFor();
    });
  });

  test("the console pane gets the height that one sets, and keeps it", async () => {
    await story(fixture.brume.token, async (page) => {
      await page.goto(`/console/servers/${fixture.scene.server}?tab=console`);
      const edge = page.getByRole("separator", { name: "Height of the console" });
      const before = Number(await edge.getAttribute("aria-valuenow"));
      await edge.focus();
      await page.keyboard.press("ArrowUp");
      await page.keyboard.press("ArrowUp");
      const box = (await edge.boundingBox()) ?? assert.fail("no edge");
      await page.mouse.move(box.x + box.width / 2, box.y + 4);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width / 2, box.y - 36, { steps: 3 });
      await page.mouse.up();
      const height = before - 64 - 40;
      assert.equal(Number(await edge.getAttribute("aria-valuenow")), height);
      await page.reload();
      await page.locator(".terminal").first().waitFor();
      assert.equal(Math.round((await page.locator(".terminal").first().boundingBox())?.height ?? 0), height);
    });
  });
});
