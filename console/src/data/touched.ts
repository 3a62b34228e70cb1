/**
 * The fields of a form that changes an object. A field that the user has not changed shows the object as it is now and is not sent, so a form
 * that is open does not revert the changes of other clients.
 */
import { useEffect, useRef, useState } from "react";
import { isEqual } from "./undo.ts";

/** What differs from the object. A field that is empty (undefined) is not sent. */
type Changed<Fields> = { readonly [Name in keyof Fields]?: Exclude<Fields[Name], undefined> };

/** Returns the fields that differ from those of the object. */
const differing = <Fields extends object>(touched: Partial<Fields>, stored: Partial<Fields>): Partial<Fields> =>
  Object.fromEntries(
    Object.entries(touched).filter(([name, value]) => !isEqual(value, stored[name as keyof Fields])),
  ) as Partial<Fields>;

/** Returns what the form shows, what it changes, and the functions that set and save fields. `stored`: the fields of the object as it is now. */
export function useTouched<Fields extends object>(stored: Fields) {
  const [touched, setTouched] = useState<Partial<Fields>>({});
  /** What was saved, until the page learns of a change of the object. */
  const [saved, setSaved] = useState<Partial<Fields>>({});
  const text = JSON.stringify(stored);
  const latest = useRef(text);
  latest.current = text;
  useEffect(() => {
    setTouched((all) => differing(all, JSON.parse(text) as Fields));
    setSaved({});
  }, [text]);
  const changed = Object.fromEntries(
    Object.entries(differing(touched, stored)).filter(([, value]) => value !== undefined),
  ) as Changed<Fields>;
  return {
    form: { ...stored, ...saved, ...touched },
    changed,
    hasChanged: Object.keys(changed).length > 0,
    set: (part: Partial<Fields>): void => setTouched((all) => ({ ...all, ...part })),
    /**
     * Waits for the request that saves `changed`; the caller shows its error. What was saved is no change any more, so that the form shows what
     * another client changes later: the page may learn of both at once.
     */
    async save(request: Promise<unknown>): Promise<void> {
      const isSaved = await request.then(
        () => true,
        () => false,
      );
      if (!isSaved) return;
      setTouched((all) => differing<Fields>(all, changed));
      if (latest.current === text) setSaved(changed);
    },
  };
}
