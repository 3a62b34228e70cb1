/** Shows what a change of the zone does, as the service computes it, and applies it: a changeset, or the way back to a version. */
import type { ChangeOptions } from "@brume/api/client.ts";
import type { ChangeInput, ChangesetResult, Domain } from "@brume/api/dns.ts";
import { useQuery } from "@tanstack/react-query";
import { useChange } from "../../data/change.ts";
import { useData } from "../../data/data.tsx";
import type { Request } from "../../data/equivalent.ts";
import { errorText } from "../../data/errortext.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogHead } from "../../ui/dialog.tsx";
import { ErrorBox, Skeleton } from "../../ui/feedback.tsx";
import { Diff } from "./diff.tsx";
import { useUndoVersion } from "./undo.ts";

interface ReviewProps {
  readonly domain: Domain;
  readonly changes: readonly ChangeInput[];
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Applies the edits of a table. */
export function Review({ domain, changes, onClose, onDone }: ReviewProps) {
  const t = useTexts();
  const { client } = useData();
  const { ID: id } = domain;
  const body = { Changes: [...changes] };
  return (
    <PreviewDialog
      title={t.records.reviewTitle(changes.length)}
      about={t.records.reviewAbout}
      action={t.records.apply}
      request={{ operation: "changeRecords", path: { id }, body }}
      send={(options) => client.changeRecords({ path: { id }, body }, options)}
      domain={domain}
      onDone={onDone}
      onClose={onClose}
    />
  );
}

/** Restores the records of a version. */
export function Restore({ domain, serial, onClose }: { domain: Domain; serial: number; onClose: () => void }) {
  const t = useTexts();
  const { client } = useData();
  const { ID: id } = domain;
  const body = { Serial: serial };
  return (
    <PreviewDialog
      title={t.records.restoreTitle(serial)}
      about={t.records.restoreAbout}
      action={t.records.restore}
      request={{ operation: "restoreVersion", path: { id }, body }}
      send={(options) => client.restoreVersion({ path: { id }, body }, options)}
      domain={domain}
      onDone={onClose}
      onClose={onClose}
    />
  );
}

interface PreviewProps {
  readonly title: string;
  readonly about: string;
  /** Text of the button. */
  readonly action: string;
  readonly request: Request;
  readonly send: (options: ChangeOptions) => Promise<ChangesetResult>;
  readonly domain: Domain;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

function PreviewDialog({ title, about, action, request, send, domain, onDone, onClose }: PreviewProps) {
  const t = useTexts();
  const { queries } = useData();
  const preview = useQuery({
    queryKey: ["preview", request],
    queryFn: ({ signal }) => send({ dryRun: true, signal }),
    gcTime: 0,
  });
  const { run, isBusy, error } = useChange(() => send({}), {
    done: ({ Serial }) => t.records.applied(domain.Name, Serial),
    onDone() {
      void queries.invalidateQueries({ queryKey: ["domain", "one", domain.ID] });
      onDone();
    },
    undo: useUndoVersion(domain),
    isQuiet: true,
  });
  const shown = error ?? preview.error;
  return (
    <Dialog label={title} kind="wide" onClose={onClose}>
      <div className="inner">
        <DialogHead title={title} onClose={onClose} />
        <p className="muted">{about}</p>
        {shown !== null && (
          <ErrorBox
            text={errorText(shown, t)}
            onRetry={preview.data === undefined ? () => void preview.refetch() : undefined}
          />
        )}
        {preview.data ? (
          <Diff domain={domain} changes={preview.data.Records} />
        ) : (
          shown === null && <Skeleton lines={4} />
        )}
        <RequestPanel request={request} />
        <div className="line end">
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button
            kind="primary"
            isBusy={isBusy}
            disabled={preview.data === undefined}
            onClick={() => void run(undefined).catch(() => undefined)}
          >
            {action}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
