/** Undoes a change of a zone: restores the version before it. */
import type { AppliedChange, ChangesetResult, Domain } from "@brume/api/dns.ts";
import type { Undo } from "../../data/change.ts";
import { useData, useMayOwnDomains } from "../../data/data.tsx";
import { Conflict } from "../../data/errortext.ts";
import { rowOf } from "../../data/record.ts";
import { useTexts } from "../../texts/texts.tsx";

/**
 * Returns what undoes a change of this domain: the version before it, which the page may not have known, is restored. A change that came
 * after it is not undone: the history shows both.
 */
export function useUndoVersion(domain: Domain) {
  const t = useTexts();
  const { client, queries } = useData();
  const mayRestore = useMayOwnDomains();
  const path = { id: domain.ID };
  /** A single record is named, several are counted. */
  const doneOf = (changes: readonly AppliedChange[]): string => {
    const { Before = null, After = null } = changes[0] ?? {};
    const record = Before ?? After;
    if (changes.length > 1 || record === null) return t.records.undone(changes.length, domain.Name);
    const { owner, type } = rowOf(record, domain);
    const kind = After === null ? "deleted" : Before === null ? "added" : "changed";
    return t.records.undoneOne[kind](`${owner} ${type}`);
  };
  return ({ Serial, Records }: ChangesetResult): Undo | undefined => {
    // Another client may have made the same change before: then there is no version of this one.
    if (Records.length === 0 || !mayRestore) return undefined;
    return {
      done: doneOf(Records),
      of: `domain:${domain.ID}`,
      async run() {
        const { etag } = await client.raw.readDomain({ path });
        const [last, before] = await client.listVersions({ path, query: { limit: 2 } });
        if (last?.Serial !== Serial || before === undefined) throw new Conflict(t.records.changedSince);
        await client.restoreVersion({ path, body: { Serial: before.Serial } }, etag === null ? {} : { ifMatch: etag });
        void queries.invalidateQueries({ queryKey: ["domain", "one", domain.ID] });
      },
    };
  };
}
