/** Backups of a server: the daily one, images that were made from its disk, and the way back to one of them. */
import type { Image } from "@brume/api/catalog.ts";
import type { Server } from "@brume/api/server.ts";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type SubmitEvent, useMemo, useState } from "react";
import { useChange } from "../../data/change.ts";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData, useMay } from "../../data/data.tsx";
import { imageName } from "../../data/image.ts";
import { queriesOf } from "../../data/queries.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { useTouched } from "../../data/touched.ts";
import { Unread } from "../../data/unread.tsx";
import { whyNot } from "../../data/whynot.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { DataTable } from "../../ui/datatable.tsx";
import { Empty, Skeleton } from "../../ui/feedback.tsx";
import { Check, SelectField } from "../../ui/field.tsx";
import { Panel, State } from "../../ui/page.tsx";
import { rowButton } from "../../ui/rowbutton.tsx";
import { CopyServer, TakeImage } from "./copies.tsx";

/** Days that a backup is kept. */
const periods = [7, 14, 21, 28] as const;

export function ServerBackups({ server }: { server: Server }) {
  const t = useTexts();
  const format = useFormat();
  const { client } = useData();
  const mayWrite = useMay("server:write");
  const read = useQuery(queriesOf(client).images());
  const images = read.data;
  const [open, setOpen] = useState<"image" | "copy" | null>(null);
  const [restoring, setRestoring] = useState<Image | null>(null);
  const rows = useMemo(
    () => images?.filter(({ ServerID }) => ServerID === server.ID).toSorted((a, b) => b.ID - a.ID),
    [images, server.ID],
  );
  const whyNoRebuild = server.IsProtected ? t.server.deleteProtected : whyNot(server, "Rebuild", t);
  const columns = useMemo<Column<Image>[]>(
    () => [
      {
        id: "name",
        name: t.common.name,
        width: "minmax(140px, 2fr)",
        isMain: true,
        cell: (image) => <strong>{imageName(image)}</strong>,
      },
      { id: "kind", name: t.images.type, width: "minmax(100px, 1fr)", cell: ({ Type }) => t.images.types[Type] },
      {
        id: "state",
        name: t.common.state,
        width: "130px",
        isBelow: true,
        cell: ({ State: state }) => (
          <State tone={state === "Active" ? "good" : state === "New" ? "busy" : "bad"}>{t.images.states[state]}</State>
        ),
      },
      {
        id: "created",
        name: t.common.created,
        width: "150px",
        isBelow: true,
        isNamed: true,
        cell: ({ DateCreate }) => (
          <time dateTime={DateCreate} title={format.time(DateCreate)} className="muted">
            {format.ago(DateCreate)}
          </time>
        ),
      },
      ...(mayWrite
        ? [
            rowButton<Image>({
              name: t.backups.restore,
              icon: "undo",
              width: "132px",
              labelOf: (image) => `${t.backups.restore}: ${imageName(image)}`,
              isAbsent: ({ State: state }) => state !== "Active" || whyNoRebuild !== undefined,
              onPress: setRestoring,
            }),
          ]
        : []),
    ],
    [t, format, mayWrite, whyNoRebuild],
  );
  return (
    <div className="stack">
      {mayWrite && <Daily key={server.ID} server={server} />}
      <Panel
        title={t.backups.title}
        actions={
          mayWrite && (
            <>
              <Button size="small" icon="copy" onClick={() => setOpen("copy")}>
                {t.copies.copy}
              </Button>
              <Button size="small" icon="image" onClick={() => setOpen("image")}>
                {t.copies.image}
              </Button>
            </>
          )
        }
      >
        {rows === undefined && read.error !== null ? (
          <Unread of={[read]} />
        ) : rows === undefined ? (
          <Skeleton lines={2} />
        ) : rows.length === 0 ? (
          <Empty icon="image" title={t.backups.none}>
            {t.backups.noneAbout}
          </Empty>
        ) : (
          <div className="stack">
            <p className="muted">
              {t.backups.about} {whyNoRebuild}
            </p>
            <DataTable label={t.backups.title} columns={columns} rows={rows} idOf={({ ID }) => ID} nameOf={imageName} />
            <Link to="/images">{t.backups.allImages}</Link>
          </div>
        )}
      </Panel>
      {open === "image" && <TakeImage server={server} onClose={() => setOpen(null)} />}
      {open === "copy" && <CopyServer server={server} onClose={() => setOpen(null)} />}
      {restoring !== null && (
        <ConfirmRequest
          title={t.backups.restoreTitle(server.Name)}
          action={t.backups.restore}
          typed={server.Name}
          request={{
            operation: "rebuildServer",
            path: { id: server.ID },
            body: { ImageId: String(restoring.ID) },
          }}
          send={() => client.rebuildServer({ path: { id: server.ID }, body: { ImageId: String(restoring.ID) } })}
          onClose={() => setRestoring(null)}
        >
          <p>{t.backups.restoreAbout(imageName(restoring))}</p>
          <p className="muted">{t.backups.restoreAdvice}</p>
        </ConfirmRequest>
      )}
    </div>
  );
}

function Daily({ server }: { server: Server }) {
  const t = useTexts();
  const { client } = useData();
  const { isBackupActive, BackupPeriod } = server;
  const { form, changed: body, hasChanged, set, save } = useTouched({ isBackupActive, BackupPeriod });
  const path = { id: server.ID };
  const { run, isBusy } = useChange(() => client.updateServer({ path, body }), { done: () => t.server.saved });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void save(run(undefined));
  };
  return (
    <Panel title={t.backups.daily}>
      <form className="stack" onSubmit={submit}>
        <Check
          label={t.backups.isActive}
          hint={t.backups.isActiveAbout}
          checked={form.isBackupActive}
          onChange={({ target }) => set({ isBackupActive: target.checked })}
        />
        <div className="columns">
          <SelectField
            label={t.backups.period}
            value={String(form.BackupPeriod)}
            disabled={!form.isBackupActive}
            options={periods.map((days) => [String(days), t.backups.days(days)])}
            onChange={({ target }) => set({ BackupPeriod: Number(target.value) })}
          />
        </div>
        {hasChanged && <RequestPanel request={{ operation: "updateServer", path, body }} />}
        <div className="line">
          <Button type="submit" kind="primary" isBusy={isBusy} disabled={!hasChanged}>
            {t.common.save}
          </Button>
        </div>
      </form>
    </Panel>
  );
}
