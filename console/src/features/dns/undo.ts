/** Undoes a change of a zone: restores the version before it. */
import type { ChangesetResult, Domain } from "@brume/api/dns.ts";
import { useData } from "../../data/data.tsx";
import { Conflict } from "../../data/errortext.ts";
import { useTexts } from "../../texts/texts.tsx";

/** Returns what undoes a change of this domain. A change that came after it is not undone: the history shows both. */
export function useUndoVersion({ ID: id, Serial: before }: Domain) {
  const t = useTexts();
  const { client, queries } = useData();
  return ({ Serial }: ChangesetResult) =>
    async (): Promise<void> => {
      const [last] = await client.listVersions({ path: { id }, query: { limit: 1 } });
      if (last?.Serial !== Serial) throw new Conflict(t.records.changedSince);
      await client.restoreVersion({ path: { id }, body: { Serial: before } });
      void queries.invalidateQueries({ queryKey: ["domain", "one", id] });
    };
}
