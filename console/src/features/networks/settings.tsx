/** Name, bandwidth and labels of a network, and its deletion: of public and of private ones. */
import type { Network, PublicNetwork } from "@brume/api/network.ts";
import { useNavigate } from "@tanstack/react-router";
import type { SubmitEvent } from "react";
import { BandwidthField } from "../../data/bandwidthfield.tsx";
import { useChange } from "../../data/change.ts";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData } from "../../data/data.tsx";
import { useDryRun } from "../../data/dryrun.ts";
import { placeErrors } from "../../data/errortext.ts";
import type { Labels } from "../../data/label.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { LabelsField } from "../../data/schemafields.tsx";
import { useTouched } from "../../data/touched.ts";
import { hasFields, pickFields, useUndo } from "../../data/undo.ts";
import { Unplaced } from "../../data/unplaced.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { TextField } from "../../ui/field.tsx";
import { Panel } from "../../ui/page.tsx";
import { Removal } from "../../ui/removal.tsx";

interface Fields {
  readonly Name: string;
  /** Mbit/s, of a public network. Undefined: the field is empty. */
  readonly Bandwidth: number | undefined;
  readonly Labels: Labels;
}

export function NetworkSettings({ network }: { network: PublicNetwork | Network }) {
  const t = useTexts();
  const { client } = useData();
  const isPublic = "Id" in network;
  const path = { id: isPublic ? network.Id : network.ID };
  const { Name, Bandwidth, Labels } = network;
  const { form, changed: body, hasChanged, set, save } = useTouched<Fields>({ Name, Bandwidth, Labels });
  const operation = isPublic ? "updatePublicNetwork" : "updateNetwork";
  const check = useDryRun(hasChanged ? body : null, (input, signal) =>
    client[operation]({ path, body: input }, { dryRun: true, signal }),
  );
  const undo = useUndo();
  const before = pickFields<{ Name?: string; Bandwidth?: number; Labels?: Labels }>(network, body);
  const { run, isBusy, error } = useChange((): Promise<unknown> => client[operation]({ path, body }), {
    done: () => t.networks.saved(form.Name),
    undo: () => ({
      run: undo<PublicNetwork | Network>({
        read: () => client.raw[isPublic ? "readPublicNetwork" : "readNetwork"]({ path }),
        isSame: (now) => hasFields(now, body),
        write: (options) => client[operation]({ path, body: before }, options),
      }),
      done: t.common.undone(Name),
      of: `${isPublic ? "publicnetwork" : "network"}:${path.id}`,
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
      <Panel title={t.network.tabs.settings}>
        <form className="stack" onSubmit={submit}>
          <div className="columns">
            <TextField
              label={t.common.name}
              required
              maxLength={64}
              error={errors.at("/Name")}
              value={form.Name}
              onChange={({ target }) => set({ Name: target.value })}
            />
            {isPublic && (
              <BandwidthField
                value={form.Bandwidth}
                error={errors.at("/Bandwidth")}
                onChange={(value) => set({ Bandwidth: value })}
              />
            )}
            <LabelsField
              name={t.common.labels}
              value={form.Labels}
              error={errors.at("/Labels")}
              onChange={(value) => set({ Labels: (value ?? {}) as Labels })}
            />
          </div>
          <Unplaced error={shown} errors={errors} />
          {hasChanged && <RequestPanel request={{ operation, path, body }} />}
          <div className="line">
            <Button type="submit" kind="primary" isBusy={isBusy} disabled={!hasChanged}>
              {t.common.save}
            </Button>
          </div>
        </form>
      </Panel>
      <NetworkRemoval network={network} />
    </div>
  );
}

function NetworkRemoval({ network }: { network: PublicNetwork | Network }) {
  const t = useTexts();
  const go = useNavigate();
  const { client } = useData();
  const { Name, LinkedServers } = network;
  const isPublic = "Id" in network;
  const path = { id: isPublic ? network.Id : network.ID };
  const operation = isPublic ? "deletePublicNetwork" : "deleteNetwork";
  const about = isPublic ? t.network.deleteAbout : t.network.deletePrivateAbout;
  const isUsed = LinkedServers.length > 0;
  return (
    <Removal
      title={t.network.deleteTitle(Name)}
      about={isUsed ? t.network.inUse : about}
      isDisabled={isUsed || network.State === "Deleting"}
      dialog={(onClose) => (
        <ConfirmRequest
          title={t.network.deleteTitle(Name)}
          action={t.common.delete}
          typed={Name}
          request={{ operation, path }}
          send={() => client[operation]({ path })}
          done={() => t.networks.deleted(Name)}
          onDone={() => void go({ to: "/networks", search: isPublic ? {} : { tab: "private" } })}
          onClose={onClose}
        >
          <p>{about}</p>
        </ConfirmRequest>
      )}
    />
  );
}
