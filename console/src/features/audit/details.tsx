/** One entry of the audit log: who, from where, and which fields the request has changed. */
import type { AuditEntry } from "@brume/api/account.ts";
import { fieldChanges, operationName } from "../../data/auditview.ts";
import { NumberedObject } from "../../data/eventlink.tsx";
import type { NamedEvent } from "../../data/eventnames.ts";
import { inOrder } from "../../texts/isolate.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Dialog, DialogHead } from "../../ui/dialog.tsx";
import { Facts, None } from "../../ui/page.tsx";

interface AuditDetailsProps {
  readonly entry: AuditEntry;
  readonly object: NamedEvent | undefined;
  readonly onClose: () => void;
}

export function AuditDetails({ entry, object, onClose }: AuditDetailsProps) {
  const t = useTexts();
  const format = useFormat();
  const title = operationName(entry.Operation, t);
  const changes = fieldChanges(entry.Before, entry.After);
  return (
    <Dialog label={title} kind="wide" onClose={onClose}>
      <div className="inner">
        <DialogHead title={title} onClose={onClose} />
        <Facts
          facts={[
            { name: t.activity.time, value: format.exact(entry.Date) },
            { name: t.audit.operation, value: <code>{entry.Operation}</code>, copy: entry.Operation },
            object !== undefined && { name: t.activity.object, value: <NumberedObject event={object} /> },
            { name: t.audit.status, value: entry.Status },
            { name: t.activity.token, value: entry.TokenName || <None /> },
            {
              name: t.access.address,
              value: entry.Address === "" ? <None /> : <span className="mono">{entry.Address}</span>,
            },
            { name: t.activity.request, value: <code>{entry.RequestID}</code>, copy: entry.RequestID },
            entry.Count > 1 && {
              name: t.audit.repeated,
              value: `${t.audit.times(entry.Count, format.number(entry.Count))}, ${format.exact(entry.LastDate)}`,
            },
          ]}
        />
        <h3>{t.audit.changes}</h3>
        {changes.length === 0 ? (
          <p className="muted">{t.audit.noChanges}</p>
        ) : (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable with the keyboard
          <div className="diff" tabIndex={0} role="region" aria-label={t.audit.changes}>
            {changes.map(({ field, before, after }) => (
              <div key={field}>
                <strong>{field}</strong>
                {before !== null && <div className="remove">− {inOrder(before)}</div>}
                {after !== null && <div className="add">+ {inOrder(after)}</div>}
              </div>
            ))}
          </div>
        )}
      </div>
    </Dialog>
  );
}
