/** The tabs of a page: links, of which the present one has `aria-current`. On a narrow screen they scroll, and the present one is in view. */
import { type ReactNode, useEffect, useRef } from "react";

export function Tabs({ label, children }: { label: string; children: ReactNode }) {
  const nav = useRef<HTMLElement>(null);
  const shown = useRef<Element>(null);
  // After the browser has laid out the page: otherwise it does so twice.
  useEffect(() => {
    const box = nav.current;
    const present = box?.querySelector<HTMLElement>("[aria-current=page]") ?? null;
    if (box === null || present === null || present === shown.current) return;
    shown.current = present;
    box.scrollLeft = present.offsetLeft - (box.clientWidth - present.offsetWidth) / 2;
  });
  return (
    <nav className="tabs" aria-label={label} ref={nav}>
      {children}
    </nav>
  );
}
