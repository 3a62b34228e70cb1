/** What a page of the console must be for everybody: reachable and visible with the keyboard alone, named, large enough, not too wide. */
import { resolve } from "node:path";
import { buildSync } from "esbuild";
import type { CDPSession, Page } from "playwright-core";
import { untilDrawn } from "./browser.ts";

/** As `console/audit/focus.ts` describes it. */
interface Stop {
  readonly element: string;
  readonly name: string;
  readonly hasFocusRing: boolean;
  readonly isInView: boolean;
  readonly isLarge: boolean;
  readonly isTerminal: boolean;
}
interface Walk {
  readonly stops: readonly Stop[];
  readonly isRound: boolean;
}

const source = resolve(import.meta.dirname, "../../console/audit/focus.ts");
const [script] = buildSync({ entryPoints: [source], bundle: true, write: false, format: "iife" }).outputFiles;

/** Keys after which the walk ends: a longer table is as its first rows. */
const mostPresses = 120;
/** Keys that are sent together: waiting for each takes most of the time. */
const together = 20;

/** Presses Tab `count` times. Chromium handles one key after the other. */
async function pressTab(session: CDPSession, count: number): Promise<void> {
  const key = { key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 };
  const downs = Array.from({ length: count }, () =>
    session.send("Input.dispatchKeyEvent", { ...key, type: "rawKeyDown" }),
  );
  await Promise.all(downs);
  await session.send("Input.dispatchKeyEvent", { ...key, type: "keyUp" });
}

/** Returns whether the element of a stop is in view when it gets the focus once more. A new row of a live list may have moved it out of view. */
async function isInViewAgain(page: Page, stop: number): Promise<boolean> {
  await page.evaluate(`focusAudit.focus(${stop})`);
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Tab");
  return page.evaluate<boolean>("focusAudit.isInView()");
}

/** Widths of a tablet and of a desktop. */
const largeWidths = [768, 1440];

/** Texts that must be complete: a cell or box that ends before them cuts them. In the page. */
const cutTexts = `[...document.querySelectorAll(".button, .state, .field-label, legend, h2, [role=columnheader]:not(.hidden-text)")]
  .filter((each) => each.checkVisibility() && each.textContent !== "")
  .filter((each) => [each, each.closest(".cell:not(.loose)") ?? each].some((box) => box.scrollWidth > box.clientWidth + 1))
  .map((each) => each.textContent)`;

/** Names of the buttons that copy a value and are not beside it. In the page. */
const lostCopies = `[...document.querySelectorAll(".copy")]
  .filter((each) => each.checkVisibility() && each.previousElementSibling !== null)
  .filter((each) => each.previousElementSibling.getBoundingClientRect().bottom <= each.getBoundingClientRect().top)
  .map((each) => each.getAttribute("aria-label"))`;

/** Returns what is too wide for the page or for its box. */
async function tooWide(page: Page): Promise<string[]> {
  const overflow = Number(await page.evaluate("document.documentElement.scrollWidth - innerWidth"));
  const cut = await page.evaluate<string[]>(cutTexts);
  const lost = await page.evaluate<string[]>(lostCopies);
  return [
    ...(overflow > 0 ? [`${overflow} pixels wider than the screen`] : []),
    ...cut.map((text) => `cut: ${text}`),
    ...lost.map((text) => `below its value: ${text}`),
  ];
}

/** Presses Tab until an element has the focus again, and returns what is wrong; also what does not fit on larger screens. */
export async function walkPage(page: Page): Promise<string[]> {
  await page.evaluate(script?.text ?? "");
  const session = await page.context().newCDPSession(page);
  let walk: Walk = { stops: [], isRound: false };
  for (let presses = 0; presses < mostPresses && !walk.isRound; presses += together) {
    await pressTab(session, together);
    walk = await page.evaluate<Walk>("focusAudit.walked()");
    // Tab belongs to the guest.
    if (walk.stops.at(-1)?.isTerminal === true) await page.keyboard.press("Control+Shift+Escape");
  }
  await session.detach();
  const errors: string[] = [];
  for (const [index, stop] of walk.stops.entries()) {
    if (stop.name === "") errors.push(`no name: ${stop.element}`);
    if (!stop.hasFocusRing) errors.push(`no visible focus: ${stop.element}`);
    if (!stop.isInView && !(await isInViewAgain(page, index))) errors.push(`focus is not in view: ${stop.element}`);
    if (!stop.isLarge) errors.push(`smaller than 24 pixels: ${stop.element}`);
  }
  if (walk.isRound)
    errors.push(
      ...(await page.evaluate<string[]>("focusAudit.missed()")).map((each) => `not reachable with Tab: ${each}`),
    );
  errors.push(...(await tooWide(page)));
  const narrow = page.viewportSize();
  for (const width of largeWidths) {
    await page.setViewportSize({ width, height: 900 });
    await untilDrawn(page);
    errors.push(...(await tooWide(page)).map((each) => `at ${width} pixels: ${each}`));
  }
  if (narrow !== null) await page.setViewportSize(narrow);
  return errors;
}
