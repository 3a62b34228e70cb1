/** One public network: its addresses and servers, firewall, tunnels and settings. Editors are loaded when they are opened. */
import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense } from "react";
import { useData, useMay } from "../../data/data.tsx";
import { Missing } from "../../data/missing.tsx";
import { networkState } from "../../data/networkview.ts";
import { queriesOf } from "../../data/queries.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Note, Skeleton } from "../../ui/feedback.tsx";
import { PageHead, State } from "../../ui/page.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { NetworkOverview } from "./overview.tsx";
import { NetworkSettings } from "./settings.tsx";

const Firewall = lazy(() => import("./firewall.tsx").then(({ FirewallEditor }) => ({ default: FirewallEditor })));

const Vpn = lazy(() => import("./vpn.tsx").then(({ TunnelList }) => ({ default: TunnelList })));

const tabs = ["overview", "firewall", "vpn", "settings"] as const;

export function NetworkDetail() {
  const t = useTexts();
  const id = Number(useParams({ from: "/networks/$id" }).id);
  const { tab = "overview" } = useSearch({ from: "/networks/$id" });
  const mayWrite = useMay("network:write");
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
  const { tone, word } = networkState(network, t);
  const parts: Readonly<Record<string, () => ReactNode>> = {
    overview: () => <NetworkOverview network={network} />,
    firewall: () => <Firewall key={id} network={network} />,
    vpn: () => <Vpn key={id} network={network} />,
    settings: () => <NetworkSettings key={id} network={network} />,
  };
  return (
    <div className="stack">
      <PageHead
        crumb={<Link to="/networks">{t.networks.title}</Link>}
        title={
          <>
            {network.Name}
            <State tone={tone}>{word}</State>
          </>
        }
      />
      {network.Error !== null && (
        <Note kind="warn">
          <p className="break">{t.errors.detail(network.Error.detail)}</p>
        </Note>
      )}
      <Tabs label={t.network.tabsLabel}>
        {tabs
          .filter((name) => mayWrite || name !== "settings")
          .map((name) => (
            <Link
              key={name}
              to="/networks/$id"
              params={{ id: String(id) }}
              search={{ tab: name }}
              aria-current={name === tab ? "page" : undefined}
            >
              {t.network.tabs[name]}
            </Link>
          ))}
      </Tabs>
      <Suspense fallback={<Skeleton lines={6} />}>
        {((mayWrite || tab !== "settings" ? parts[tab] : undefined) ?? parts["overview"])?.()}
      </Suspense>
    </div>
  );
}
