/** Claims a name, and shows the record that proves the claim, until the service has found it. */
import { type Claim, claimLimits } from "@brume/api/claim.ts";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "../../data/change.ts";
import { useData, useMayOwnDomains } from "../../data/data.tsx";
import { FormDialog } from "../../data/formdialog.tsx";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { OtherFields } from "../../data/schemafields.tsx";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogHead } from "../../ui/dialog.tsx";
import { TextField } from "../../ui/field.tsx";
import { Facts, State, type Tone } from "../../ui/page.tsx";

export const claimTones = {
  Pending: "busy",
  Completed: "good",
  Failed: "bad",
} as const satisfies Readonly<Record<Claim["State"], Tone>>;

/** Seconds that a request waits for the result of the check. */
const wait = 10;
const placed: ReadonlySet<string> = new Set(["Name"]);

export function CreateClaim({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const go = useNavigate();
  const { client } = useData();
  const { q = "" } = useSearch({ from: "/dns" });
  const [form, setForm] = useState<Readonly<Record<string, unknown>> & { readonly Name: string }>({ Name: q });
  const body = form;
  return (
    <FormDialog
      title={t.claims.create}
      about={t.claims.createAbout(claimLimits.days)}
      action={t.claims.create}
      request={{ operation: "createClaim", body }}
      isComplete={form.Name !== ""}
      send={(options) => client.createClaim({ body }, options)}
      done={({ Name }) => t.claims.created(Name)}
      onDone={({ ID }) => void go({ to: "/dns", search: { tab: "claims", claim: String(ID) }, replace: true })}
      onClose={onClose}
    >
      {(error) => (
        <>
          <TextField
            label={t.domains.name}
            hint={t.domains.nameHint}
            error={error("/Name")}
            required
            spellCheck={false}
            value={form.Name}
            onChange={({ target }) => setForm({ ...form, Name: target.value })}
          />
          <OtherFields
            operation="createClaim"
            placed={placed}
            value={form}
            error={error}
            onChange={(part) => setForm({ ...form, ...part })}
          />
        </>
      )}
    </FormDialog>
  );
}

interface ClaimProps {
  readonly claim: Claim;
  readonly onDelete: () => void;
  readonly onClose: () => void;
}

export function ClaimDialog({ claim, onDelete, onClose }: ClaimProps) {
  const t = useTexts();
  const format = useFormat();
  const { client } = useData();
  const mayOwn = useMayOwnDomains();
  const { Name, State: state, RecordName, RecordText, Detail, DomainID, DateCheck, DateExpire } = claim;
  const isPending = state === "Pending";
  const body = { Name: claim.NamePunyCode };
  const check = useChange(() => client.createClaim({ body }, { wait }), {
    done: (after) => (after.State === "Completed" ? t.claims.proven(Name) : t.claims.notProven),
  });
  const title = t.claims.title(Name);
  return (
    <Dialog label={title} kind="wide" onClose={onClose}>
      <div className="inner">
        <DialogHead title={title} onClose={onClose} />
        <div className="line">
          <State tone={claimTones[state]}>{t.claims.states[state]}</State>
          <span className="muted break" role="status">
            {t.errors.detail(Detail)}
          </span>
        </div>
        {isPending && (
          <>
            <ol className="marked stack tight">
              <li>{t.claims.where(Name)}</li>
              <li>
                {t.claims.publish}
                <Facts
                  facts={[
                    { name: t.claims.record, value: <code className="break">{RecordName}</code>, copy: RecordName },
                    { name: t.records.type, value: <code>TXT</code> },
                    { name: t.claims.text, value: <code className="break">{RecordText}</code>, copy: RecordText },
                  ]}
                />
              </li>
              <li>{mayOwn ? t.claims.press(format.time(DateExpire)) : t.claims.wait(format.time(DateExpire))}</li>
            </ol>
            <p className="muted">{t.claims.moves}</p>
          </>
        )}
        <Facts
          facts={[
            { name: t.claims.checked, value: DateCheck === null ? t.common.never : format.ago(DateCheck) },
            DomainID !== null && {
              name: t.access.domain,
              value: (
                <Link to="/dns/$id" params={{ id: String(DomainID) }}>
                  {Name}
                </Link>
              ),
            },
          ]}
        />
        {isPending && mayOwn && <RequestPanel request={{ operation: "createClaim", body }} />}
        {mayOwn && (
          <div className="line end">
            <Button icon="trash" onClick={onDelete}>
              {isPending ? t.claims.cancel : t.common.delete}
            </Button>
            {isPending && (
              <Button
                kind="primary"
                icon="refresh"
                isBusy={check.isBusy}
                onClick={() => void check.run(undefined).catch(() => undefined)}
              >
                {t.claims.check}
              </Button>
            )}
          </div>
        )}
      </div>
    </Dialog>
  );
}
