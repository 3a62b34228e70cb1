/** One domain: its records, history, delegation and what deletes it. */
import type { Domain } from "@brume/api/dns.ts";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { useData, useMayOwnDomains } from "../../data/data.tsx";
import { digOf } from "../../data/dig.ts";
import { labelTexts } from "../../data/label.ts";
import { Missing } from "../../data/missing.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Code, Note, Skeleton } from "../../ui/feedback.tsx";
import { Tags } from "../../ui/filters.tsx";
import { Facts, PageHead, Panel, State } from "../../ui/page.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { useExport } from "./export.ts";
import { History } from "./history.tsx";
import { delegationTones } from "./list.tsx";
import { Queries } from "./queries.tsx";
import { Records } from "./records.tsx";
import { DomainSettings } from "./settings.tsx";

const tabs = ["records", "history", "queries", "setup", "settings"] as const;

export function DomainDetail() {
  const t = useTexts();
  const id = Number(useParams({ from: "/dns/$id" }).id);
  const { tab = "records" } = useSearch({ from: "/dns/$id" });
  const isOwner = useMayOwnDomains();
  const { data: domain, error, refetch } = useQuery(queriesOf(useData().client).domain(id));
  if (error && domain === undefined)
    return (
      <Missing
        error={error}
        onRetry={() => void refetch()}
        icon="dns"
        title={t.records.notFound}
        list={{ to: "/dns" }}
        name={t.domains.title}
      />
    );
  if (domain === undefined) return <Skeleton lines={8} />;
  const labels = labelTexts(domain.Labels);
  return (
    <>
      <PageHead
        crumb={<Link to="/dns">{t.domains.title}</Link>}
        title={
          <>
            {domain.Name}
            <State tone={delegationTones[domain.Delegation]}>
              {domain.Delegation === "Unknown" ? t.domains.notChecked : t.domains.delegations[domain.Delegation]}
            </State>
          </>
        }
        about={labels.length > 0 && <Tags texts={labels} />}
      >
        <ExportButton domain={domain} />
      </PageHead>
      <div className="stack">
        <ImportNote domain={domain} />
        <Tabs label={t.records.tabsLabel}>
          {tabs
            .filter((name) => isOwner || name !== "settings")
            .map((name) => (
              <Link
                key={name}
                to="/dns/$id"
                params={{ id: String(id) }}
                search={{ tab: name }}
                aria-current={name === tab ? "page" : undefined}
              >
                {t.records.tabs[name]}
              </Link>
            ))}
        </Tabs>
        {tab === "history" ? (
          <History domain={domain} />
        ) : tab === "queries" ? (
          <Queries domain={domain} />
        ) : tab === "setup" ? (
          <Setup domain={domain} />
        ) : tab === "settings" && isOwner ? (
          <DomainSettings key={id} domain={domain} />
        ) : (
          <Records key={id} domain={domain} />
        )}
      </div>
    </>
  );
}

function ExportButton({ domain }: { domain: Domain }) {
  const t = useTexts();
  const { run, isBusy } = useExport(domain.ID, domain.NamePunyCode);
  return (
    <Button icon="download" isBusy={isBusy} onClick={() => void run(undefined).catch(() => undefined)}>
      {t.records.export}
    </Button>
  );
}

/** What the import at the creation of the domain left out. */
function ImportNote({ domain: { Import } }: { domain: Domain }) {
  const t = useTexts();
  if (Import === null || (Import.State === "Completed" && Import.Skipped.length === 0)) return null;
  return (
    <Note kind={Import.State === "Failed" ? "warn" : "calm"}>
      <p className="break">
        {Import.State === "Failed" ? t.errors.detail(Import.Detail) : t.records.skipped(Import.Skipped.length)}
      </p>
      {Import.Skipped.length > 0 && (
        <ul className="small mono break">
          {Import.Skipped.slice(0, 20).map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
    </Note>
  );
}

function Setup({ domain }: { domain: Domain }) {
  const t = useTexts();
  const checks = useQuery(queriesOf(useData().client).readiness()).data?.Checks ?? [];
  const dig = digOf(checks, domain.NamePunyCode, location.hostname);
  // The default of the service: no name of the public DNS ends with it.
  const isInternal = domain.NameServers.some((name) => /\.internal\.?$/.test(name));
  return (
    <Panel title={t.records.setupTitle}>
      <div className="stack">
        {isInternal && (
          <Note kind="warn">
            <p>{t.records.internalAbout}</p>
          </Note>
        )}
        <Facts
          facts={domain.NameServers.map((name, index) => ({
            name: `NS ${index + 1}`,
            value: <span className="mono">{name}</span>,
            copy: name,
          }))}
        />
        <Facts
          facts={[
            {
              name: t.domains.delegation,
              value: (
                <State tone={delegationTones[domain.Delegation]}>{t.domains.delegations[domain.Delegation]}</State>
              ),
            },
            { name: t.domains.serial, value: <span className="mono">{domain.Serial}</span> },
          ]}
        />
        <p className="muted">
          {t.records.setupAbout} {domain.Delegation === "Unknown" && t.records.unknownAbout}
        </p>
        {dig !== null && (
          <div className="stack tight">
            <p className="muted">{dig.isLocal ? t.records.digLocal : t.records.dig}</p>
            <Code text={dig.command} />
          </div>
        )}
      </div>
    </Panel>
  );
}
