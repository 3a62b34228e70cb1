/** Domains that the project has lost to a proven claim: why, and their records, until the project deletes them. */
import type { WithdrawnDomain } from "@brume/api/claim.ts";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { ConfirmRequest } from "../../data/confirmrequest.tsx";
import { useData, useMayOwnDomains } from "../../data/data.tsx";
import { errorText } from "../../data/errortext.ts";
import { ObjectList } from "../../data/objectlist.tsx";
import { queriesOf } from "../../data/queries.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { Dialog, DialogHead } from "../../ui/dialog.tsx";
import { Code, Empty, ErrorBox, Skeleton } from "../../ui/feedback.tsx";
import { rowButton } from "../../ui/rowbutton.tsx";
import { timeColumn } from "../../ui/timecolumn.tsx";
import { saveZone } from "./export.ts";
import { useNameFilter } from "./namefilter.ts";

export function WithdrawnList() {
  const t = useTexts();
  const format = useFormat();
  const filter = useNameFilter(t.domains.noMatch);
  const { client, queries } = useData();
  const mayOwn = useMayOwnDomains();
  const query = useQuery(queriesOf(client).withdrawnDomains());
  const [shown, setShown] = useState<WithdrawnDomain | null>(null);
  const [deleting, setDeleting] = useState<WithdrawnDomain | null>(null);
  const columns = useMemo<Column<WithdrawnDomain>[]>(
    () => [
      {
        id: "name",
        name: t.domains.name,
        width: "minmax(140px, 2fr)",
        isMain: true,
        cell: ({ Name }) => <strong>{Name}</strong>,
      },
      {
        id: "records",
        name: t.records.tabs.records,
        width: "84px",
        isRight: true,
        cell: ({ Records }) => format.number(Records),
      },
      {
        id: "reason",
        name: t.withdrawn.reason,
        width: "minmax(180px, 3fr)",
        isBelow: true,
        cell: ({ Reason }) => (
          <span className="muted" title={Reason}>
            {Reason}
          </span>
        ),
      },
      timeColumn({ id: "date", name: t.withdrawn.date, format, timeOf: ({ Date: date }) => date }),
      rowButton<WithdrawnDomain>({
        name: t.records.export,
        icon: "file",
        labelOf: ({ Name }) => t.withdrawn.show(Name),
        onPress: setShown,
      }),
      ...(mayOwn
        ? [
            rowButton<WithdrawnDomain>({
              name: t.common.delete,
              icon: "trash",
              labelOf: ({ Name }) => t.records.deleteTitle(Name),
              onPress: setDeleting,
            }),
          ]
        : []),
    ],
    [t, format, mayOwn],
  );
  return (
    <>
      <p className="muted">{t.withdrawn.about}</p>
      <ObjectList
        label={t.domains.tabs.withdrawn}
        query={query}
        columns={columns}
        idOf={({ ID }) => ID}
        nameOf={({ Name }) => Name}
        filter={filter}
        empty={
          <Empty icon="dns" title={t.withdrawn.emptyTitle}>
            {t.withdrawn.emptyAbout}
          </Empty>
        }
      />
      {shown !== null && <ZoneDialog domain={shown} onClose={() => setShown(null)} />}
      {deleting !== null && (
        <ConfirmRequest
          title={t.records.deleteTitle(deleting.Name)}
          action={t.common.delete}
          typed={deleting.Name}
          request={{ operation: "deleteWithdrawnDomain", path: { id: deleting.ID } }}
          send={() => client.deleteWithdrawnDomain({ path: { id: deleting.ID } })}
          done={() => t.access.deleted(deleting.Name)}
          // The deletion has no event.
          onDone={() => void queries.invalidateQueries({ queryKey: ["withdrawn"] })}
          onClose={() => setDeleting(null)}
        >
          <p>{t.withdrawn.deleteAbout}</p>
        </ConfirmRequest>
      )}
    </>
  );
}

function ZoneDialog({ domain, onClose }: { domain: WithdrawnDomain; onClose: () => void }) {
  const t = useTexts();
  const { ID: id, Name, NamePunyCode, Reason } = domain;
  const { data, error, refetch } = useQuery(queriesOf(useData().client).withdrawnDomain(id));
  const title = t.withdrawn.show(Name);
  return (
    <Dialog label={title} kind="wide" onClose={onClose}>
      <div className="inner">
        <DialogHead title={title} onClose={onClose} />
        <p className="muted break">{Reason}</p>
        {error ? (
          <ErrorBox text={errorText(error, t)} onRetry={() => void refetch()} />
        ) : data === undefined ? (
          <Skeleton lines={4} />
        ) : (
          <Code text={data.ZoneFile} />
        )}
        <RequestPanel request={{ operation: "readWithdrawnDomain", path: { id } }} />
        <div className="line end">
          <Button
            kind="primary"
            icon="download"
            disabled={data === undefined}
            onClick={() => saveZone(NamePunyCode, data?.ZoneFile ?? "")}
          >
            {t.records.export}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
