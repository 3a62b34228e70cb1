/** A map of the outside, networks, tunnels and servers with their present traffic; on a phone, or on request, the same as a list. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { useData, useMay } from "../../data/data.tsx";
import { errorText } from "../../data/errortext.ts";
import { layOut, mapOf, type Rate, rateOfNetwork, strengthOf } from "../../data/networkmap.ts";
import { queriesOf } from "../../data/queries.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Empty, ErrorBox, Note, Segments, Skeleton } from "../../ui/feedback.tsx";
import { Graph, type GraphEdge, type GraphNode } from "../../ui/graph.tsx";
import { useIsPhone } from "../../ui/media.ts";
import { MapLegend } from "./maplegend.tsx";
import { MapList } from "./maplist.tsx";
import { MoreNode, NetworkNode, OutsideNode, ServerNode, TunnelNode, useRateText } from "./mapnodes.tsx";
import { useServerRates, useTunnels } from "./traffic.ts";

export function NetworkMap({ button }: { button: ReactNode }) {
  const t = useTexts();
  const go = useNavigate({ from: "/networks" });
  const { view } = useSearch({ from: "/networks" });
  const isPhone = useIsPhone();
  const reads = queriesOf(useData().client);
  const publics = useQuery(reads.publicNetworks());
  const privates = useQuery(reads.networks());
  const mayServers = useMay("server:read");
  const servers = useQuery({ ...reads.servers(), enabled: mayServers });
  const { networks, more } = useMemo(
    () => mapOf(publics.data ?? [], privates.data ?? [], servers.data ?? []),
    [publics.data, privates.data, servers.data],
  );
  const shown = useMemo(() => networks.flatMap((network) => network.servers.map(({ id }) => id)), [networks]);
  const rates = useServerRates(shown);
  const tunnels = useTunnels(networks.flatMap(({ id, tunnels: all }) => (all.length > 0 ? [id] : [])));
  const rateText = useRateText();
  const error = publics.error ?? privates.error ?? servers.error;
  if (error)
    return (
      <ErrorBox
        text={errorText(error, t)}
        onRetry={() => void Promise.all([publics.refetch(), privates.refetch(), mayServers && servers.refetch()])}
      />
    );
  if (publics.data === undefined || privates.data === undefined || (mayServers && servers.data === undefined))
    return <Skeleton lines={8} />;
  if (networks.length === 0)
    return (
      <Empty icon="network" title={t.networks.emptyTitle} action={button}>
        {t.networks.emptyAbout}
      </Empty>
    );
  const isList = isPhone || view === "list";
  const nodes: GraphNode[] = [{ id: "outside", look: "outside", content: <OutsideNode /> }];
  const rateOf = new Map<string, Rate | undefined>();
  for (const network of networks) {
    nodes.push({ id: `network-${network.id}`, look: network.kind, content: <NetworkNode network={network} /> });
    rateOf.set(`outside network-${network.id}`, rateOfNetwork(network, rates));
    for (const tunnel of network.tunnels) {
      const id = `tunnel-${tunnel.Id}`;
      const rate = tunnels.rates.get(tunnel.Id);
      rateOf.set(`${id} network-${network.id}`, rate);
      const status = tunnels.states.get(tunnel.Id);
      const content = <TunnelNode network={network.id} tunnel={tunnel} status={status} rate={rate} />;
      nodes.push({ id, look: "tunnel", content });
    }
    for (const server of network.servers) {
      const rate = rates.get(server.id);
      for (const link of server.links)
        rateOf.set(`network-${link.network} server-${server.id}`, server.links.length === 1 ? rate : undefined);
      nodes.push({ id: `server-${server.id}`, look: "server", content: <ServerNode server={server} rate={rate} /> });
    }
    if (network.more > 0)
      nodes.push({ id: `more-${network.id}`, look: "more", content: <MoreNode network={network} /> });
  }
  const edges = layOut(networks, 0).edges.map(({ from, to }): GraphEdge => {
    const rate = rateOf.get(`${from} ${to}`);
    const strength = strengthOf(rate);
    const look = from.startsWith("tunnel") ? "secure" : "";
    return { from, to, strength, look, label: strength > 0 && rate ? rateText(rate) : undefined };
  });
  return (
    <div className="stack">
      <div className="line apart">
        <p className="muted">{isList ? t.map.listAbout : t.map.about}</p>
        {!isPhone && (
          <Segments
            label={t.map.view}
            value={isList ? "list" : "map"}
            options={[
              ["map", t.map.views.map],
              ["list", t.map.views.list],
            ]}
            onChange={(next) => void go({ search: (all) => ({ ...all, view: next }), replace: true })}
          />
        )}
      </div>
      <MapLegend isList={isList} />
      {more > 0 && <Note>{t.map.moreNetworks(more)}</Note>}
      {isList ? (
        <MapList networks={networks} rates={rates} tunnels={tunnels} />
      ) : (
        <div className="panel inset map">
          <Graph label={t.map.label} nodes={nodes} edges={edges} layOut={(width) => layOut(networks, width)} />
        </div>
      )}
    </div>
  );
}
