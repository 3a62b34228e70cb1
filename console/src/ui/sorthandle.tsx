/**
 * A handle that moves a row of an ordered list: by dragging it with mouse or finger, or with the arrow keys. Other rows are found by their
 * handles, so the list needs no other preparation.
 */
import { type KeyboardEvent, type PointerEvent as Press, useRef } from "react";
import { Icon } from "./icon.tsx";

interface SortHandleProps {
  readonly label: string;
  /** Position of the row, from 0. */
  readonly index: number;
  readonly onMove: (from: number, to: number) => void;
}

/** Returns the position of the row under the pointer; null: there is none. */
function rowAt({ clientX, clientY }: PointerEvent): number | null {
  const row = document.elementFromPoint(clientX, clientY)?.closest("[role=row], li");
  const handle = row?.querySelector<HTMLElement>("[data-sort]");
  return handle ? Number(handle.dataset["sort"]) : null;
}

export function SortHandle({ label, index, onMove }: SortHandleProps) {
  const ref = useRef<HTMLButtonElement>(null);
  const at = useRef(index);
  at.current = index;
  const drag = (press: Press): void => {
    if (press.button !== 0) return;
    const move = (event: PointerEvent): void => {
      // The release did not reach this page.
      if (event.buttons === 0) return end();
      const to = rowAt(event);
      if (to === null || to === at.current) return;
      onMove(at.current, to);
      // The handle may be out of the page and not rendered again: a long table renders only visible rows.
      at.current = to;
    };
    const listening = new AbortController();
    const end = (): void => {
      listening.abort();
      ref.current?.classList.remove("dragging");
    };
    // On the window: the browser releases the handle when its row moves in the page.
    const { signal } = listening;
    addEventListener("pointermove", move, { signal });
    addEventListener("pointerup", end, { signal });
    addEventListener("pointercancel", end, { signal });
    ref.current?.classList.add("dragging");
  };
  const press = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    onMove(index, index + step);
    // A row that moves in the page loses the focus.
    requestAnimationFrame(() => ref.current?.focus());
  };
  return (
    <button
      ref={ref}
      type="button"
      className="button quiet small square sort-handle"
      aria-label={label}
      data-sort={index}
      onPointerDown={drag}
      onKeyDown={press}
    >
      <Icon name="grip" />
    </button>
  );
}
