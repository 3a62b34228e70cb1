/** Imports a zone file, pasted or dropped, after a preview of what it changes. */

import type { AppliedChange, Domain } from "@brume/api/dns.ts";
import { useState } from "react";
import { useChange } from "../../data/change.ts";
import { useData } from "../../data/data.tsx";
import { useDryRun } from "../../data/dryrun.ts";
import { errorText } from "../../data/errortext.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogHead } from "../../ui/dialog.tsx";
import { ErrorBox, Note } from "../../ui/feedback.tsx";
import { SelectField } from "../../ui/field.tsx";
import { FileTextField } from "../../ui/filetext.tsx";
import { Diff } from "./diff.tsx";
import { useUndoVersion } from "./undo.ts";

type Mode = "Merge" | "Replace";

interface PasteZoneProps {
  readonly domain: Domain;
  /** Text that was pasted or dropped before the dialog opened. */
  readonly text: string;
  readonly onClose: () => void;
}

export function PasteZone({ domain, text, onClose }: PasteZoneProps) {
  const { ID: id } = domain;
  const t = useTexts();
  const { client, queries } = useData();
  const [ZoneFile, setZoneFile] = useState(text);
  const [Mode, setMode] = useState<Mode>("Merge");
  const [preview, setPreview] = useState<readonly AppliedChange[]>();
  const body = { ZoneFile, Mode };
  const check = useDryRun(ZoneFile.trim() === "" ? null : body, async (input, signal) => {
    const { Records } = await client.importZone({ path: { id }, body: input }, { dryRun: true, signal });
    setPreview(Records);
  });
  const { run, isBusy, error } = useChange(() => client.importZone({ path: { id }, body }), {
    done: ({ Serial }) => t.records.applied(domain.Name, Serial),
    onDone() {
      void queries.invalidateQueries({ queryKey: ["domain", "one", id] });
      onClose();
    },
    undo: useUndoVersion(domain),
    isQuiet: true,
    request: body,
  });
  const shown = error ?? check.error;
  const isReady = ZoneFile.trim() !== "" && !check.isChecking && check.error === null && preview !== undefined;
  return (
    <Dialog label={t.records.paste} kind="wide" onClose={onClose}>
      <div className="inner">
        <DialogHead title={t.records.paste} onClose={onClose} />
        <p className="muted">{t.records.pasteAbout}</p>
        <FileTextField label={t.domains.zone} rows={8} autoFocus value={ZoneFile} onText={setZoneFile} />
        <SelectField
          label={t.records.pasteMode}
          value={Mode}
          options={[
            ["Merge", t.records.merge],
            ["Replace", t.records.replace],
          ]}
          onChange={({ target }) => setMode(target.value as Mode)}
        />
        {shown !== null && <ErrorBox text={errorText(shown, t)} />}
        {isReady &&
          (preview.length === 0 ? <Note>{t.records.previewNone}</Note> : <Diff domain={domain} changes={preview} />)}
        <RequestPanel
          request={{
            operation: "importZone",
            path: { id },
            body: { ZoneFile: "", Mode },
            files: { ZoneFile: `${domain.NamePunyCode}.zone` },
          }}
        />
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
