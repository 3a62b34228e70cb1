/** Shows what a changeset does, as the service computes it, and applies it. */
import type { ChangeInput } from "@brume/api/dns.ts";
import { useQuery } from "@tanstack/react-query";
import { useChange } from "../../data/change.ts";
import { useData } from "../../data/data.tsx";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { troubleOf } from "../../data/trouble.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogHead } from "../../ui/dialog.tsx";
import { Skeleton, TroubleBox } from "../../ui/feedback.tsx";
import { Diff } from "./diff.tsx";

interface ReviewProps {
  readonly id: number;
  readonly changes: readonly ChangeInput[];
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function Review({ id, changes, onClose, onDone }: ReviewProps) {
  const t = useTexts();
  const { client, queries } = useData();
  const body = { Changes: [...changes] };
  const preview = useQuery({
    queryKey: ["changeset", id, changes],
    queryFn: () => client.changeRecords({ path: { id }, body }, { dryRun: true }),
    gcTime: 0,
  });
  const { run, isBusy, error } = useChange(() => client.changeRecords({ path: { id }, body }), {
    done: ({ Serial }) => t.records.applied(Serial),
    onDone() {
      void queries.invalidateQueries({ queryKey: ["domain", "one", id] });
      onDone();
    },
    isQuiet: true,
  });
  const shown = error ?? preview.error;
  return (
    <Dialog label={t.records.reviewTitle(changes.length)} kind="wide" onClose={onClose}>
      <div className="inner">
        <DialogHead title={t.records.reviewTitle(changes.length)} onClose={onClose} />
        <p className="muted">{t.records.reviewAbout}</p>
        {shown !== null && <TroubleBox trouble={troubleOf(shown, t)} />}
        {preview.data ? <Diff changes={preview.data.Records} /> : shown === null && <Skeleton lines={4} />}
        <RequestPanel request={{ operation: "changeRecords", path: { id }, body }} />
        <div className="line end">
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button
            kind="primary"
            isBusy={isBusy}
            disabled={preview.data === undefined}
            onClick={() => void run(undefined).catch(() => undefined)}
          >
            {t.records.apply}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
