/** Changes that a user has not applied yet. They stay while the user visits other pages; the browser warns before they are lost. */
import { useEffect, useState } from "react";
import { type Data, useData } from "./data.tsx";

/** As `useState`, but the state is kept under `name`, the kind and id of an object, until it is `none` again or the object is deleted. */
export function useDraft<T>(name: string, none: T): readonly [T, React.Dispatch<React.SetStateAction<T>>] {
  const { drafts } = useData();
  const [draft, setDraft] = useState<T>(() => (drafts.has(name) ? (drafts.get(name) as T) : none));
  useEffect(() => {
    if (draft === none) drafts.delete(name);
    else drafts.set(name, draft);
  }, [drafts, name, draft, none]);
  return [draft, setDraft];
}

/** Lets the browser confirm that the page is closed while there are drafts. */
export function useLeaveWarning(drafts: Data["drafts"]): void {
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent): void => {
      if (drafts.size > 0) event.preventDefault();
    };
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [drafts]);
}
