/** Whether the screen fits a condition, also after it has changed. */
import { useSyncExternalStore } from "react";

export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const list = matchMedia(query);
      list.addEventListener("change", listener);
      return () => list.removeEventListener("change", listener);
    },
    () => matchMedia(query).matches,
  );
}

/** Returns whether the screen is as narrow as that of a phone, for which the style sheets have a layout of their own. */
export const useIsPhone = (): boolean => useMedia("(max-width: 640px)");
