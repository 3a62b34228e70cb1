/** The list of servers: live states, a filter in the address, and actions on several servers. */
import type { Server } from "@brume/api/server.ts";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useDeferredValue, useMemo, useState } from "react";
import { useData, useMay } from "../../data/data.tsx";
import { queriesOf } from "../../data/queries.ts";
import { addressOf, serverState } from "../../data/serverview.ts";
import { troubleOf } from "../../data/trouble.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button, buttonClass } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { DataTable } from "../../ui/datatable.tsx";
import { Empty, Skeleton, TroubleBox } from "../../ui/feedback.tsx";
import { Icon } from "../../ui/icon.tsx";
import { PageHead, State } from "../../ui/page.tsx";
import { BulkBar } from "./bulk.tsx";
import { PowerMenu } from "./power.tsx";

/** Labels that the filter offers. */
const mostLabels = 200;
const stateNames = ["on", "off", "New", "Deleting", "Failed", "Blocked"] as const;

const matchesState = ({ State: state, IsPowerOn }: Server, wanted: string): boolean =>
  wanted === "on" || wanted === "off" ? state === "Active" && IsPowerOn === (wanted === "on") : state === wanted;

const labelsOf = ({ Labels }: Pick<Server, "Labels">): string[] =>
  Object.entries(Labels).map(([key, value]) => (value === "" ? key : `${key}=${value}`));

const matchesText = (server: Server, text: string): boolean =>
  [
    server.Name,
    server.Image,
    ...server.LinkedNetworks.flatMap(({ IP, NetworkName }) => [IP, NetworkName]),
    ...labelsOf(server),
  ].some((part) => part.toLowerCase().includes(text));

export function ServerList() {
  const t = useTexts();
  const format = useFormat();
  const go = useNavigate({ from: "/servers" });
  const { q = "", state = "", group = "", label = "" } = useSearch({ from: "/servers" });
  const mayWrite = useMay("server:write");
  const { data: servers, error, refetch } = useQuery(queriesOf(useData().client).servers());
  const [selected, setSelected] = useState<ReadonlySet<number>>(new Set());
  const text = useDeferredValue(q.trim().toLowerCase());
  const rows = useMemo(
    () =>
      (servers ?? []).filter(
        (server) =>
          (group === "" || String(server.BatchID) === group) &&
          (state === "" || matchesState(server, state)) &&
          (label === "" || labelsOf(server).includes(label)) &&
          (text === "" || matchesText(server, text)),
      ),
    [servers, state, group, label, text],
  );
  const labels = useMemo(
    () =>
      [...new Set([...(servers ?? []).flatMap(labelsOf), ...(label === "" ? [] : [label])])]
        .sort()
        .slice(0, mostLabels),
    [servers, label],
  );
  const columns = useMemo<Column<Server>[]>(
    () => [
      {
        id: "name",
        name: t.common.name,
        width: "minmax(160px, 2fr)",
        isMain: true,
        cell: ({ ID, Name }) => (
          <Link to="/servers/$id" params={{ id: String(ID) }} className="whole">
            {Name}
          </Link>
        ),
      },
      {
        id: "state",
        name: t.common.state,
        width: "136px",
        isMain: true,
        cell: (server) => {
          const { tone, word } = serverState(server, t);
          return <State tone={tone}>{word}</State>;
        },
      },
      {
        id: "address",
        name: t.servers.address,
        isBelow: true,
        width: "minmax(130px, 1fr)",
        cell: (server) => <span className="mono">{addressOf(server)}</span>,
      },
      {
        id: "size",
        name: t.servers.size,
        width: "minmax(176px, 1fr)",
        cell: ({ CPU, RAM, HDD }) => (
          <span className="number">{t.servers.sizeOf(CPU, format.megabytes(RAM), format.megabytes(HDD * 1024))}</span>
        ),
      },
      { id: "image", name: t.servers.image, width: "minmax(110px, 1fr)", cell: ({ Image }) => Image },
      {
        id: "labels",
        name: t.common.labels,
        width: "minmax(120px, 1fr)",
        cell: ({ Labels }) =>
          labelsOf({ Labels }).map((one) => (
            <span key={one} className="tag">
              {one}
            </span>
          )),
      },
      {
        id: "created",
        name: t.common.created,
        width: "120px",
        cell: ({ DateCreate }) => (
          <time dateTime={DateCreate} title={format.time(DateCreate)} className="muted">
            {format.ago(DateCreate)}
          </time>
        ),
      },
      ...(mayWrite
        ? [
            {
              id: "menu",
              name: t.common.more,
              isNameHidden: true,
              width: "32px",
              isMain: true,
              isLoose: true,
              cell: (server: Server) => <PowerMenu server={server} />,
            },
          ]
        : []),
    ],
    [t, format, mayWrite],
  );
  const search = (change: { q?: string; state?: string; group?: string; label?: string }): void => {
    void go({ search: (before) => ({ ...before, ...change }), replace: true });
  };

  if (error) return <TroubleBox trouble={troubleOf(error, t)} onRetry={() => void refetch()} />;
  const isFiltered = q !== "" || state !== "" || group !== "" || label !== "";
  return (
    <>
      <PageHead title={t.servers.title} count={servers && format.number(servers.length)}>
        {mayWrite && (
          <Link to="/servers/create" className={buttonClass("primary")}>
            <Icon name="plus" />
            {t.servers.create}
          </Link>
        )}
      </PageHead>
      {servers === undefined ? (
        <Skeleton lines={8} />
      ) : servers.length === 0 ? (
        <Empty
          icon="server"
          title={t.servers.emptyTitle}
          command="brume server create web-1 --wait"
          action={
            mayWrite && (
              <Link to="/servers/create" className={buttonClass("primary")}>
                {t.servers.create}
              </Link>
            )
          }
        >
          {t.servers.emptyAbout}
        </Empty>
      ) : (
        <>
          <div className="filters">
            <input
              className="input"
              type="search"
              aria-label={t.servers.filter}
              placeholder={t.servers.filter}
              value={q}
              onChange={(event) => search({ q: event.target.value })}
            />
            <select
              className="input"
              aria-label={t.common.state}
              value={state}
              onChange={(event) => search({ state: event.target.value })}
            >
              <option value="">{t.servers.anyState}</option>
              {stateNames.map((name) => (
                <option key={name} value={name}>
                  {t.servers.states[name]}
                </option>
              ))}
            </select>
            {labels.length > 0 && (
              <select
                className="input"
                aria-label={t.common.labels}
                value={label}
                onChange={(event) => search({ label: event.target.value })}
              >
                <option value="">{t.servers.anyLabel}</option>
                {labels.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            )}
            {group !== "" && <span className="tag">{t.servers.group(group)}</span>}
            {isFiltered && (
              <Button kind="quiet" onClick={() => search({ q: "", state: "", group: "", label: "" })}>
                {t.servers.clearFilter}
              </Button>
            )}
            {isFiltered && (
              <span className="muted number" role="status">
                {t.table.of(format.number(rows.length), format.number(servers.length))}
              </span>
            )}
          </div>
          <DataTable
            label={t.servers.title}
            columns={columns}
            rows={rows}
            idOf={({ ID }) => ID}
            nameOf={({ Name }) => Name}
            selection={mayWrite ? { selected, onSelect: setSelected } : undefined}
            empty={<Empty icon="search" title={t.servers.noMatch} />}
          />
          <BulkBar servers={servers.filter(({ ID }) => selected.has(ID))} onClear={() => setSelected(new Set())} />
        </>
      )}
    </>
  );
}
