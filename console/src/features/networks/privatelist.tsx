/** The list of private networks. */
import type { Network } from "@brume/api/network.ts";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { useData } from "../../data/data.tsx";
import { networkState } from "../../data/networkview.ts";
import { queriesOf } from "../../data/queries.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import type { Column } from "../../ui/columns.ts";
import { Empty } from "../../ui/feedback.tsx";
import { State } from "../../ui/page.tsx";
import { FilteredNetworks } from "./filtered.tsx";

export function PrivateList({ button }: { button: ReactNode }) {
  const t = useTexts();
  const format = useFormat();
  const query = useQuery(queriesOf(useData().client).networks());
  const columns = useMemo<Column<Network>[]>(
    () => [
      {
        id: "name",
        name: t.common.name,
        width: "minmax(140px, 2fr)",
        isMain: true,
        cell: ({ ID, Name }) => (
          <Link to="/networks/private/$id" params={{ id: String(ID) }} className="whole">
            {Name}
          </Link>
        ),
      },
      {
        id: "state",
        name: t.common.state,
        width: "128px",
        isMain: true,
        cell: (network) => {
          const { tone, word } = networkState(network, t);
          return <State tone={tone}>{word}</State>;
        },
      },
      {
        id: "block",
        name: t.networks.block,
        width: "minmax(130px, 1fr)",
        isBelow: true,
        cell: ({ CIDR }) => <span className="mono">{CIDR}</span>,
      },
      {
        id: "gateway",
        name: t.networks.gateway,
        width: "minmax(120px, 1fr)",
        cell: ({ Gateway }) =>
          Gateway === "" ? <span className="muted">–</span> : <span className="mono">{Gateway}</span>,
      },
      {
        id: "servers",
        name: t.networks.servers,
        width: "76px",
        isRight: true,
        cell: ({ LinkedServers }) => format.number(LinkedServers.length),
      },
      {
        id: "created",
        name: t.common.created,
        width: "130px",
        cell: ({ DateCreate }) => (
          <time dateTime={DateCreate} title={format.time(DateCreate)} className="muted">
            {format.ago(DateCreate)}
          </time>
        ),
      },
    ],
    [t, format],
  );
  return (
    <FilteredNetworks
      label={t.networks.tabs.private}
      query={query}
      columns={columns}
      idOf={({ ID }) => ID}
      empty={
        <Empty
          icon="network"
          title={t.networks.privateEmptyTitle}
          action={button}
          command="brume network create back --cidr 172.16.5.0/24"
        >
          {t.networks.privateEmptyAbout}
        </Empty>
      }
    />
  );
}
