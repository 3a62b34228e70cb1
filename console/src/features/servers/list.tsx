/** The list of servers: live states, a filter in the address, and actions on several servers. */
import type { Server } from "@brume/api/server.ts";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { useData, useMay } from "../../data/data.tsx";
import { useImageName } from "../../data/image.ts";
import { labelTexts } from "../../data/label.ts";
import { hasLabels, labelColumn } from "../../data/labelcolumn.tsx";
import { ObjectList } from "../../data/objectlist.tsx";
import { queriesOf } from "../../data/queries.ts";
import { addressOf, serverState } from "../../data/serverview.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { buttonClass } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { Empty } from "../../ui/feedback.tsx";
import { SelectFilter } from "../../ui/filters.tsx";
import { Icon } from "../../ui/icon.tsx";
import { PageHead, State } from "../../ui/page.tsx";
import { timeColumn } from "../../ui/timecolumn.tsx";
import { BulkBar } from "./bulk.tsx";
import { Group } from "./group.tsx";
import { PowerMenu } from "./power.tsx";

const stateNames = ["on", "off", "New", "Deleting", "Failed", "Blocked"] as const;

const matchesState = ({ State: state, IsPowerOn }: Server, wanted: string): boolean =>
  wanted === "on" || wanted === "off" ? state === "Active" && IsPowerOn === (wanted === "on") : state === wanted;

const textsOfServer = (server: Server): string[] => [
  server.Name,
  server.Image,
  ...server.LinkedNetworks.flatMap(({ IP, NetworkName }) => [IP, NetworkName]),
  ...labelTexts(server.Labels),
];

/** Pixels that a letter of a name needs, and limits of the column. */
const letter = 7.5;
const least = 200;
const most = 320;

/** Returns the pixels of the longest name: long ones are whole, and the last columns are left out for them where the screen is narrow. */
const widthOfNames = (servers: readonly Server[] | undefined): number =>
  Math.ceil(
    Math.min(
      most,
      (servers ?? []).reduce((width, { Name }) => Math.max(width, Name.length * letter), least),
    ),
  );

export function ServerList() {
  const t = useTexts();
  const format = useFormat();
  const go = useNavigate({ from: "/servers" });
  const { q = "", state = "", group = "", label = "" } = useSearch({ from: "/servers" });
  const mayWrite = useMay("server:write");
  const query = useQuery(queriesOf(useData().client).servers());
  const servers = query.data;
  const [selected, setSelected] = useState<ReadonlySet<number>>(new Set());
  const fits = useCallback(
    (server: Server) =>
      (group === "" || String(server.BatchID) === group) && (state === "" || matchesState(server, state)),
    [state, group],
  );
  const imageOf = useImageName();
  const textsOf = useCallback((server: Server) => [imageOf(server), ...textsOfServer(server)], [imageOf]);
  const isLabelled = hasLabels(servers);
  const longest = useMemo(() => widthOfNames(servers), [servers]);
  const columns = useMemo<Column<Server>[]>(
    () => [
      {
        id: "name",
        name: t.common.name,
        width: `minmax(${longest}px, 3fr)`,
        isMain: true,
        cell: ({ ID, Name }) => (
          <Link to="/servers/$id" params={{ id: String(ID) }} className="whole" title={Name}>
            {Name}
          </Link>
        ),
      },
      {
        id: "state",
        name: t.common.state,
        width: "128px",
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
        width: "124px",
        cell: (server) => <span className="mono">{addressOf(server)}</span>,
      },
      {
        id: "size",
        name: t.servers.size,
        width: "176px",
        cell: ({ CPU, RAM, HDD }) => (
          <span className="number">{t.servers.sizeOf(CPU, format.megabytes(RAM), format.megabytes(HDD * 1024))}</span>
        ),
      },
      {
        id: "image",
        name: t.servers.image,
        width: "minmax(120px, 1fr)",
        cell: (server) => <span title={imageOf(server)}>{imageOf(server)}</span>,
      },
      ...labelColumn<Server>(isLabelled, t),
      timeColumn({ id: "created", name: t.common.created, format, timeOf: ({ DateCreate }) => DateCreate }),
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
    [t, format, mayWrite, isLabelled, imageOf, longest],
  );
  const search = (change: { q?: string; state?: string; group?: string; label?: string }): void => {
    void go({ search: (before) => ({ ...before, ...change }), replace: true });
  };

  const link = mayWrite && (
    <Link to="/servers/create" className={buttonClass("primary")}>
      <Icon name="plus" />
      {t.servers.create}
    </Link>
  );
  return (
    <>
      <PageHead title={t.servers.title} count={servers && format.number(servers.length)}>
        {link}
      </PageHead>
      <ObjectList
        label={t.servers.title}
        query={query}
        columns={columns}
        idOf={({ ID }) => ID}
        nameOf={({ Name }) => Name}
        selection={mayWrite ? { selected, onSelect: setSelected } : undefined}
        filter={{
          name: t.servers.filter,
          q,
          label,
          textsOf,
          onChange: search,
          noMatch: t.servers.noMatch,
          more: {
            isActive: state !== "" || group !== "",
            fits,
            onClear: () => search({ q: "", state: "", group: "", label: "" }),
            inputs: (
              <>
                <SelectFilter
                  label={t.common.state}
                  any={t.servers.anyState}
                  value={state}
                  options={stateNames.map((name) => [name, t.servers.states[name]])}
                  onChange={(next) => search({ state: next })}
                />
                {group !== "" && <Group id={group} servers={servers ?? []} onDeleted={() => search({ group: "" })} />}
              </>
            ),
          },
        }}
        empty={
          <Empty icon="server" title={t.servers.emptyTitle} command="brume server create web-1 --wait" action={link}>
            {t.servers.emptyAbout}
          </Empty>
        }
      />
      {servers !== undefined && (
        <BulkBar servers={servers.filter(({ ID }) => selected.has(ID))} onClear={() => setSelected(new Set())} />
      )}
    </>
  );
}
