/** The first page: what runs, what needs attention and why, what happened last, and how much of the host is used. */
import type { Domain } from "@brume/api/dns.ts";
import type { Server } from "@brume/api/server.ts";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useAccount, useData, useMay } from "../../data/data.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { buttonClass } from "../../ui/button.tsx";
import { Empty, Note, Skeleton } from "../../ui/feedback.tsx";
import { Icon, type IconName } from "../../ui/icon.tsx";
import { Meter, PageHead, Panel } from "../../ui/page.tsx";
import { Latest } from "./latest.tsx";

export function Overview() {
  const t = useTexts();
  const account = useAccount();
  const queries = queriesOf(useData().client);
  const mayServers = useMay("server:read");
  const mayDns = useMay("dns:read");
  const mayCreate = useMay("server:write");
  const servers = useQuery({ ...queries.servers(), enabled: mayServers });
  const domains = useQuery({ ...queries.domains(), enabled: mayDns });
  const locations = useQuery(queries.locations());
  const project = account?.Projects.find(({ ID }) => ID === account.Token.ProjectID)?.Name;
  const isSimulated = locations.data?.[0]?.Engines.Machine === "sim";
  const isEmpty = servers.data?.length === 0 && domains.data?.length === 0;
  return (
    <div className="stack wide">
      <PageHead title={t.overview.title} about={project}>
        {mayCreate && (
          <Link to="/servers/create" className={buttonClass("primary")}>
            <Icon name="plus" />
            {t.servers.create}
          </Link>
        )}
      </PageHead>
      {isSimulated && <Note>{t.overview.simulated}</Note>}
      <Figures servers={servers.data} domains={domains.data} />
      {isEmpty ? (
        <Panel>
          <Empty icon="server" title={t.overview.start}>
            {t.overview.startAbout}
          </Empty>
        </Panel>
      ) : (
        <div className="columns">
          <Attention servers={servers.data ?? []} domains={domains.data ?? []} />
          <Latest />
        </div>
      )}
    </div>
  );
}

function Figures({
  servers,
  domains,
}: {
  servers: readonly Server[] | undefined;
  domains: readonly Domain[] | undefined;
}) {
  const t = useTexts();
  const format = useFormat();
  const locations = useQuery(queriesOf(useData().client).locations()).data;
  if (locations === undefined) return <Skeleton lines={3} />;
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
      {share(t.overview.cpu, sum("CPU"), sum("FreeCPU"), format.number)}
      {share(t.overview.memory, sum("RAM"), sum("FreeRAM"), format.megabytes)}
      {share(t.overview.disk, sum("HDD"), sum("FreeHDD"), gigabytes)}
    </div>
  );
}

function Figure({ label, value, of, children }: { label: string; value: string; of?: string; children?: ReactNode }) {
  const t = useTexts();
  return (
    <Panel>
      <div className="figure-label">{label}</div>
      <div className="line">
        <span className="figure">{value}</span>
        {of !== undefined && <span className="muted number">{t.overview.of(of)}</span>}
      </div>
      {children}
    </Panel>
  );
}

interface Problem {
  readonly key: string;
  readonly icon: IconName;
  readonly text: string;
  readonly detail: string;
  readonly server?: number;
}

/** Names that a list of problems shows; the others are counted. */
const mostShown = 8;

function Attention({ servers, domains }: { servers: readonly Server[]; domains: readonly Domain[] }) {
  const t = useTexts();
  const checks = useQuery(queriesOf(useData().client).readiness()).data?.Checks ?? [];
  const states = t.servers.states;
  const undelegated = domains.filter(({ Delegation }) => Delegation === "NotDelegated" || Delegation === "Partial");
  const problems: Problem[] = [
    ...checks
      .filter(({ Ok }) => !Ok)
      .map(({ Name, Detail }) => ({
        key: Name,
        icon: "error" as const,
        text: t.overview.check(Name),
        detail: Detail,
      })),
    ...servers.flatMap(({ ID, Name, State, Error: error, Condition, Crashes }): Problem[] => {
      const server = { key: `server-${ID}`, server: ID };
      if (State === "Failed")
        return [{ ...server, icon: "error", text: t.overview.failedServer(Name), detail: error?.detail ?? "" }];
      if (Condition !== "Normal")
        return [{ ...server, icon: "warn", text: t.overview.condition(Name, states[Condition]), detail: "" }];
      return Crashes > 0 ? [{ ...server, icon: "warn", text: t.overview.crashes(Name, Crashes), detail: "" }] : [];
    }),
    ...(undelegated.length > 0
      ? [
          {
            key: "delegation",
            icon: "warn" as const,
            text: t.overview.notDelegated(undelegated.length),
            detail: undelegated
              .slice(0, mostShown)
              .map(({ Name }) => Name)
              .join(", "),
          },
        ]
      : []),
  ];
  return (
    <Panel title={t.overview.attention} isFlush>
      {problems.length === 0 ? (
        <Empty icon="check" title={t.overview.allWell}>
          {t.overview.allWellAbout}
        </Empty>
      ) : (
        <ul className="list padded">
          {problems.slice(0, mostShown).map(({ key, icon, text, detail, server }) => (
            <li key={key} className="line fixed">
              <Icon name={icon} />
              <div className="grow break">
                {server === undefined ? (
                  text
                ) : (
                  <Link to="/servers/$id" params={{ id: String(server) }}>
                    {text}
                  </Link>
                )}
                {detail !== "" && <div className="muted small">{detail}</div>}
              </div>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
