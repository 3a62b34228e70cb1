/** The pages that one reaches directly: for the navigation and the palette. A token sees those that it may read. */
import type { Scope } from "@brume/api/operation.ts";
import type { LinkProps } from "@tanstack/react-router";
import { useMemo } from "react";
import { hostScopes, useMays } from "../data/data.tsx";
import { useTexts } from "../texts/texts.tsx";
import type { IconName } from "../ui/icon.tsx";

interface PageEntry {
  readonly to: NonNullable<LinkProps["to"]>;
  readonly icon: IconName;
  readonly name: string;
  /** Absent: each token may read it. Of several scopes one is enough. */
  readonly scope?: Scope | readonly Scope[];
  /** It is a part of another page: only the palette has it. */
  readonly isPart?: boolean;
}

export function usePages(): readonly PageEntry[] {
  const { nav, activity } = useTexts();
  const may = useMays();
  return useMemo(() => {
    const pages: readonly PageEntry[] = [
      { to: "/", icon: "overview", name: nav.overview },
      { to: "/servers", icon: "server", name: nav.servers, scope: "server:read" },
      { to: "/networks", icon: "network", name: nav.networks, scope: "network:read" },
      { to: "/dns", icon: "dns", name: nav.dns, scope: "dns:read" },
      { to: "/images", icon: "image", name: nav.images, scope: "server:read" },
      { to: "/activity", icon: "activity", name: nav.activity },
      { to: "/activity/audit", icon: "activity", name: activity.tabs.audit, scope: "account:admin", isPart: true },
      { to: "/activity/webhooks", icon: "webhook", name: activity.tabs.webhooks, scope: "account:admin", isPart: true },
      { to: "/access", icon: "access", name: nav.access },
      { to: "/host", icon: "host", name: nav.host, scope: hostScopes },
    ];
    return pages.filter(({ scope }) => may(scope));
  }, [nav, activity, may]);
}
