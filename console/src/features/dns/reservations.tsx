/** Names that the operator reserves for one project or for none, with all names below them. */
import type { Reservation } from "@brume/api/claim.ts";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo, useState } from "react";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData } from "../../data/data.tsx";
import { FormDialog } from "../../data/formdialog.tsx";
import { ObjectList } from "../../data/objectlist.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useOtherFields } from "../../data/schemafields.tsx";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import type { Column } from "../../ui/columns.ts";
import { Empty } from "../../ui/feedback.tsx";
import { SelectField, TextField } from "../../ui/field.tsx";
import { rowButton } from "../../ui/rowbutton.tsx";
import { timeColumn } from "../../ui/timecolumn.tsx";
import { useNameFilter } from "./namefilter.ts";

/** Reservations have no events. */
function useRefresh() {
  const { queries } = useData();
  return () => void queries.invalidateQueries({ queryKey: ["reservation"] });
}

export function ReservationList({ button }: { button: ReactNode }) {
  const t = useTexts();
  const format = useFormat();
  const filter = useNameFilter(t.reserved.noMatch);
  const { client } = useData();
  const refresh = useRefresh();
  const query = useQuery(queriesOf(client).reservations());
  const projects = useQuery(queriesOf(client).projects()).data?.Projects;
  const [deleting, setDeleting] = useState<Reservation | null>(null);
  const columns = useMemo<Column<Reservation>[]>(
    () => [
      {
        id: "name",
        name: t.reserved.name,
        width: "minmax(140px, 2fr)",
        isMain: true,
        cell: ({ Name }) => <strong>{Name}</strong>,
      },
      {
        id: "project",
        name: t.reserved.project,
        width: "minmax(120px, 1fr)",
        isMain: true,
        cell: ({ ProjectID }) =>
          ProjectID === null ? (
            <span className="muted">{t.reserved.none}</span>
          ) : (
            (projects?.find(({ ID }) => ID === ProjectID)?.Name ?? `#${ProjectID}`)
          ),
      },
      timeColumn({ id: "created", name: t.common.created, format, timeOf: ({ DateCreate }) => DateCreate }),
      rowButton<Reservation>({
        name: t.reserved.release,
        icon: "trash",
        labelOf: ({ Name }) => t.reserved.releaseTitle(Name),
        onPress: setDeleting,
      }),
    ],
    [t, format, projects],
  );
  return (
    <>
      <p className="muted">{t.reserved.about}</p>
      <ObjectList
        label={t.domains.tabs.reserved}
        query={query}
        columns={columns}
        idOf={({ ID }) => ID}
        nameOf={({ Name }) => Name}
        filter={filter}
        empty={
          <Empty
            icon="dns"
            title={t.reserved.emptyTitle}
            action={button}
            command="brume reservation create example.com"
          >
            {t.reserved.emptyAbout}
          </Empty>
        }
      />
      {deleting !== null && (
        <ConfirmRequest
          title={t.reserved.releaseTitle(deleting.Name)}
          action={t.reserved.release}
          request={{ operation: "deleteReservation", path: { id: deleting.ID } }}
          send={() => client.deleteReservation({ path: { id: deleting.ID } })}
          done={() => t.reserved.released(deleting.Name)}
          onDone={refresh}
          onClose={() => setDeleting(null)}
        >
          <p>{t.reserved.releaseAbout}</p>
        </ConfirmRequest>
      )}
    </>
  );
}

const placed: ReadonlySet<string> = new Set(["Name", "ProjectID"]);

export function CreateReservation({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const { client } = useData();
  const refresh = useRefresh();
  const projects = useQuery(queriesOf(client).projects()).data?.Projects ?? [];
  const [Name, setName] = useState("");
  const [ProjectID, setProject] = useState("");
  const { others, renderOthers } = useOtherFields("createReservation", placed);
  const body = { Name, ...(ProjectID !== "" && { ProjectID: Number(ProjectID) }), ...others };
  return (
    <FormDialog
      title={t.reserved.create}
      about={t.reserved.createAbout}
      action={t.reserved.create}
      request={{ operation: "createReservation", body }}
      isComplete={Name !== ""}
      send={(options) => client.createReservation({ body }, options)}
      done={() => t.reserved.created(Name)}
      undo={({ ID: id, Name: name }) => ({
        run: () => client.deleteReservation({ path: { id } }).then(refresh),
        done: t.reserved.released(name),
        of: `reservation:${id}`,
      })}
      onDone={() => {
        refresh();
        onClose();
      }}
      onClose={onClose}
    >
      {(error) => (
        <>
          <TextField
            label={t.reserved.name}
            hint={t.domains.nameHint}
            error={error("/Name")}
            required
            spellCheck={false}
            value={Name}
            onChange={({ target }) => setName(target.value)}
          />
          <SelectField
            label={t.reserved.project}
            error={error("/ProjectID")}
            value={ProjectID}
            options={[["", t.reserved.none], ...projects.map(({ ID, Name: name }) => [String(ID), name] as const)]}
            onChange={({ target }) => setProject(target.value)}
          />
          {renderOthers(error)}
        </>
      )}
    </FormDialog>
  );
}
