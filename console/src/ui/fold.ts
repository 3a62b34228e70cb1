/** Parts of a page that the user folds. */
import { type ToggleEvent, useState } from "react";

/**
 * Returns the properties of a `details` element. The browser keeps under `name` what the user has chosen; null: it keeps nothing.
 */
export function useFold(name: string | null, isOpenAtFirst: boolean) {
  const [open, setOpen] = useState(() => {
    const kept = name === null ? null : localStorage.getItem(name);
    return kept === null ? isOpenAtFirst : kept === "open";
  });
  const onToggle = ({ currentTarget }: ToggleEvent<HTMLDetailsElement>): void => {
    // An element that is open at first sends the event too.
    if (currentTarget.open === open) return;
    setOpen(currentTarget.open);
    if (name !== null) localStorage.setItem(name, currentTarget.open ? "open" : "folded");
  };
  return { open, onToggle };
}
