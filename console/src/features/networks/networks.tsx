/** All networks: the public ones, the private ones, and a map. Its parts are loaded when they are opened. */
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { useMay } from "../../data/data.tsx";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Skeleton } from "../../ui/feedback.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { CreatePrivateNetwork, CreatePublicNetwork } from "./create.tsx";
import { PrivateList, PublicList } from "./lists.tsx";

const Map = lazy(() => import("./map.tsx").then(({ NetworkMap }) => ({ default: NetworkMap })));

const tabs = ["public", "private", "map"] as const;

export function Networks() {
  const t = useTexts();
  const go = useNavigate({ from: "/networks" });
  const { tab = "public", create } = useSearch({ from: "/networks" });
  const mayWrite = useMay("network:write");
  const setCreating = (kind?: string): void => {
    void go({ search: { tab, ...(kind !== undefined && { create: kind }) }, replace: true });
  };
  const button = mayWrite && (
    <Button kind="primary" icon="plus" onClick={() => setCreating(tab === "private" ? "private" : "public")}>
      {t.networks.create}
    </Button>
  );
  return (
    <div className="stack">
      <PageHead title={t.networks.title}>{button}</PageHead>
      <Tabs label={t.networks.tabsLabel}>
        {tabs.map((name) => (
          <Link key={name} to="/networks" search={{ tab: name }} aria-current={name === tab ? "page" : undefined}>
            {t.networks.tabs[name]}
          </Link>
        ))}
      </Tabs>
      {tab === "private" ? (
        <PrivateList button={button} />
      ) : tab === "map" ? (
        <Suspense fallback={<Skeleton lines={8} />}>
          <Map button={button} />
        </Suspense>
      ) : (
        <PublicList button={button} />
      )}
      {create === "public" && mayWrite && <CreatePublicNetwork onClose={() => setCreating()} />}
      {create === "private" && mayWrite && <CreatePrivateNetwork onClose={() => setCreating()} />}
    </div>
  );
}
