/** One public network: its addresses and servers, firewall, tunnels and settings. Editors are loaded when they are opened. */
import { useQuery } from "@tanstack/react-query";
import { useParams, useSearch } from "@tanstack/react-router";
import { lazy } from "react";
import { useData } from "../../data/data.tsx";
import { Missing } from "../../data/missing.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Skeleton } from "../../ui/feedback.tsx";
import { NetworkFrame } from "./frame.tsx";
import { NetworkOverview } from "./overview.tsx";
import { NetworkSettings } from "./settings.tsx";

const Firewall = lazy(() => import("./firewall.tsx").then(({ FirewallEditor }) => ({ default: FirewallEditor })));

const Vpn = lazy(() => import("./vpn.tsx").then(({ TunnelList }) => ({ default: TunnelList })));

export function NetworkDetail() {
  const t = useTexts();
  const id = Number(useParams({ from: "/networks/$id" }).id);
  const { tab } = useSearch({ from: "/networks/$id" });
  const { data: network, error, refetch } = useQuery(queriesOf(useData().client).publicNetwork(id));
  if (error && network === undefined)
    return (
      <Missing
        error={error}
        onRetry={() => void refetch()}
        icon="network"
        title={t.network.notFound}
        list={{ to: "/networks" }}
        name={t.networks.title}
      />
    );
  if (network === undefined) return <Skeleton lines={8} />;
  return (
    <NetworkFrame
      network={network}
      tab={tab}
      parts={{
        overview: () => <NetworkOverview network={network} />,
        firewall: () => <Firewall key={id} network={network} />,
        vpn: () => <Vpn key={id} network={network} />,
        settings: () => <NetworkSettings key={id} network={network} />,
      }}
    />
  );
}
