/** What a page of the console must be for everybody: reachable and visible with the keyboard alone, named, large enough, not too wide. */
import { resolve } from "node:path";
import { buildSync } from "esbuild";
import type { CDPSession, Page } from "playwright-core";

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
  await page.evaluate(`focusAudit.focusBefore(${stop})`);
  await page.keyboard.press("Tab");
  return page.evaluate<boolean>("focusAudit.isInView()");
}

/** Presses Tab until an element has the focus again, and returns what is wrong. */
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
  const overflow = Number(await page.evaluate("document.documentElement.scrollWidth - innerWidth"));
  if (overflow > 0) errors.push(`${overflow} pixels wider than the screen`);
  return errors;
}
