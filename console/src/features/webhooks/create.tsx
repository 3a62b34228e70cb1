/** Creates a webhook. Its secret, which the service makes, is shown once. */
import { eventResourceNames } from "@brume/api/event.ts";
import type { Webhook } from "@brume/api/webhook.ts";
import { useState } from "react";
import { useChange } from "../../data/change.ts";
import { useData } from "../../data/data.tsx";
import { FormDialog } from "../../data/formdialog.tsx";
import { useOtherFields } from "../../data/schemafields.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { Check, TextField } from "../../ui/field.tsx";
import { SecretDialog } from "../../ui/secret.tsx";

const placed: ReadonlySet<string> = new Set(["Url", "Types"]);

export function CreateWebhook({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const { client } = useData();
  const [Url, setUrl] = useState("");
  const [kinds, setKinds] = useState<readonly string[]>([]);
  const { others, renderOthers } = useOtherFields("createWebhook", placed);
  const [made, setMade] = useState<Webhook | null>(null);
  // The message comes after the secret, which covers it.
  const { run: announce } = useChange(async (made: Webhook) => made, {
    done: (made) => t.access.created(made.Url),
    undo: ({ ID: id, Url }) => ({
      run: () => client.deleteWebhook({ path: { id } }),
      done: t.access.deleted(Url),
      of: `webhook:${id}`,
    }),
  });
  const close = (made: Webhook): void => {
    void announce(made);
    onClose();
  };
  const body = { Url, ...(kinds.length > 0 && { Types: kinds.map((kind) => `${kind}.*`) }), ...others };
  if (made !== null)
    return <SecretDialog title={t.webhooks.secretTitle} secret={made.Secret} onClose={() => close(made)} />;
  return (
    <FormDialog
      title={t.webhooks.create}
      action={t.webhooks.create}
      kind="wide"
      request={{ operation: "createWebhook", body }}
      isComplete={Url !== ""}
      send={(options) => client.createWebhook({ body }, options)}
      // A secret that the user has given is not shown again.
      onDone={(webhook) => (webhook.Secret === "" ? close(webhook) : setMade(webhook))}
      onClose={onClose}
    >
      {(error) => (
        <>
          <TextField
            label={t.webhooks.url}
            hint={t.webhooks.urlHint}
            type="url"
            required
            autoFocus
            spellCheck={false}
            placeholder="https://"
            error={error("/Url")}
            value={Url}
            onChange={({ target }) => setUrl(target.value)}
          />
          <fieldset className="stack tight">
            <legend className="field-label">{t.webhooks.types}</legend>
            <p className="muted small">{kinds.length === 0 ? t.webhooks.allTypes : t.webhooks.someTypes}</p>
            <div className="columns narrow">
              {eventResourceNames.map((kind) => (
                <Check
                  key={kind}
                  label={t.activity.kinds[kind] ?? kind}
                  checked={kinds.includes(kind)}
                  onChange={({ target }) =>
                    setKinds(eventResourceNames.filter((one) => (one === kind ? target.checked : kinds.includes(one))))
                  }
                />
              ))}
            </div>
          </fieldset>
          {renderOthers(error)}
        </>
      )}
    </FormDialog>
  );
}
