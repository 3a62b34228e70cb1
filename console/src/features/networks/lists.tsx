/** The lists of public and of private networks, with a filter in the address. */
import type { Network, PublicNetwork } from "@brume/api/network.ts";
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { useData } from "../../data/data.tsx";
import { firewallState, networkState, serversOf, textsOfNetwork } from "../../data/networkview.ts";
import { ObjectList } from "../../data/objectlist.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import type { Column } from "../../ui/columns.ts";
import { Empty } from "../../ui/feedback.tsx";
import { None, State } from "../../ui/page.tsx";
import { timeColumn } from "../../ui/timecolumn.tsx";

interface NetworksProps<T> {
  readonly label: string;
  readonly query: UseQueryResult<T[]>;
  readonly linkOf: (network: T) => ReactNode;
  /** The columns after name, state and block. */
  readonly columns: readonly Column<T>[];
  readonly idOf: (row: T) => number;
  readonly empty: ReactNode;
}

function NetworkList<T extends PublicNetwork | Network>(props: NetworksProps<T>) {
  const { linkOf, columns: others, ...rest } = props;
  const t = useTexts();
  const go = useNavigate({ from: "/networks" });
  const { q = "", label = "" } = useSearch({ from: "/networks" });
  const columns = useMemo<Column<T>[]>(
    () => [
      { id: "name", name: t.common.name, width: "minmax(140px, 2fr)", isMain: true, cell: linkOf },
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
      ...others,
    ],
    [t, linkOf, others],
  );
  return (
    <ObjectList
      {...rest}
      columns={columns}
      nameOf={({ Name }) => Name}
      filter={{
        name: t.networks.filter,
        q,
        label,
        textsOf: textsOfNetwork,
        onChange: (part) => void go({ search: (all) => ({ ...all, ...part }), replace: true }),
        noMatch: t.networks.noMatch,
      }}
    />
  );
}

const publicLink = ({ Id, Name }: PublicNetwork): ReactNode => (
  <Link to="/networks/$id" params={{ id: String(Id) }} className="whole">
    {Name}
  </Link>
);

export function PublicList({ button }: { button: ReactNode }) {
  const t = useTexts();
  const format = useFormat();
  const query = useQuery(queriesOf(useData().client).publicNetworks());
  const columns = useMemo<Column<PublicNetwork>[]>(
    () => [
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
    <NetworkList
      label={t.networks.tabs.public}
      query={query}
      linkOf={publicLink}
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

const privateLink = ({ ID, Name }: Network): ReactNode => (
  <Link to="/networks/private/$id" params={{ id: String(ID) }} className="whole">
    {Name}
  </Link>
);

export function PrivateList({ button }: { button: ReactNode }) {
  const t = useTexts();
  const format = useFormat();
  const query = useQuery(queriesOf(useData().client).networks());
  const columns = useMemo<Column<Network>[]>(
    () => [
      {
        id: "gateway",
        name: t.networks.gateway,
        width: "minmax(120px, 1fr)",
        cell: ({ Gateway }) => (Gateway === "" ? <None /> : <span className="mono">{Gateway}</span>),
      },
      {
        id: "servers",
        name: t.networks.servers,
        width: "76px",
        isRight: true,
        cell: ({ LinkedServers }) => format.number(LinkedServers.length),
      },
      timeColumn({ id: "created", name: t.common.created, format, timeOf: ({ DateCreate }) => DateCreate }),
    ],
    [t, format],
  );
  return (
    <NetworkList
      label={t.networks.tabs.private}
      query={query}
      linkOf={privateLink}
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
