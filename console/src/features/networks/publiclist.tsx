/** The list of public networks: state, addresses, servers, tunnels, firewall and bandwidth. */
import type { PublicNetwork } from "@brume/api/network.ts";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { useData } from "../../data/data.tsx";
import { firewallState, networkState, serversOf } from "../../data/networkview.ts";
import { queriesOf } from "../../data/queries.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import type { Column } from "../../ui/columns.ts";
import { Empty } from "../../ui/feedback.tsx";
import { State } from "../../ui/page.tsx";
import { FilteredNetworks } from "./filtered.tsx";

export function PublicList({ button }: { button: ReactNode }) {
  const t = useTexts();
  const format = useFormat();
  const query = useQuery(queriesOf(useData().client).publicNetworks());
  const columns = useMemo<Column<PublicNetwork>[]>(
    () => [
      {
        id: "name",
        name: t.common.name,
        width: "minmax(140px, 2fr)",
        isMain: true,
        cell: ({ Id, Name }) => (
          <Link to="/networks/$id" params={{ id: String(Id) }} className="whole">
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
        id: "edge",
        name: t.networks.edge,
        width: "minmax(120px, 1fr)",
        cell: ({ EdgeExternalIp }) => <span className="mono">{EdgeExternalIp}</span>,
      },
      {
        id: "firewall",
        name: t.networks.firewall,
        width: "148px",
        cell: (network) => {
          const { tone, word } = firewallState(network, t);
          return (
            <State tone={tone} icon={tone === "quiet" ? "off" : "shield"}>
              {word}
            </State>
          );
        },
      },
      {
        id: "servers",
        name: t.networks.servers,
        width: "76px",
        isRight: true,
        cell: ({ LinkedServers, NetworkCapacity }) =>
          t.networks.of(LinkedServers.length, serversOf(Number(NetworkCapacity))),
      },
      {
        id: "tunnels",
        name: t.networks.tunnels,
        width: "64px",
        isRight: true,
        cell: ({ Vpn }) => format.number(Vpn.Tunnels.length),
      },
      {
        id: "bandwidth",
        name: t.networks.bandwidth,
        width: "100px",
        isRight: true,
        cell: ({ Bandwidth }) => format.megabits(Bandwidth),
      },
    ],
    [t, format],
  );
  return (
    <FilteredNetworks
      label={t.networks.tabs.public}
      query={query}
      columns={columns}
      idOf={({ Id }) => Id}
      empty={
        <Empty
          icon="network"
          title={t.networks.emptyTitle}
          action={button}
          command="brume public-network create dmz --bandwidth 100"
        >
          {t.networks.emptyAbout}
        </Empty>
      }
    />
  );
}
