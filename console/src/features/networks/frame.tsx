/** The frame of a public or private network: its name and state, and its parts as tabs. Only a token that may change it sees the settings. */
import type { Network, PublicNetwork } from "@brume/api/network.ts";
import { Link } from "@tanstack/react-router";
import { type ReactNode, Suspense } from "react";
import { useMay } from "../../data/data.tsx";
import { networkState } from "../../data/networkview.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Note, Skeleton } from "../../ui/feedback.tsx";
import { PageHead, State } from "../../ui/page.tsx";
import { Tabs } from "../../ui/tabs.tsx";

const tabs = ["overview", "firewall", "vpn", "settings"] as const;

interface FrameProps {
  readonly network: PublicNetwork | Network;
  /** The tab that the address selects. */
  readonly tab: string | undefined;
  /** The parts that this kind of network has, the overview among them. */
  readonly parts: { readonly [Name in (typeof tabs)[number]]?: () => ReactNode };
}

export function NetworkFrame({ network, tab, parts }: FrameProps) {
  const t = useTexts();
  const mayWrite = useMay("network:write");
  const { tone, word } = networkState(network, t);
  const isPublic = "Id" in network;
  const shown = tabs.filter((name) => parts[name] !== undefined && (mayWrite || name !== "settings"));
  const present = shown.find((name) => name === tab) ?? "overview";
  return (
    <div className="stack">
      <PageHead
        crumb={
          <Link to="/networks" search={isPublic ? {} : { tab: "private" }}>
            {t.networks.title}
          </Link>
        }
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
        {shown.map((name) => (
          <Link
            key={name}
            to={isPublic ? "/networks/$id" : "/networks/private/$id"}
            params={{ id: String(isPublic ? network.Id : network.ID) }}
            search={{ tab: name }}
            aria-current={name === present ? "page" : undefined}
          >
            {t.network.tabs[name]}
          </Link>
        ))}
      </Tabs>
      <Suspense fallback={<Skeleton lines={6} />}>{parts[present]?.()}</Suspense>
    </div>
  );
}
