/** Imports a zone file, pasted or dropped, after a preview of what it changes. */

import type { AppliedChange } from "@brume/api/dns.ts";
import { type DragEvent, useState } from "react";
import { useChange } from "../../data/change.ts";
import { useData } from "../../data/data.tsx";
import { useDryRun } from "../../data/dryrun.ts";
import { troubleOf } from "../../data/trouble.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogHead } from "../../ui/dialog.tsx";
import { Note, TroubleBox } from "../../ui/feedback.tsx";
import { AreaField, SelectField } from "../../ui/field.tsx";
import { Diff } from "./diff.tsx";

type Mode = "Merge" | "Replace";

export function PasteZone({ id, onClose }: { id: number; onClose: () => void }) {
  const t = useTexts();
  const { client, queries } = useData();
  const [ZoneFile, setZoneFile] = useState("");
  const [Mode, setMode] = useState<Mode>("Merge");
  const [preview, setPreview] = useState<readonly AppliedChange[]>();
  const body = { ZoneFile, Mode };
  const check = useDryRun(ZoneFile.trim() === "" ? null : body, async (input, signal) => {
    const { Records } = await client.importZone({ path: { id }, body: input }, { dryRun: true, signal });
    setPreview(Records);
  });
  const { run, isBusy, error } = useChange(() => client.importZone({ path: { id }, body }), {
    done: ({ Serial }) => t.records.applied(Serial),
    onDone() {
      void queries.invalidateQueries({ queryKey: ["domain", "one", id] });
      onClose();
    },
    isQuiet: true,
  });
  const shown = error ?? check.error;
  const isReady = ZoneFile.trim() !== "" && !check.isChecking && shown === null && preview !== undefined;
  const drop = (event: DragEvent): void => {
    const [file] = event.dataTransfer.files;
    if (file === undefined) return;
    event.preventDefault();
    void file.text().then(setZoneFile);
  };
  return (
    <Dialog label={t.records.pasteTitle} kind="wide" onClose={onClose}>
      <div className="inner" onDrop={drop} onDragOver={(event) => event.preventDefault()}>
        <DialogHead title={t.records.pasteTitle} onClose={onClose} />
        <p className="muted">{t.records.pasteAbout}</p>
        <AreaField
          label={t.domains.zone}
          rows={8}
          autoFocus
          value={ZoneFile}
          onChange={({ target }) => setZoneFile(target.value)}
        />
        <SelectField
          label={t.records.pasteMode}
          value={Mode}
          options={[
            ["Merge", t.records.merge],
            ["Replace", t.records.replace],
          ]}
          onChange={({ target }) => setMode(target.value as Mode)}
        />
        {shown !== null && <TroubleBox trouble={troubleOf(shown, t)} />}
        {isReady && (preview.length === 0 ? <Note>{t.records.previewNone}</Note> : <Diff changes={preview} />)}
        <div className="line end">
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button
            kind="primary"
            isBusy={isBusy}
            disabled={!isReady || preview.length === 0}
            onClick={() => void run(undefined).catch(() => undefined)}
          >
            {t.records.importApply}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
