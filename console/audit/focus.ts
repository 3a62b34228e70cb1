/**
 * Runs in a page that a test visits (`test/support/consoleaudit.ts`): describes what has the focus, and which elements never got it.
 */

/** An element that has the focus. */
export interface Stop {
  /** Describes the element in a message. */
  readonly element: string;
  readonly name: string;
  readonly hasFocusRing: boolean;
  /** Part of the element is in view, and nothing covers it. */
  readonly isInView: boolean;
  /** At least 24 pixels wide and high. */
  readonly isLarge: boolean;
  /** It had the focus just before, too. */
  readonly isSame: boolean;
  /** It had the focus earlier. */
  readonly isRepeated: boolean;
}

export interface FocusAudit {
  focused(): Stop | null;
  /** Returns the elements that were there at the start and never had the focus. */
  missed(): string[];
}

const selector = "a[href], button, input, select, textarea, summary, [tabindex]";

function isTabbable(element: HTMLElement): boolean {
  if (element.tabIndex < 0 || element.matches(":disabled")) return false;
  // Of radio buttons with one name, Tab reaches the checked one.
  if (element instanceof HTMLInputElement && element.type === "radio" && !element.checked) return false;
  return element.checkVisibility({ visibilityProperty: true });
}

function tabbable(): HTMLElement[] {
  const part = document.querySelector("dialog:modal") ?? document;
  return [...part.querySelectorAll<HTMLElement>(selector)].filter(isTabbable);
}

const labelsOf = (element: Element): readonly Element[] => [...((element as HTMLInputElement).labels ?? [])];

const nameOf = (element: HTMLElement): string =>
  [element.getAttribute("aria-label"), labelsOf(element)[0]?.textContent, element.textContent]
    .map((text) => text?.trim() ?? "")
    .find((text) => text !== "") ?? "";

const describe = (element: HTMLElement): string =>
  `${element.tagName.toLowerCase()}.${element.className} ${nameOf(element).slice(0, 40)}`;

function hasRing(element: Element | null): boolean {
  if (element === null) return false;
  const { outlineStyle, outlineWidth } = getComputedStyle(element);
  return outlineStyle !== "none" && Number.parseFloat(outlineWidth) >= 2;
}

function isInView(element: HTMLElement): boolean {
  const box = element.getBoundingClientRect();
  const [left, right] = [Math.max(0, box.left), Math.min(innerWidth, box.right)];
  const [top, bottom] = [Math.max(0, box.top), Math.min(innerHeight, box.bottom)];
  const [x, y] = [(left + right) / 2, (top + bottom) / 2];
  const points = [
    [x, y],
    [x, top + 3],
    [x, bottom - 3],
    [left + 3, y],
  ] as const;
  return points.some((point) => {
    const found = document.elementFromPoint(...point);
    return found !== null && (element.contains(found) || found.contains(element));
  });
}

function isLarge(element: HTMLElement): boolean {
  // A link in a sentence is as high as its line.
  if (element instanceof HTMLAnchorElement && getComputedStyle(element).display.startsWith("inline")) return true;
  const boxes = [element, ...labelsOf(element)].map((box) => box.getBoundingClientRect());
  return boxes.some(({ width, height }) => width >= 24 && height >= 24);
}

function start(): FocusAudit {
  const expected = tabbable();
  const seen = new Set<Element>();
  let last: Element | null = null;
  return {
    focused() {
      const { activeElement } = document;
      if (!(activeElement instanceof HTMLElement) || activeElement === document.body) return null;
      // The terminal draws what its hidden field gets.
      const shown = activeElement.closest<HTMLElement>(".terminal") ?? activeElement;
      const stop = {
        element: describe(activeElement),
        name: nameOf(activeElement),
        hasFocusRing: hasRing(shown) || hasRing(shown.parentElement),
        isInView: isInView(shown),
        isLarge: isLarge(shown),
        isSame: activeElement === last,
        isRepeated: seen.has(activeElement),
      };
      last = activeElement;
      seen.add(activeElement);
      return stop;
    },
    missed: () => expected.filter((element) => element.isConnected && !seen.has(element)).map(describe),
  };
}

(globalThis as unknown as { focusAudit: FocusAudit }).focusAudit = start();
