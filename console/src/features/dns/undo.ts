/** Undoes a change of a zone: restores the version before it. */
import type { ChangesetResult } from "@brume/api/dns.ts";
import { useData } from "../../data/data.tsx";
import { Conflict } from "../../data/errortext.ts";
import { useTexts } from "../../texts/texts.tsx";

/**
 * Returns what undoes a change of this domain: the version before it, which the page may not have known, is restored. A change that came
 * after it is not undone: the history shows both.
 */
export function useUndoVersion(id: number) {
  const t = useTexts();
  const { client, queries } = useData();
  const path = { id };
  return ({ Serial, Records }: ChangesetResult) => {
    // Another client may have made the same change before: then there is no version of this one.
    if (Records.length === 0) return undefined;
    return async (): Promise<void> => {
      const { etag } = await client.raw.readDomain({ path });
      const [last, before] = await client.listVersions({ path, query: { limit: 2 } });
      if (last?.Serial !== Serial || before === undefined) throw new Conflict(t.records.changedSince);
      await client.restoreVersion({ path, body: { Serial: before.Serial } }, etag === null ? {} : { ifMatch: etag });
      void queries.invalidateQueries({ queryKey: ["domain", "one", id] });
    };
  };
}
