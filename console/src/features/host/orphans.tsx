/** Servers, images and snapshots on the host that the database does not contain. One adopts or deletes them. */
import type { Orphan } from "@brume/api/orphan.ts";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData } from "../../data/data.tsx";
import { errorText } from "../../data/errortext.ts";
import { FormDialog } from "../../data/formdialog.tsx";
import { imageName } from "../../data/image.ts";
import { queriesOf } from "../../data/queries.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import type { Column } from "../../ui/columns.ts";
import { DataTable } from "../../ui/datatable.tsx";
import { ErrorBox, Skeleton } from "../../ui/feedback.tsx";
import { SelectField, TextField } from "../../ui/field.tsx";
import { Panel, State } from "../../ui/page.tsx";
import { rowButton } from "../../ui/rowbutton.tsx";
import { timeColumn } from "../../ui/timecolumn.tsx";

export function Orphans() {
  const t = useTexts();
  const format = useFormat();
  const { client } = useData();
  const { data: orphans, error, refetch } = useQuery(queriesOf(client).orphans());
  const [adopting, setAdopting] = useState<Orphan | null>(null);
  const [deleting, setDeleting] = useState<Orphan | null>(null);
  const nameOf = ({ Kind, Name, Number: id }: Orphan): string => `${t.orphans.kinds[Kind]} ${Name || id}`;
  const columns = useMemo<Column<Orphan>[]>(
    () => [
      {
        id: "name",
        name: t.common.name,
        width: "minmax(140px, 2fr)",
        isMain: true,
        cell: ({ Name, Number: id }) => Name || `#${id}`,
      },
      { id: "kind", name: t.images.type, width: "100px", isMain: true, cell: ({ Kind }) => t.orphans.kinds[Kind] },
      {
        id: "size",
        name: t.servers.size,
        width: "minmax(190px, 1fr)",
        cell: ({ CPU, RAM, HDD }) => t.servers.sizeOf(CPU, format.megabytes(RAM), format.megabytes(HDD * 1024)),
      },
      {
        id: "used",
        name: t.orphans.used,
        width: "110px",
        cell: ({ Bytes }) => <span className="number">{format.megabytes(Math.ceil(Bytes / 2 ** 20))}</span>,
      },
      {
        id: "state",
        name: t.common.state,
        width: "130px",
        cell: ({ State: state }) => <State tone={state === "Held" ? "quiet" : "busy"}>{t.orphans.states[state]}</State>,
      },
      timeColumn({ id: "found", name: t.orphans.found, format, timeOf: ({ DateFound }) => DateFound }),
      rowButton<Orphan>({
        name: t.orphans.adopt,
        icon: "download",
        labelOf: (orphan) => t.orphans.adoptTitle(nameOf(orphan)),
        isAbsent: ({ Kind, State: state }) => Kind === "Snapshot" || state !== "Held",
        onPress: setAdopting,
      }),
      rowButton<Orphan>({
        name: t.common.delete,
        icon: "trash",
        labelOf: (orphan) => t.orphans.deleteTitle(nameOf(orphan)),
        isAbsent: ({ State: state }) => state !== "Held",
        onPress: setDeleting,
      }),
    ],
    [t, format],
  );
  if (error) return <ErrorBox text={errorText(error, t)} onRetry={() => void refetch()} />;
  return (
    <Panel title={t.orphans.title}>
      <div className="stack">
        <p className="muted">{orphans?.length === 0 ? t.orphans.none : t.orphans.about}</p>
        {orphans === undefined ? (
          <Skeleton lines={2} />
        ) : (
          orphans.length > 0 && (
            <DataTable
              label={t.orphans.title}
              columns={columns}
              rows={orphans}
              idOf={({ ID }) => ID}
              nameOf={({ Name }) => Name}
            />
          )
        )}
      </div>
      {adopting !== null && <Adopt orphan={adopting} name={nameOf(adopting)} onClose={() => setAdopting(null)} />}
      {deleting !== null && (
        <ConfirmRequest
          title={t.orphans.deleteTitle(nameOf(deleting))}
          action={t.common.delete}
          typed={deleting.Name || String(deleting.Number)}
          request={{ operation: "deleteOrphan", path: { id: deleting.ID } }}
          send={() => client.deleteOrphan({ path: { id: deleting.ID } })}
          done={() => t.servers.deleted(nameOf(deleting))}
          onClose={() => setDeleting(null)}
        >
          <p>{t.orphans.deleteAbout}</p>
        </ConfirmRequest>
      )}
    </Panel>
  );
}

function Adopt({ orphan, name, onClose }: { orphan: Orphan; name: string; onClose: () => void }) {
  const t = useTexts();
  const { client } = useData();
  const reads = queriesOf(client);
  const images = useQuery(reads.images()).data ?? [];
  const projects = useQuery(reads.projects()).data?.Projects ?? [];
  const [form, setForm] = useState({ Name: orphan.Name, ProjectID: "", ImageID: "" });
  const set = (part: Partial<typeof form>): void => setForm({ ...form, ...part });
  const { Name, ProjectID, ImageID } = form;
  const path = { id: orphan.ID };
  const body = {
    ...(Name !== "" && { Name }),
    ...(ProjectID !== "" && { ProjectID: Number(ProjectID) }),
    ...(ImageID !== "" && { ImageID: Number(ImageID) }),
  };
  return (
    <FormDialog
      title={t.orphans.adoptTitle(name)}
      about={orphan.Kind === "Server" ? t.orphans.adoptServer : t.orphans.adoptImage}
      action={t.orphans.adopt}
      request={{ operation: "adoptOrphan", path, body }}
      isComplete
      send={(options) => client.adoptOrphan({ path, body }, options)}
      done={() => t.orphans.adopted(Name)}
      onClose={onClose}
    >
      {(error) => (
        <>
          <TextField
            label={t.common.name}
            maxLength={64}
            error={error("/Name")}
            value={Name}
            onChange={({ target }) => set({ Name: target.value })}
          />
          <SelectField
            label={t.orphans.project}
            error={error("/ProjectID")}
            value={ProjectID}
            options={[["", t.orphans.ownProject], ...projects.map(({ ID, Name: name }) => [String(ID), name] as const)]}
            onChange={({ target }) => set({ ProjectID: target.value })}
          />
          {orphan.Kind === "Server" && (
            <SelectField
              label={t.servers.image}
              error={error("/ImageID")}
              value={ImageID}
              options={[
                ["", t.orphans.sameImage],
                ...images.map((image) => [String(image.ID), imageName(image)] as const),
              ]}
              onChange={({ target }) => set({ ImageID: target.value })}
            />
          )}
        </>
      )}
    </FormDialog>
  );
}
