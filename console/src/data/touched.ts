/**
 * The fields of a form that changes an object. A field that the user has not changed shows the object as it is now and is not sent, so a form
 * that is open does not revert the changes of other clients.
 */
import { useEffect, useState } from "react";
import { isEqual } from "./undo.ts";

/** What differs from the object. A field that is empty (undefined) is not sent. */
type Changed<Fields> = { readonly [Name in keyof Fields]?: Exclude<Fields[Name], undefined> };

const differing = <Fields extends object>(touched: Partial<Fields>, stored: Fields): Partial<Fields> =>
  Object.fromEntries(
    Object.entries(touched).filter(([name, value]) => !isEqual(value, stored[name as keyof Fields])),
  ) as Partial<Fields>;

/** Returns what the form shows, what it changes, and the function that sets fields. `stored`: the fields of the object as it is now. */
export function useTouched<Fields extends object>(stored: Fields) {
  const [touched, setTouched] = useState<Partial<Fields>>({});
  const text = JSON.stringify(stored);
  // What was saved is no change any more, so that the form shows what another client changes later.
  useEffect(() => setTouched((all) => differing(all, JSON.parse(text) as Fields)), [text]);
  const changed = Object.fromEntries(
    Object.entries(differing(touched, stored)).filter(([, value]) => value !== undefined),
  ) as Changed<Fields>;
  return {
    form: { ...stored, ...touched },
    changed,
    hasChanged: Object.keys(changed).length > 0,
    set: (part: Partial<Fields>): void => setTouched((all) => ({ ...all, ...part })),
  };
}
