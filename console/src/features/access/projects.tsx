/** The projects of the installation with their quotas, and the usage of the own one. */
import type { Account } from "@brume/api/account.ts";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useAccount, useData } from "../../data/data.tsx";
import { errorText } from "../../data/errortext.ts";
import { queriesOf } from "../../data/queries.ts";
import { Unread } from "../../data/unread.tsx";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { DataTable } from "../../ui/datatable.tsx";
import { ErrorBox, Skeleton } from "../../ui/feedback.tsx";
import { HeadAction, isScarce, Meter, Panel, State } from "../../ui/page.tsx";
import { rowButton } from "../../ui/rowbutton.tsx";
import { CreateProject, EditProject, quotaUnits } from "./editproject.tsx";

type Summary = Account["Projects"][number];

export function Projects() {
  const t = useTexts();
  const { client, queries } = useData();
  const { data: account, error, refetch } = useQuery(queriesOf(client).projects());
  const own = useAccount()?.Token.ProjectID;
  const [isCreating, setCreating] = useState(false);
  const [editing, setEditing] = useState<Summary | null>(null);
  const [deleting, setDeleting] = useState<Summary | null>(null);
  // A token receives no events of other projects.
  const refresh = (): void => {
    for (const key of ["projects", "project"]) void queries.invalidateQueries({ queryKey: [key] });
  };
  const columns = useMemo<Column<Summary>[]>(
    () => [
      {
        id: "name",
        name: t.common.name,
        width: "minmax(140px, 2fr)",
        isMain: true,
        cell: ({ ID, Name }) => (
          <>
            <strong>{Name}</strong> {ID === own && <span className="tag">{t.access.currentProject}</span>}
          </>
        ),
      },
      { id: "id", name: "ID", width: "70px", cell: ({ ID }) => <span className="muted number">{ID}</span> },
      {
        id: "state",
        name: t.common.state,
        width: "120px",
        isMain: true,
        cell: ({ IsBlocked }) => (
          <State tone={IsBlocked ? "warn" : "good"}>{IsBlocked ? t.access.blocked : t.servers.states.Active}</State>
        ),
      },
      rowButton<Summary>({
        name: t.common.delete,
        icon: "trash",
        labelOf: ({ Name }) => t.access.deleteProject(Name),
        isAbsent: ({ ID }) => ID === own,
        onPress: setDeleting,
      }),
      // Each row has it, so it is at the end.
      rowButton<Summary>({
        name: t.access.editProject,
        icon: "edit",
        labelOf: ({ Name }) => `${t.access.editProject}: ${Name}`,
        onPress: setEditing,
      }),
    ],
    [t, own],
  );
  if (error) return <ErrorBox text={errorText(error, t)} onRetry={() => void refetch()} />;
  return (
    <>
      <HeadAction>
        <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
          {t.access.createProject}
        </Button>
      </HeadAction>
      <p className="muted">{t.access.projectsAbout}</p>
      {account === undefined ? (
        <Skeleton />
      ) : (
        <DataTable
          label={t.access.tabs.projects}
          columns={columns}
          rows={account.Projects}
          idOf={({ ID }) => ID}
          nameOf={({ Name }) => Name}
        />
      )}
      <Usage />
      {isCreating && <CreateProject onDone={refresh} onClose={() => setCreating(false)} />}
      {editing !== null && <EditProject id={editing.ID} onDone={refresh} onClose={() => setEditing(null)} />}
      {deleting !== null && (
        <ConfirmRequest
          title={t.access.deleteProject(deleting.Name)}
          action={t.common.delete}
          typed={deleting.Name}
          request={{ operation: "deleteProject", path: { id: deleting.ID } }}
          send={() => client.deleteProject({ path: { id: deleting.ID } })}
          done={() => t.access.deleted(deleting.Name)}
          onDone={refresh}
          onClose={() => setDeleting(null)}
        >
          <p>{t.access.deleteProjectAbout}</p>
        </ConfirmRequest>
      )}
    </>
  );
}

function Usage() {
  const t = useTexts();
  const format = useFormat();
  const read = useQuery(queriesOf(useData().client).project());
  const own = read.data;
  if (own === undefined) return read.error ? <Unread of={[read]} /> : <Skeleton />;
  return (
    <Panel title={`${t.access.usage}: ${own.Name}`}>
      <div className="columns">
        {Object.entries(own.Usage).map(([name, used]) => {
          const quota = name as keyof typeof own.Usage;
          const limit = own.Quotas[quota];
          const unit = quotaUnits[quota];
          const show = (value: number): string =>
            unit === undefined ? format.number(value) : format.megabytes(unit === "GB" ? value * 1024 : value);
          return (
            <div key={name} className="stack tight">
              <div className="line apart">
                <span>{t.access.quotas[name] ?? name}</span>
                <span className="line">
                  {isScarce(used, limit) && (
                    <State tone={used < limit ? "warn" : "bad"}>
                      {used < limit ? t.access.almostUsedUp : t.access.usedUp}
                    </State>
                  )}
                  <span className="muted number">{t.table.of(show(used), show(limit))}</span>
                </span>
              </div>
              <Meter label={t.access.quotas[name] ?? name} value={used} limit={limit} />
            </div>
          );
        })}
      </div>
    </Panel>
  );
}
