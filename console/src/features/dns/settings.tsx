/** The labels of a domain, and its deletion. */
import type { Domain } from "@brume/api/dns.ts";
import { useNavigate } from "@tanstack/react-router";
import type { SubmitEvent } from "react";
import { useChange } from "../../data/change.ts";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData } from "../../data/data.tsx";
import { useDryRun } from "../../data/dryrun.ts";
import { placeErrors } from "../../data/errortext.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { LabelsField } from "../../data/schemafields.tsx";
import { useTouched } from "../../data/touched.ts";
import { hasFields, useUndo } from "../../data/undo.ts";
import { Unplaced } from "../../data/unplaced.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Panel } from "../../ui/page.tsx";
import { Removal } from "../../ui/removal.tsx";

export function DomainSettings({ domain }: { domain: Domain }) {
  const t = useTexts();
  const { client } = useData();
  const path = { id: domain.ID };
  const { form, changed: body, hasChanged, set, save } = useTouched({ Labels: domain.Labels });
  const check = useDryRun(hasChanged ? body : null, (input, signal) =>
    client.updateDomain({ path, body: input }, { dryRun: true, signal }),
  );
  const undo = useUndo();
  const before = domain.Labels;
  const { run, isBusy, error } = useChange(() => client.updateDomain({ path, body }), {
    done: () => t.networks.saved(domain.Name),
    undo: () => ({
      run: undo({
        read: () => client.raw.readDomain({ path }),
        isSame: (now) => hasFields(now, body),
        write: (options) => client.updateDomain({ path, body: { Labels: before } }, options),
      }),
      done: t.common.undone(domain.Name),
      of: `domain:${path.id}`,
    }),
    isQuiet: true,
    request: body,
  });
  const shown = error ?? check.error;
  const errors = placeErrors(shown, t);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void save(run(undefined));
  };
  return (
    <div className="stack">
      <Panel title={t.common.labels}>
        <form className="stack" onSubmit={submit}>
          <LabelsField
            name={t.common.labels}
            value={form.Labels}
            error={errors.at("/Labels")}
            onChange={(value) => set({ Labels: (value ?? {}) as Domain["Labels"] })}
          />
          <Unplaced error={shown} errors={errors} />
          {hasChanged && <RequestPanel request={{ operation: "updateDomain", path, body }} />}
          <div className="line">
            <Button type="submit" kind="primary" isBusy={isBusy} disabled={!hasChanged}>
              {t.common.save}
            </Button>
          </div>
        </form>
      </Panel>
      <DomainRemoval domain={domain} />
    </div>
  );
}

function DomainRemoval({ domain }: { domain: Domain }) {
  const t = useTexts();
  const go = useNavigate();
  const { client } = useData();
  const path = { id: domain.ID };
  return (
    <Removal
      title={t.records.deleteTitle(domain.Name)}
      about={t.records.deleteAbout}
      dialog={(onClose) => (
        <ConfirmRequest
          title={t.records.deleteTitle(domain.Name)}
          action={t.common.delete}
          typed={domain.Name}
          request={{ operation: "deleteDomain", path }}
          send={() => client.deleteDomain({ path })}
          done={() => t.domains.deleted(domain.Name)}
          onDone={() => void go({ to: "/dns" })}
          onClose={onClose}
        >
          <p>{t.records.deleteAbout}</p>
        </ConfirmRequest>
      )}
    />
  );
}
