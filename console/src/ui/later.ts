/** A value that follows another one after the browser has drawn it: what one types appears before a long list is filtered. */
import { useEffect, useState } from "react";

/** Returns the value as it was when the page was last drawn. */
export function useLater<T>(value: T): T {
  const [later, setLater] = useState(value);
  useEffect(() => setLater(value), [value]);
  return later;
}
