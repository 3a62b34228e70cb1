/** The console for people who see no colours, have set their own, or do not bear motion. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Page } from "playwright-core";
import { describeConsole } from "../support/consolefixture.ts";
import { consolePages } from "../support/consolepages.ts";
import { fillExtremes } from "../support/extremescene.ts";

/** What each state on the page consists of, in the page. */
const statesOfPage = `[...document.querySelectorAll(".state")].map((state) => ({
  tone: state.className.replace("state ", ""),
  text: state.textContent.trim(),
  shape: state.querySelector("path")?.getAttribute("d") ?? "",
}))`;

describeConsole("the console without colour and motion", {}, (fixture) => {
  const { story } = fixture;
  let pages: ReturnType<typeof consolePages>;
  before(async () => {
    pages = consolePages(await fillExtremes(fixture.brume));
  });

  const open = async (page: Page, address: string): Promise<void> => {
    await page.goto(address);
    await page.locator("main h1").first().waitFor();
    await page.locator(".skeleton").first().waitFor({ state: "detached" });
  };

  test("each state has a word and a shape of its own, in every place where states appear", async () => {
    await story(fixture.brume.token, async (page) => {
      const shapes = new Map<string, Set<string>>();
      for (const name of [
        "servers",
        "server",
        "networks",
        "network-vpn",
        "domains",
        "images",
        "audit",
        "host",
      ] as const) {
        await open(page, pages[name]);
        // The rows of a list are drawn after its height is measured.
        await page.locator("main .state").first().waitFor();
        const states = await page.evaluate<{ tone: string; text: string; shape: string }[]>(statesOfPage);
        assert.notEqual(states.length, 0, name);
        for (const { tone, text, shape } of states) {
          assert.notEqual(text, "", `a state without a word on ${name}`);
          assert.notEqual(shape, "", `${text} has no shape on ${name}`);
          shapes.set(shape, (shapes.get(shape) ?? new Set()).add(tone));
        }
      }
      // A shape that means good here and bad there would leave the difference to the colour.
      const both = [...shapes].filter(([, tones]) => tones.has("good") && (tones.has("bad") || tones.has("warn")));
      assert.deepEqual(both, []);
      const tones = new Set([...shapes.values()].flatMap((each) => [...each]));
      for (const tone of ["good", "bad", "quiet"]) assert.ok(tones.has(tone), `no ${tone} state was shown`);
    });
  });

  /** Returns what one sees of an element when the system sets the colours. */
  const lookOf = (page: Page, selector: string) =>
    page.evaluate<{ outlineStyle: string; borderBottomColor: string; backgroundColor: string }>(
      `(({ outlineStyle, borderBottomColor, backgroundColor }) => ({ outlineStyle, borderBottomColor, backgroundColor }))(
        getComputedStyle(document.querySelector(${JSON.stringify(selector)})))`,
    );

  test("the lines of the map differ from its ground by a contrast of 3, in light and dark", async () => {
    const contrast = `(() => {
      const { stroke, opacity } = getComputedStyle(document.querySelector(".graph .edge"));
      const ground = getComputedStyle(document.querySelector(".map").closest(".panel")).backgroundColor;
      const [line, behind] = [stroke, ground].map((colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number));
      const luminance = (parts) => parts.reduce((sum, part, index) => {
        const share = part / 255;
        return sum + [0.2126, 0.7152, 0.0722][index] * (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4);
      }, 0);
      const shown = line.map((part, index) => part * Number(opacity) + behind[index] * (1 - Number(opacity)));
      const [low, high] = [luminance(shown), luminance(behind)].sort((a, b) => a - b);
      return (high + 0.05) / (low + 0.05);
    })()`;
    for (const theme of ["light", "dark"] as const)
      await story(
        fixture.brume.token,
        async (page) => {
          await open(page, pages["networks-map"]);
          await page.locator(".graph .edge").first().waitFor({ state: "attached" });
          const measured = Number(await page.evaluate(contrast));
          assert.ok(measured >= 3, `${theme}: ${measured}`);
        },
        { width: 1440, theme },
      );
  });

  test("with the colours of the system, one sees what is selected and how full a meter is", async () => {
    await story(fixture.brume.token, async (page) => {
      await page.emulateMedia({ forcedColors: "active" });
      await open(page, pages.overview);
      assert.equal((await lookOf(page, "nav:is(.nav, .bottom-bar) a.active:not(.brand)")).outlineStyle, "solid");
      assert.equal((await lookOf(page, "nav:is(.nav, .bottom-bar) a:not(.active, .brand)")).outlineStyle, "none");
      const [bar, fill] = [await lookOf(page, ".meter"), await lookOf(page, ".meter > div")];
      assert.notEqual(fill.backgroundColor, bar.backgroundColor);
      await open(page, pages["server-create"]);
      assert.equal((await lookOf(page, ".choice:has(input:checked)")).outlineStyle, "solid");
      assert.equal((await lookOf(page, ".choice:not(:has(input:checked))")).outlineStyle, "none");
      assert.equal((await lookOf(page, ".segments [aria-pressed=true]")).outlineStyle, "solid");
      await open(page, pages["server-settings"]);
      const [current, other] = [
        await lookOf(page, ".tabs a[aria-current=page]"),
        await lookOf(page, ".tabs a:not([aria-current])"),
      ];
      assert.notEqual(current.borderBottomColor, other.borderBottomColor);
    });
  });

  test("nothing moves for a user who prefers reduced motion", async () => {
    const running = "document.getAnimations().filter(({ playState }) => playState === 'running').length";
    await story(fixture.brume.token, async (page) => {
      // The list stays a placeholder, and one server is being created for as long as the test lasts.
      await page.route(/\/server\?/, () => undefined);
      for (const [motion, moves] of [
        ["no-preference", true],
        ["reduce", false],
      ] as const) {
        await page.emulateMedia({ reducedMotion: motion });
        await page.goto(pages.servers);
        await page.locator(".skeleton").first().waitFor();
        assert.equal(Number(await page.evaluate(running)) > 0, moves, `placeholders: ${motion}`);
      }
      await page.unroute(/\/server\?/);
      for (const [motion, moves] of [
        ["no-preference", true],
        ["reduce", false],
      ] as const) {
        await page.emulateMedia({ reducedMotion: motion });
        await open(page, pages.servers);
        await page.locator(".state.busy").first().waitFor();
        assert.equal(Number(await page.evaluate(running)) > 0, moves, `busy states: ${motion}`);
        await page
          .getByRole("button", { name: "Create" })
          .first()
          .or(page.getByRole("link", { name: "Create server" }))
          .first()
          .hover();
        assert.equal(Number(await page.evaluate(running)) > 0, moves, `hovered buttons: ${motion}`);
      }
    });
  });
});
