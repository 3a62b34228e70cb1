/** A pane whose height one sets by dragging its lower edge, or with the arrow keys. The browser keeps the height. */
import { type KeyboardEvent, type PointerEvent as Press, type ReactNode, useState } from "react";

interface ResizableProps {
  /** What the edge changes, for screen readers. */
  readonly label: string;
  /** Name under which the height is stored. */
  readonly name: string;
  /** Pixels at the first time. */
  readonly height: number;
  readonly children: ReactNode;
}

const least = 160;
/** Pixels of a press of an arrow key. */
const keyStep = 32;

const most = (): number => Math.max(least, innerHeight - 120);
const within = (height: number): number => Math.round(Math.min(most(), Math.max(least, height)));

export function Resizable({ label, name, height: first, children }: ResizableProps) {
  const [height, setHeight] = useState(() =>
    within(Number(localStorage.getItem(name)) || Math.min(first, innerHeight * 0.6)),
  );
  const set = (next: number): void => {
    setHeight(within(next));
    localStorage.setItem(name, String(within(next)));
  };
  const drag = (press: Press<HTMLDivElement>): void => {
    if (press.button !== 0) return;
    press.preventDefault();
    const from = press.clientY;
    const start = height;
    const listening = new AbortController();
    const { signal } = listening;
    addEventListener("pointermove", ({ clientY }: PointerEvent) => set(start + clientY - from), { signal });
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => listening.abort(), { signal });
  };
  const key = (event: KeyboardEvent): void => {
    const step = { ArrowDown: keyStep, ArrowUp: -keyStep, PageDown: 5 * keyStep, PageUp: -5 * keyStep }[event.key];
    if (step === undefined && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    set(event.key === "Home" ? least : event.key === "End" ? most() : height + (step ?? 0));
  };
  return (
    <div>
      <div className="resizable" style={{ height: `${height}px` }}>
        {children}
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a rule cannot be dragged */}
      <div
        role="separator"
        aria-label={label}
        aria-orientation="horizontal"
        aria-valuenow={height}
        aria-valuemin={least}
        aria-valuemax={most()}
        tabIndex={0}
        className="resize-edge"
        onPointerDown={drag}
        onKeyDown={key}
      />
    </div>
  );
}
