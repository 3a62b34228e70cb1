/** One private network: its addresses, servers and settings. */
import type { Network } from "@brume/api/network.ts";
import { useQuery } from "@tanstack/react-query";
import { useParams, useSearch } from "@tanstack/react-router";
import { useData } from "../../data/data.tsx";
import { Missing } from "../../data/missing.tsx";
import { serversOf } from "../../data/networkview.ts";
import { queriesOf } from "../../data/queries.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Skeleton } from "../../ui/feedback.tsx";
import { Facts, Panel } from "../../ui/page.tsx";
import { NetworkFrame } from "./frame.tsx";
import { LinkedServers } from "./linkedservers.tsx";
import { NetworkSettings } from "./settings.tsx";

export function PrivateNetworkDetail() {
  const t = useTexts();
  const id = Number(useParams({ from: "/networks/private/$id" }).id);
  const { tab } = useSearch({ from: "/networks/private/$id" });
  const { data: network, error, refetch } = useQuery(queriesOf(useData().client).network(id));
  if (error && network === undefined)
    return (
      <Missing
        error={error}
        onRetry={() => void refetch()}
        icon="network"
        title={t.network.notFound}
        list={{ to: "/networks", search: { tab: "private" } }}
        name={t.networks.title}
      />
    );
  if (network === undefined) return <Skeleton lines={8} />;
  return (
    <NetworkFrame
      network={network}
      tab={tab}
      parts={{
        overview: () => <Overview network={network} />,
        settings: () => <NetworkSettings key={id} network={network} />,
      }}
    />
  );
}

function Overview({ network }: { network: Network }) {
  const t = useTexts();
  const format = useFormat();
  const { ID, Name, CIDR, Gateway, Bandwidth, LinkedServers: links } = network;
  return (
    <div className="stack">
      <Panel title={t.network.facts}>
        <Facts
          facts={[
            { name: t.networks.block, value: <span className="mono">{CIDR}</span>, copy: CIDR },
            Gateway !== "" && {
              name: t.networks.gateway,
              value: <span className="mono">{Gateway}</span>,
              copy: Gateway,
            },
            { name: t.network.dhcp, value: network.IsDHCP ? t.common.yes : t.common.no },
            { name: t.networks.bandwidth, value: format.megabits(Bandwidth) },
            { name: t.server.location, value: network.DCLocation },
            {
              name: t.common.created,
              value: <time dateTime={network.DateCreate}>{format.time(network.DateCreate)}</time>,
            },
            { name: "ID", value: ID, copy: String(ID) },
          ]}
        />
      </Panel>
      <LinkedServers
        id={ID}
        name={Name}
        links={links}
        isFull={links.length >= serversOf(Number(network.NetworkCapacity))}
      />
    </div>
  );
}
