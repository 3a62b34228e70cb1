/** The first page: what runs, what needs attention and why, what happened last, and how much of the host is used. */
import type { Location } from "@brume/api/catalog.ts";
import type { Domain } from "@brume/api/dns.ts";
import type { Server } from "@brume/api/server.ts";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useAccount, useData, useMay } from "../../data/data.tsx";
import { queriesOf } from "../../data/queries.ts";
import { Unread } from "../../data/unread.tsx";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { buttonClass } from "../../ui/button.tsx";
import { Note, Skeleton } from "../../ui/feedback.tsx";
import { Icon } from "../../ui/icon.tsx";
import { InTurn } from "../../ui/later.ts";
import { Meter, PageHead, Panel } from "../../ui/page.tsx";
import { Attention } from "./attention.tsx";
import { Latest, useLatest } from "./latest.tsx";
import { Start } from "./start.tsx";

export function Overview() {
  const t = useTexts();
  const account = useAccount();
  const queries = queriesOf(useData().client);
  const mayServers = useMay("server:read");
  const mayDns = useMay("dns:read");
  const mayNetworks = useMay("network:read");
  const mayCreate = useMay("server:write");
  const servers = useQuery({ ...queries.servers(), enabled: mayServers });
  const networks = useQuery({ ...queries.publicNetworks(), enabled: mayNetworks });
  const domains = useQuery({ ...queries.domains(), enabled: mayDns });
  // What the host has means nothing to a token without servers and networks.
  const mayHost = mayServers || mayNetworks;
  const locations = useQuery({ ...queries.locations(), enabled: mayHost });
  // Read at once with the others, although they are shown after them.
  const readiness = useQuery(queries.readiness());
  const latest = useLatest();
  const project = account?.Projects.find(({ ID }) => ID === account.Token.ProjectID)?.Name;
  const isSimulated = locations.data?.[0]?.Engines.Machine === "sim";
  // The parts appear from the top down, so that nothing moves what is below.
  const isPending =
    (mayHost && locations.isPending) || (mayServers && servers.isPending) || (mayDns && domains.isPending);
  const isEmpty = servers.data?.length === 0 && domains.data?.length === 0;
  const judged = [servers, networks, domains, locations, readiness];
  const attention = {
    readiness: readiness.data,
    servers: servers.data,
    networks: networks.data,
    domains: domains.data,
    isAllRead: judged.every(({ error }) => error === null),
  };
  return (
    <div className="stack wide">
      <PageHead title={t.overview.title} about={project === undefined ? undefined : t.overview.project(project)}>
        {mayCreate && (
          <Link to="/servers/create" className={buttonClass("primary")}>
            <Icon name="plus" />
            {t.servers.create}
          </Link>
        )}
      </PageHead>
      {isSimulated && !isPending && <Note>{t.overview.simulated}</Note>}
      <Unread of={judged} />
      {!isPending && (
        <Figures servers={servers.data} domains={domains.data} locations={mayServers ? (locations.data ?? []) : []} />
      )}
      {isPending ? (
        <Skeleton lines={8} />
      ) : isEmpty ? (
        <InTurn>
          <Start />
          <Attention {...attention} isOnlyProblems />
        </InTurn>
      ) : (
        <div className="columns">
          <InTurn>
            <Attention {...attention} />
          </InTurn>
          <InTurn>
            <Latest latest={latest} />
          </InTurn>
        </div>
      )}
    </div>
  );
}

function Figures({
  servers,
  domains,
  locations,
}: {
  servers: readonly Server[] | undefined;
  domains: readonly Domain[] | undefined;
  /** Empty: their capacity is not shown. */
  locations: readonly Location[];
}) {
  const t = useTexts();
  const format = useFormat();
  const sum = (name: "CPU" | "RAM" | "HDD" | "FreeCPU" | "FreeRAM" | "FreeHDD") =>
    locations.reduce((total, { Capacity }) => total + Capacity[name], 0);
  const share = (label: string, all: number, free: number, show: (value: number) => string) => (
    <Figure label={label} value={show(all - free)} of={show(all)}>
      <Meter label={label} value={all - free} limit={all} />
    </Figure>
  );
  const gigabytes = (value: number): string => format.megabytes(value * 1024);
  return (
    <div className="columns figures">
      {servers && (
        <Figure
          label={t.overview.running}
          value={format.number(servers.filter(({ IsPowerOn }) => IsPowerOn).length)}
          of={format.number(servers.length)}
        />
      )}
      {domains && <Figure label={t.overview.domains} value={format.number(domains.length)} />}
      {locations.length > 0 && (
        <>
          {share(t.overview.cpu, sum("CPU"), sum("FreeCPU"), format.number)}
          {share(t.overview.memory, sum("RAM"), sum("FreeRAM"), format.megabytes)}
          {share(t.overview.disk, sum("HDD"), sum("FreeHDD"), gigabytes)}
        </>
      )}
    </div>
  );
}

function Figure({ label, value, of, children }: { label: string; value: string; of?: string; children?: ReactNode }) {
  const t = useTexts();
  return (
    <Panel>
      <div className="muted small">{label}</div>
      <div className="line">
        <span className="figure">{value}</span>
        {of !== undefined && <span className="muted number">{t.overview.of(of)}</span>}
      </div>
      {children}
    </Panel>
  );
}
