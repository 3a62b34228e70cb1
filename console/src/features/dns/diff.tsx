/** What a changeset adds and removes, as lines of a zone file. */
import type { AppliedChange } from "@brume/api/dns.ts";
import { useTexts } from "../../texts/texts.tsx";

/** Changes that are shown. A zone file may have many thousands. */
const most = 500;

export function Diff({ changes }: { changes: readonly AppliedChange[] }) {
  const t = useTexts();
  const lines = changes
    .slice(0, most)
    .flatMap(({ Before, After }) => [
      ...(Before === null ? [] : [{ sign: "−", kind: "remove", text: Before.CanonicalDescription }]),
      ...(After === null ? [] : [{ sign: "+", kind: "add", text: After.CanonicalDescription }]),
    ]);
  return (
    <div className="diff" tabIndex={0} role="region" aria-label={t.records.changes(changes.length)}>
      {lines.map(({ sign, kind, text }, index) => (
        <div key={index} className={kind}>
          {sign} {text}
        </div>
      ))}
      {changes.length > most && <div className="muted">{t.records.changes(changes.length - most)} …</div>}
    </div>
  );
}
