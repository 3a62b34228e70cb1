/** One private network: its addresses, servers and settings. */
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useData, useMay } from "../../data/data.tsx";
import { Missing } from "../../data/missing.tsx";
import { networkState, serversOf } from "../../data/networkview.ts";
import { queriesOf } from "../../data/queries.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Skeleton } from "../../ui/feedback.tsx";
import { Facts, PageHead, Panel, State } from "../../ui/page.tsx";
import { LinkedServers } from "./linkedservers.tsx";
import { NetworkSettings } from "./settings.tsx";

export function PrivateNetworkDetail() {
  const t = useTexts();
  const format = useFormat();
  const id = Number(useParams({ from: "/networks/private/$id" }).id);
  const mayWrite = useMay("network:write");
  const { data: network, error, refetch } = useQuery(queriesOf(useData().client).network(id));
  const crumb = (
    <Link to="/networks" search={{ tab: "private" }}>
      {t.networks.title}
    </Link>
  );
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
  const { tone, word } = networkState(network, t);
  const { Name, CIDR, Gateway, Bandwidth, LinkedServers: links } = network;
  return (
    <div className="stack">
      <PageHead
        crumb={crumb}
        title={
          <>
            {Name}
            <State tone={tone}>{word}</State>
          </>
        }
      />
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
            { name: "ID", value: id, copy: String(id) },
          ]}
        />
      </Panel>
      <LinkedServers
        id={id}
        name={Name}
        links={links}
        isFull={links.length >= serversOf(Number(network.NetworkCapacity))}
      />
      {mayWrite && <NetworkSettings key={id} network={network} />}
    </div>
  );
}
