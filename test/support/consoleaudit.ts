/** What a page of the console must be for everybody: reachable and visible with the keyboard alone, named, large enough, not too wide. */
import { resolve } from "node:path";
import { buildSync } from "esbuild";
import type { Page } from "playwright-core";

/** As `console/audit/focus.ts` describes it. */
interface Stop {
  readonly element: string;
  readonly name: string;
  readonly hasFocusRing: boolean;
  readonly isInView: boolean;
  readonly isLarge: boolean;
  readonly isSame: boolean;
  readonly isRepeated: boolean;
}

const source = resolve(import.meta.dirname, "../../console/audit/focus.ts");
const [script] = buildSync({ entryPoints: [source], bundle: true, write: false, format: "iife" }).outputFiles;

/** Keys after which the walk ends: a longer table is as its first rows. */
const mostStops = 120;

/** Returns whether the element is in view when it gets the focus once more. A new row of a live list may have moved it out of view. */
async function isInViewAgain(page: Page): Promise<boolean> {
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Tab");
  return (await page.evaluate<Stop | null>("focusAudit.focused()"))?.isInView === true;
}

/** Presses Tab until an element has the focus again, and returns what is wrong. */
export async function walkPage(page: Page): Promise<string[]> {
  await page.evaluate(script?.text ?? "");
  const errors: string[] = [];
  let presses = 0;
  for (; presses < mostStops; presses++) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate<Stop | null>("focusAudit.focused()");
    // The focus has left the page, or moves between the parts of a date.
    if (stop === null || stop.isSame) continue;
    if (stop.isRepeated) break;
    if (stop.name === "") errors.push(`no name: ${stop.element}`);
    if (!stop.hasFocusRing) errors.push(`no visible focus: ${stop.element}`);
    if (!stop.isInView && !(await isInViewAgain(page))) errors.push(`focus is not in view: ${stop.element}`);
    if (!stop.isLarge) errors.push(`smaller than 24 pixels: ${stop.element}`);
    // Tab belongs to the guest.
    if (stop.element.includes("xterm")) await page.keyboard.press("Control+Shift+Escape");
  }
  if (presses < mostStops)
    errors.push(
      ...(await page.evaluate<string[]>("focusAudit.missed()")).map((each) => `not reachable with Tab: ${each}`),
    );
  const overflow = Number(await page.evaluate("document.documentElement.scrollWidth - innerWidth"));
  if (overflow > 0) errors.push(`${overflow} pixels wider than the screen`);
  return errors;
}
