/**
 * Runs in a page that a test visits (`test/support/consoleaudit.ts`): describes what has the focus, and which elements never got it.
 */

/** An element that had the focus. */
export interface Stop {
  /** Describes the element in a message. */
  readonly element: string;
  readonly name: string;
  readonly hasFocusRing: boolean;
  /** Part of the element is in view, and nothing covers it. */
  readonly isInView: boolean;
  /** At least 24 pixels wide and high. */
  readonly isLarge: boolean;
  /** It belongs to a terminal, whose guest gets Tab. */
  readonly isTerminal: boolean;
}

export interface FocusAudit {
  /** Returns the elements that had the focus when Tab was pressed, each once and in this order; the last has it for the second time: `isRound`. */
  walked(): { readonly stops: readonly Stop[]; readonly isRound: boolean };
  /** Sets the focus to the element of the numbered stop. */
  focus(stop: number): void;
  /** Returns whether the element that has the focus is in view. */
  isInView(): boolean;
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

/** Returns the element that shows the focus. A terminal draws what its hidden field gets. */
const shownFor = (element: HTMLElement): HTMLElement => element.closest<HTMLElement>(".terminal") ?? element;

function focused(): HTMLElement | null {
  const { activeElement } = document;
  return activeElement instanceof HTMLElement && activeElement !== document.body ? activeElement : null;
}

function stopAt(element: HTMLElement): Stop {
  const shown = shownFor(element);
  return {
    element: describe(element),
    name: nameOf(element),
    hasFocusRing: hasRing(shown) || hasRing(shown.parentElement),
    isInView: isInView(shown),
    isLarge: isLarge(shown),
    isTerminal: shown !== element,
  };
}

function start(): FocusAudit {
  const expected = tabbable();
  const stops = new Map<HTMLElement, Stop>();
  let last: HTMLElement | null = null;
  let isRound = false;
  // Before Tab moves the focus: the page has scrolled to the element, and the test need not ask after each key.
  const record = ({ key, shiftKey }: KeyboardEvent): void => {
    if (key !== "Tab" || shiftKey || isRound) return;
    const element = focused();
    // The focus has left the page, or moves between the parts of a date.
    if (element === null || element === last) return;
    last = element;
    isRound = stops.has(element);
    if (!isRound) stops.set(element, stopAt(element));
  };
  addEventListener("keydown", record, { capture: true });
  return {
    walked: () => ({ stops: [...stops.values()], isRound }),
    focus: (stop) => [...stops.keys()][stop]?.focus(),
    isInView() {
      const element = focused();
      return element !== null && isInView(shownFor(element));
    },
    missed: () => expected.filter((element) => element.isConnected && !stops.has(element)).map(describe),
  };
}

(globalThis as unknown as { focusAudit: FocusAudit }).focusAudit = start();
