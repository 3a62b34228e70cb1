/** The host: capacity, checks, what it runs with, disks that no object owns, and the backup of the installation. */
import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { useData, useMay } from "../../data/data.tsx";
import { errorText } from "../../data/errortext.ts";
import { queriesOf } from "../../data/queries.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { ErrorBox, Note, Skeleton } from "../../ui/feedback.tsx";
import { Facts, Meter, None, PageHead, Panel, State } from "../../ui/page.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { Backup } from "./diskcopies.tsx";
import { Orphans } from "./orphans.tsx";
import { Settings } from "./settings.tsx";

const tabs = ["state", "settings"] as const;

export function Host() {
  const t = useTexts();
  const isAdmin = useMay("account:admin");
  const { tab } = useSearch({ from: "/host" });
  const shown = isAdmin && tab === "settings" ? "settings" : "state";
  return (
    <div className="stack">
      <PageHead title={t.host.title} about={t.host.about} />
      {isAdmin && (
        <Tabs label={t.host.tabsLabel}>
          {tabs.map((name) => (
            <Link key={name} to="/host" search={{ tab: name }} aria-current={name === shown ? "page" : undefined}>
              {t.host.tabs[name]}
            </Link>
          ))}
        </Tabs>
      )}
      {shown === "settings" ? <Settings /> : <HostState isAdmin={isAdmin} />}
    </div>
  );
}

function HostState({ isAdmin }: { isAdmin: boolean }) {
  return (
    <div className="stack wide">
      <div className="columns">
        <Capacity />
        <Checks />
        <Versions />
      </div>
      {isAdmin && <Orphans />}
      {isAdmin && <Backup />}
    </div>
  );
}

function Capacity() {
  const t = useTexts();
  const format = useFormat();
  const { data: locations, error, refetch } = useQuery(queriesOf(useData().client).locations());
  if (error) return <ErrorBox text={errorText(error, t)} onRetry={() => void refetch()} />;
  return (
    <Panel title={t.host.capacity}>
      {locations === undefined ? (
        <Skeleton lines={3} />
      ) : (
        locations.map(({ ID, Title, Capacity: all, Engines }) => (
          <div key={ID} className="stack">
            <div className="line apart">
              <strong>{Title}</strong>
              {Engines.Machine === "sim" && <State tone="warn">{t.host.simulated}</State>}
            </div>
            {(
              [
                [t.overview.cpu, all.CPU, all.FreeCPU, format.number],
                [t.overview.memory, all.RAM, all.FreeRAM, format.megabytes],
                [t.overview.disk, all.HDD, all.FreeHDD, (value: number) => format.megabytes(value * 1024)],
              ] as const
            ).map(([label, total, free, show]) => (
              <div key={label} className="stack tight">
                <div className="line apart">
                  <span>{label}</span>
                  <span className="muted number">{t.table.of(show(total - free), show(total))}</span>
                </div>
                <Meter label={label} value={total - free} limit={total} />
              </div>
            ))}
            <p className="muted small">{t.host.capacityAbout}</p>
          </div>
        ))
      )}
    </Panel>
  );
}

function Checks() {
  const t = useTexts();
  const { data, error, refetch } = useQuery(queriesOf(useData().client).readiness());
  return (
    <Panel
      title={t.host.checks}
      actions={
        data && (
          <State tone={data.Status === "ready" ? "good" : "bad"}>{t.host.statuses[data.Status] ?? data.Status}</State>
        )
      }
      isFlush
    >
      {error ? (
        <ErrorBox text={errorText(error, t)} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <div className="body">
          <Skeleton lines={4} />
        </div>
      ) : (
        <ul className="list padded">
          {data.Checks.map(({ Name, Ok, Detail }) => (
            <li key={Name} className="stack tight">
              <div className="line apart">
                <strong>{t.host.checkNames[Name] ?? Name}</strong>
                <State tone={Ok ? "good" : "bad"}>{Ok ? t.host.passes : t.host.fails}</State>
              </div>
              {Detail !== "" && <p className="muted small break">{t.errors.detail(Detail)}</p>}
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function Versions() {
  const t = useTexts();
  const reads = queriesOf(useData().client);
  const version = useQuery(reads.version()).data;
  const engines = useQuery(reads.locations()).data?.[0]?.Engines;
  const maySeeMetrics = useMay("metrics:read");
  const isSecure = location.protocol === "https:";
  return (
    <Panel title={t.host.service}>
      <div className="stack">
        <Facts
          facts={[
            {
              name: t.host.version,
              value: version === undefined ? <None /> : <span className="number">{version}</span>,
            },
            { name: t.host.url, value: <span className="mono">{location.origin}</span>, copy: location.origin },
            {
              name: t.host.certificate,
              value: isSecure ? (
                <State tone="good">{t.host.secure}</State>
              ) : (
                <State tone="warn">{t.host.insecure}</State>
              ),
            },
            engines !== undefined && { name: t.host.machine, value: t.host.engines[engines.Machine] },
            engines !== undefined && { name: t.host.router, value: t.host.engines[engines.Router] },
            ...(["/healthz", "/readyz", "/openapi.json"] as const).map((name) => ({
              name,
              value: <a href={name}>{t.host.open}</a>,
            })),
          ]}
        />
        {maySeeMetrics && <RequestPanel title={t.host.metrics} request={{ operation: "readMetrics" }} />}
        {!isSecure && (
          <Note kind="warn">
            <p>{t.host.insecureAbout}</p>
          </Note>
        )}
      </div>
    </Panel>
  );
}
