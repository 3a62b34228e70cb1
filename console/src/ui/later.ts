/** Work that follows in a later task: what one types appears before a long list is filtered, and the browser handles input between the parts of a page. */
import { type ReactNode, useEffect, useLayoutEffect, useState } from "react";

/** Returns the value as it was when the page was last drawn. */
export function useLater<T>(value: T): T {
  const [later, setLater] = useState(value);
  useEffect(() => setLater(value), [value]);
  return later;
}

/**
 * Returns false at first. Then the component draws again, in a task of its own: components draw in the order in which they were made, and the
 * browser handles input between them.
 */
export function useTurn(): boolean {
  const [hasTurn, setTurn] = useState(false);
  useLayoutEffect(() => {
    const timer = setTimeout(() => setTurn(true));
    return () => clearTimeout(timer);
  }, []);
  return hasTurn;
}

/** Draws its children in a task of their own. */
export function InTurn({ children }: { children: ReactNode }): ReactNode {
  return useTurn() && children;
}
