/** Work that follows after the browser has drawn what came before it: what one types appears before a long list is filtered. */
import { useEffect, useState } from "react";

/** Returns the value as it was when the page was last drawn. */
export function useLater<T>(value: T): T {
  const [later, setLater] = useState(value);
  useEffect(() => setLater(value), [value]);
  return later;
}

/** Returns false until the component has been drawn, so that what it draws next is a task of its own. */
export function useHasBeenDrawn(): boolean {
  const [hasBeen, setHasBeen] = useState(false);
  useEffect(() => setHasBeen(true), []);
  return hasBeen;
}
