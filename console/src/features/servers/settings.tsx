/** Settings of a server: name, protection, size; and what destroys its data. */
import { ApiError } from "@brume/api/client.ts";
import type { Server, ServerEdit } from "@brume/api/server.ts";
import { sizes } from "@brume/api/serverinput.ts";
import { useQuery } from "@tanstack/react-query";
import { useLocation, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "../../data/change.ts";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData } from "../../data/data.tsx";
import { useDryRun } from "../../data/dryrun.ts";
import { placeErrors } from "../../data/errortext.ts";
import { imageName, isReady } from "../../data/image.ts";
import type { Labels } from "../../data/label.ts";
import { queriesOf } from "../../data/queries.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { LabelsField } from "../../data/schemafields.tsx";
import { useTouched } from "../../data/touched.ts";
import { hasFields, pickFields, useUndo } from "../../data/undo.ts";
import { Unplaced } from "../../data/unplaced.tsx";
import { whyNot } from "../../data/whynot.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Check, NumberField, SelectField, TextField } from "../../ui/field.tsx";
import { Panel } from "../../ui/page.tsx";
import { Removal } from "../../ui/removal.tsx";
import { DeleteServer } from "./power.tsx";

const numericSizes = [
  ["CPU", "cpu", ""],
  ["RAM", "memory", "MB"],
  ["HDD", "disk", "GB"],
] as const;

/** Undefined: the field is empty, and the size does not change. */
type Size = { readonly [Name in (typeof numericSizes)[number][0]]: number | undefined };

export function ServerSettings({ server }: { server: Server }) {
  const t = useTexts();
  const go = useNavigate();
  const { client } = useData();
  // The menu item leads to the size.
  const isForSize = useLocation({ select: ({ hash }) => hash === "resize" });
  const { Name, IsProtected, Labels, CPU, RAM, HDD } = server;
  const named = useTouched({ Name, IsProtected, Labels });
  const size = useTouched<Size>({ CPU, RAM, HDD });
  const path = { id: server.ID };
  const undo = useUndo();
  const rename = useChange((body: ServerEdit) => client.updateServer({ path, body }), {
    done: () => t.server.saved,
    undo: (_, body) => ({
      run: undo({
        read: () => client.raw.readServer({ path }),
        isSame: (now) => hasFields(now, body),
        write: (sure) => client.updateServer({ path, body: pickFields(server, body) }, sure),
      }),
      done: t.common.undone(Name),
      of: `server:${path.id}`,
    }),
    isQuiet: true,
    request: named.changed,
  });
  // An action, whose end has its own message. It has no undo: a disk does not shrink, and another size may restart the guest.
  const resize = useChange((body: ServerEdit) => client.updateServer({ path, body }), {
    isQuiet: true,
    request: size.changed,
  });
  // Whether the change needs a restart: a check of the same request that rejects one.
  const probe = useDryRun(size.hasChanged ? { ...size.changed, AllowRestart: false } : null, (body, signal) =>
    client.updateServer({ path, body }, { dryRun: true, signal }),
  );
  const isRestart = probe.error instanceof ApiError && probe.error.code === "restart_needed";
  const errors = placeErrors(rename.error, t);
  const sizeError = resize.error ?? (isRestart ? null : probe.error);
  const sizeErrors = placeErrors(sizeError, t);
  const requestOf = (body: ServerEdit) => ({ operation: "updateServer" as const, path, body });
  return (
    <div className="stack">
      <div className="columns">
        <Panel title={t.server.rename}>
          <form
            className="stack"
            onSubmit={(event) => {
              event.preventDefault();
              void named.save(rename.run(named.changed));
            }}
          >
            <TextField
              label={t.common.name}
              required
              maxLength={64}
              value={named.form.Name}
              error={errors.at("/Name")}
              onChange={({ target }) => named.set({ Name: target.value })}
            />
            <LabelsField
              name={t.common.labels}
              value={named.form.Labels}
              error={errors.at("/Labels")}
              onChange={(value) => named.set({ Labels: (value ?? {}) as Labels })}
            />
            <Check
              label={t.server.protect}
              checked={named.form.IsProtected}
              onChange={({ target }) => named.set({ IsProtected: target.checked })}
            />
            <Unplaced error={rename.error} errors={errors} />
            {named.hasChanged && <RequestPanel request={requestOf(named.changed)} />}
            <div className="line">
              <Button type="submit" kind="primary" isBusy={rename.isBusy} disabled={!named.hasChanged}>
                {t.common.save}
              </Button>
            </div>
          </form>
        </Panel>
        <Panel title={t.server.resize}>
          <form
            className="stack"
            onSubmit={(event) => {
              event.preventDefault();
              // The size is that of the server when the work has ended.
              resize.run(size.changed).catch(() => undefined);
            }}
          >
            <div className="columns">
              {numericSizes.map(([name, text, unit]) => (
                <NumberField
                  key={name}
                  autoFocus={isForSize && name === "CPU"}
                  label={t.create[text]}
                  unit={unit}
                  min={name === "HDD" ? HDD : sizes[name].minimum}
                  max={sizes[name].maximum}
                  step={name === "RAM" ? sizes.RAM.step : 1}
                  value={size.form[name]}
                  error={sizeErrors.at(`/${name}`)}
                  onChange={(value) => size.set({ [name]: value })}
                />
              ))}
            </div>
            <p className="muted small" role="status">
              {!size.hasChanged || !server.IsPowerOn || probe.isChecking
                ? t.server.resizeAbout
                : isRestart
                  ? t.server.resizeRestarts
                  : probe.error === null
                    ? t.server.resizeLive
                    : ""}
            </p>
            <Unplaced error={sizeError} errors={sizeErrors} />
            {size.hasChanged && <RequestPanel request={requestOf(size.changed)} />}
            <div className="line">
              <Button
                type="submit"
                isBusy={resize.isBusy}
                disabled={whyNot(server, "Resize", t) !== undefined || !size.hasChanged}
              >
                {t.server.resize}
              </Button>
            </div>
          </form>
        </Panel>
      </div>
      <Rebuild server={server} />
      <Removal
        title={t.server.deleteTitle(server.Name)}
        about={server.IsProtected ? t.server.deleteProtected : t.server.deleteAbout}
        isDisabled={whyNot(server, "Delete", t) !== undefined}
        dialog={(onClose) => (
          <DeleteServer server={server} onDone={() => void go({ to: "/servers" })} onClose={onClose} />
        )}
      />
    </div>
  );
}

function Rebuild({ server }: { server: Server }) {
  const t = useTexts();
  const { client } = useData();
  const images = useQuery(queriesOf(client).images()).data ?? [];
  const [image, setImage] = useState(String(server.ImageID));
  const [isOpen, setOpen] = useState(false);
  const selected = images.find(({ ID }) => String(ID) === image);
  return (
    <Panel title={t.server.rebuild} kind="danger">
      <div className="stack tight">
        <p className="muted">{t.server.rebuildAbout}</p>
        <SelectField
          label={t.servers.image}
          value={image}
          options={images.filter(isReady).map((one) => [String(one.ID), imageName(one)])}
          onChange={(event) => setImage(event.target.value)}
        />
        <div className="line">
          <Button
            kind="danger"
            disabled={server.IsProtected || whyNot(server, "Rebuild", t) !== undefined}
            onClick={() => setOpen(true)}
          >
            {t.server.rebuild}
          </Button>
        </div>
      </div>
      {isOpen && (
        <ConfirmRequest
          title={t.server.rebuildTitle(server.Name, selected === undefined ? "" : imageName(selected))}
          action={t.server.rebuild}
          typed={server.Name}
          request={{ operation: "rebuildServer", path: { id: server.ID }, body: { ImageId: image } }}
          send={() => client.rebuildServer({ path: { id: server.ID }, body: { ImageId: image } })}
          onClose={() => setOpen(false)}
        >
          <p>{t.server.rebuildAbout}</p>
        </ConfirmRequest>
      )}
    </Panel>
  );
}
