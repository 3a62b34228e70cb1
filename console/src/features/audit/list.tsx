/** The audit log: every requested change with its token, address and result. Identical rejections are one row with their number. */
import type { AuditEntry } from "@brume/api/account.ts";
import { routes } from "@brume/api/routes.ts";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { objectsOf, operationName } from "../../data/auditview.ts";
import { useData } from "../../data/data.tsx";
import { errorText } from "../../data/errortext.ts";
import { NumberedObject } from "../../data/eventlink.tsx";
import { type AuditFilter, queriesOf } from "../../data/queries.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { DataTable } from "../../ui/datatable.tsx";
import { Empty, ErrorBox, Skeleton } from "../../ui/feedback.tsx";
import { SearchFilter, SelectFilter } from "../../ui/filters.tsx";
import { None, State } from "../../ui/page.tsx";
import { rowButton } from "../../ui/rowbutton.tsx";
import { AuditDetails } from "./details.tsx";

/** Entries that are read at first, and with each request for more. */
const step = 200;
const most = 1000;

/** Beginnings of operations, as the API filters them. */
const families = ["create*", "update*", "delete*"] as const;
/** Operations that change something. */
const operations = Object.entries(routes)
  .filter(([, { method }]) => method !== "GET")
  .map(([name]) => name);

export function AuditList() {
  const t = useTexts();
  const format = useFormat();
  const go = useNavigate({ from: "/activity/audit" });
  const search = useSearch({ from: "/activity/audit" });
  const [limit, setLimit] = useState(step);
  const [shown, setShown] = useState<AuditEntry | null>(null);
  const { client } = useData();
  const reads = queriesOf(client);
  const tokens = useQuery(reads.tokens()).data ?? [];
  const [kind = "", id = ""] = (search.resource ?? "").split(":");
  const filter = filterOf(search);
  const { data: entries, error, refetch } = useQuery(reads.audit(filter, limit));
  const objects = useMemo(() => objectsOf(entries ?? []), [entries]);
  const columns = useMemo<Column<AuditEntry>[]>(
    () => [
      {
        id: "time",
        name: t.activity.time,
        width: "136px",
        isBelow: true,
        cell: ({ Date: date }) => (
          <time dateTime={date} title={format.exact(date)} className="muted number">
            {format.moment(date)}
          </time>
        ),
      },
      {
        id: "operation",
        name: t.audit.operation,
        width: "minmax(160px, 1.5fr)",
        isMain: true,
        cell: ({ Operation, Count }) => (
          <span className="two-lines full">
            <span title={Operation}>{operationName(Operation, t)}</span>{" "}
            {Count > 1 && <span className="tag number">{t.audit.times(Count, format.number(Count))}</span>}
          </span>
        ),
      },
      {
        id: "status",
        name: t.audit.status,
        width: "76px",
        isMain: true,
        cell: ({ Status }) => <State tone={Status < 400 ? "good" : Status < 500 ? "warn" : "bad"}>{Status}</State>,
      },
      {
        id: "object",
        name: t.activity.object,
        width: "minmax(150px, 2fr)",
        isBelow: true,
        isAbsent: ({ Resource }) => Resource === null,
        cell: ({ ID, Resource }) => {
          const object = objects.get(ID);
          if (object !== undefined) return <NumberedObject event={object} />;
          return Resource === null ? <None /> : (t.activity.kinds[Resource] ?? Resource);
        },
      },
      {
        id: "token",
        name: t.activity.token,
        width: "minmax(100px, 1fr)",
        cell: ({ TokenName }) => TokenName || <None />,
      },
      {
        id: "address",
        name: t.access.address,
        width: "minmax(110px, 1fr)",
        cell: ({ Address }) => (Address === "" ? <None /> : <span className="mono">{Address}</span>),
      },
      rowButton<AuditEntry>({
        name: t.activity.details,
        icon: "info",
        labelOf: ({ Operation, ID }) => `${t.activity.details}: ${operationName(Operation, t)} ${ID}`,
        onPress: setShown,
      }),
    ],
    [t, format, objects],
  );
  const names = useMemo(
    () => [
      ...families.map((name) => [name, t.audit.all[name]] as const),
      ...operations
        .map((name) => [name, operationName(name, t)] as const)
        .sort(([, a], [, b]) => a.localeCompare(b, format.locale)),
    ],
    [t, format],
  );
  const set = (part: Partial<typeof search>): void => {
    void go({ search: (before) => ({ ...before, ...part }), replace: true });
  };
  const day = (name: "from" | "to", label: string) => (
    <label>
      <span className="muted small">{label}</span>
      <input
        className="input"
        type="date"
        value={search[name] ?? ""}
        onChange={({ target }) => set({ [name]: target.value })}
      />
    </label>
  );
  const isFiltered = Object.values(search).some((value) => value !== "");
  return (
    <>
      <p className="muted">{t.audit.about}</p>
      <div className="filters">
        <SelectFilter
          label={t.activity.token}
          any={t.audit.anyToken}
          value={search.token ?? ""}
          options={tokens.map(({ ID, Name }) => [String(ID), Name])}
          onChange={(token) => set({ token })}
        />
        <SelectFilter
          label={t.activity.object}
          any={t.audit.anyObject}
          value={kind}
          options={Object.entries(t.activity.kinds)}
          onChange={(next) => set({ resource: next })}
        />
        {kind !== "" && (
          <SearchFilter
            label={t.audit.id}
            value={id}
            onChange={(next) => {
              const digits = next.replaceAll(/\D/g, "").slice(0, 10);
              set({ resource: digits === "" ? kind : `${kind}:${digits}` });
            }}
          />
        )}
        <SelectFilter
          label={t.audit.operation}
          any={t.audit.anyOperation}
          value={search.operation ?? ""}
          options={names}
          onChange={(operation) => set({ operation })}
        />
        <span className="pair">
          {day("from", t.audit.from)}
          {day("to", t.audit.to)}
        </span>
        {isFiltered && (
          <Button kind="quiet" onClick={() => void go({ search: {}, replace: true })}>
            {t.servers.clearFilter}
          </Button>
        )}
      </div>
      {error ? (
        <ErrorBox text={errorText(error, t)} onRetry={() => void refetch()} />
      ) : entries === undefined ? (
        <Skeleton lines={8} />
      ) : (
        <>
          <DataTable
            label={t.activity.tabs.audit}
            columns={columns}
            rows={entries}
            idOf={({ ID }) => ID}
            nameOf={({ Operation }) => operationName(Operation, t)}
            rowClass={({ Status }) => (Status < 400 ? "" : "rejected")}
            empty={<Empty icon="activity" title={isFiltered ? t.audit.noMatch : t.audit.empty} />}
          />
          {entries.length === limit && limit < most && (
            <div className="line">
              <Button onClick={() => setLimit(most)}>{t.audit.more}</Button>
            </div>
          )}
        </>
      )}
      {shown !== null && <AuditDetails entry={shown} object={objects.get(shown.ID)} onClose={() => setShown(null)} />}
    </>
  );
}

/** Returns the filter of the API. Days are those of this browser. */
function filterOf(search: {
  token?: string;
  resource?: string;
  operation?: string;
  from?: string;
  to?: string;
}): AuditFilter {
  const { token = "", resource = "", operation = "", from = "", to = "" } = search;
  const start = (day: string, later: number): string => {
    const date = new Date(`${day}T00:00:00`);
    date.setDate(date.getDate() + later);
    return date.toISOString();
  };
  const isDay = (day: string): boolean => !Number.isNaN(Date.parse(`${day}T00:00:00`));
  return {
    ...(/^\d+$/.test(token) && { token: Number(token) }),
    ...(resource !== "" && { resource }),
    ...(operation !== "" && { operation }),
    ...(isDay(from) && { from: start(from, 0) }),
    ...(isDay(to) && { to: start(to, 1) }),
  };
}
