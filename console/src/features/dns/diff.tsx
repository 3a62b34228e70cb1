/** What a changeset adds and removes, as lines of a zone file. */
import type { AppliedChange, Domain } from "@brume/api/dns.ts";
import { linesOf } from "../../data/record.ts";
import { inOrder } from "../../texts/isolate.ts";
import { useTexts } from "../../texts/texts.tsx";

/** Changes that are shown. A zone file may have many thousands. */
const most = 500;

export function Diff({ domain, changes }: { domain: Domain; changes: readonly AppliedChange[] }) {
  const t = useTexts();
  return (
    <div className="diff" tabIndex={0} role="region" aria-label={t.records.changes(changes.length)}>
      {linesOf(changes.slice(0, most), domain).map(({ isAdded, text }, index) => (
        <div key={index} className={isAdded ? "add" : "remove"}>
          {isAdded ? "+" : "−"} {inOrder(text)}
        </div>
      ))}
      {changes.length > most && <div className="muted">{t.records.changes(changes.length - most)} …</div>}
    </div>
  );
}
