/** The command palette: pages, objects by name or address, and actions. Everything in it is already in memory. */
import type { Server } from "@brume/api/server.ts";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useId, useMemo, useState } from "react";
import { useData, useMay, useMayOwnDomains } from "../data/data.tsx";
import { queriesOf } from "../data/queries.ts";
import { addressOf } from "../data/serverview.ts";
import { useTexts } from "../texts/texts.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Icon, type IconName } from "../ui/icon.tsx";
import { usePages } from "./pages.ts";

interface Entry {
  readonly key: string;
  readonly icon: IconName;
  readonly name: string;
  readonly about: string;
  readonly run: () => void;
}

/** Entries that are shown at once. */
const mostShown = 12;

function useEntries(): readonly Entry[] {
  const t = useTexts();
  const go = useNavigate();
  const queries = queriesOf(useData().client);
  const mayServers = useMay("server:read");
  const mayCreate = useMay("server:write");
  const mayDomains = useMayOwnDomains();
  const pages = usePages();
  const { data: domains = [] } = useQuery({ ...queries.domains(), enabled: useMay("dns:read") });
  const { data: servers = [] } = useQuery({ ...queries.servers(), enabled: mayServers });
  const { data: networks = [] } = useQuery({ ...queries.publicNetworks(), enabled: useMay("network:read") });
  const mayNetworks = useMay("network:write");
  const isAdmin = useMay("account:admin");
  return useMemo(() => {
    const page = (key: string, icon: IconName, name: string, run: () => void, about = t.palette.page): Entry => ({
      key,
      icon,
      name,
      about,
      run,
    });
    return [
      ...pages.map(({ to, icon, name }) => page(to, icon, name, () => void go({ to }))),
      ...(isAdmin
        ? [page("settings", "host", t.settings.title, () => void go({ to: "/host", search: { tab: "settings" } }))]
        : []),
      ...(mayNetworks
        ? [
            page(
              "create-network",
              "plus",
              t.networks.create,
              () => void go({ to: "/networks", search: { create: "public" } }),
              t.palette.action,
            ),
          ]
        : []),
      ...(mayDomains
        ? [
            page(
              "create-domain",
              "plus",
              t.domains.create,
              () => void go({ to: "/dns", search: { create: "1" } }),
              t.palette.action,
            ),
          ]
        : []),
      ...(mayCreate
        ? [page("create", "plus", t.servers.create, () => void go({ to: "/servers/create" }), t.palette.action)]
        : []),
      ...servers.map((server: Server) => ({
        key: `server-${server.ID}`,
        icon: "server" as const,
        name: server.Name,
        about: addressOf(server) || t.palette.server,
        run: () => void go({ to: "/servers/$id", params: { id: String(server.ID) } }),
      })),
      ...networks.map(({ Id, Name, CIDR }) => ({
        key: `network-${Id}`,
        icon: "network" as const,
        name: Name,
        about: CIDR,
        run: () => void go({ to: "/networks/$id", params: { id: String(Id) } }),
      })),
      ...domains.map(({ ID, Name }) => ({
        key: `domain-${ID}`,
        icon: "dns" as const,
        name: Name,
        about: t.palette.domain,
        run: () => void go({ to: "/dns/$id", params: { id: String(ID) } }),
      })),
    ];
  }, [pages, servers, networks, domains, t, go, mayCreate, mayNetworks, mayDomains]);
}

export function Palette({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const id = useId();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const entries = useEntries();
  const wanted = text.trim().toLowerCase();
  const found = entries
    .filter(({ name, about }) => name.toLowerCase().includes(wanted) || about.toLowerCase().includes(wanted))
    .slice(0, mostShown);
  const run = (entry: Entry | undefined): void => {
    if (entry === undefined) return;
    onClose();
    entry.run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setAt((at + step + found.length) % Math.max(1, found.length));
    } else if (event.key === "Enter") run(found[at]);
  };
  return (
    <Dialog label={t.palette.title} kind="palette" onClose={onClose}>
      <input
        role="combobox"
        aria-label={t.palette.title}
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={found[at] ? `${id}-${at}` : undefined}
        placeholder={t.palette.placeholder}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul id={`${id}-list`} role="listbox" aria-label={t.palette.title}>
        {found.map((entry, index) => (
          <li
            key={entry.key}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            onPointerMove={() => setAt(index)}
            onClick={() => run(entry)}
          >
            <Icon name={entry.icon} />
            <span className="grow truncate">{entry.name}</span>
            <span className="muted small nowrap">{entry.about}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 && <div className="none">{t.palette.nothing}</div>}
    </Dialog>
  );
}
