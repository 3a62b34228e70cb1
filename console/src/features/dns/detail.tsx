/** One domain: its records, history, delegation and what deletes it. */
import type { Domain } from "@brume/api/dns.ts";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "../../data/change.ts";
import { useData, useMay } from "../../data/data.tsx";
import { queriesOf } from "../../data/queries.ts";
import { troubleOf } from "../../data/trouble.ts";
import { useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Empty, Skeleton, TroubleBox } from "../../ui/feedback.tsx";
import { Facts, PageHead, Panel, State } from "../../ui/page.tsx";
import { History } from "./history.tsx";
import { delegationTones } from "./list.tsx";
import { Records } from "./records.tsx";

const tabs = ["records", "history", "setup", "settings"] as const;

export function DomainDetail() {
  const t = useTexts();
  const id = Number(useParams({ from: "/dns/$id" }).id);
  const { tab = "records" } = useSearch({ from: "/dns/$id" });
  const mayWrite = useMay("dns:write");
  const { data: domain, error, refetch } = useQuery(queriesOf(useData().client).domain(id));
  if (error && domain === undefined)
    return "status" in error && error.status === 404 ? (
      <Empty icon="dns" title={t.records.notFound} action={<Link to="/dns">{t.domains.title}</Link>} />
    ) : (
      <TroubleBox trouble={troubleOf(error, t)} onRetry={() => void refetch()} />
    );
  if (domain === undefined) return <Skeleton lines={8} />;
  return (
    <>
      <PageHead
        crumb={<Link to="/dns">{t.domains.title}</Link>}
        title={
          <>
            {domain.Name}
            <State tone={delegationTones[domain.Delegation]}>{t.domains.delegations[domain.Delegation]}</State>
          </>
        }
      />
      <div className="stack">
        <nav className="tabs" aria-label={t.records.tabsLabel}>
          {tabs
            .filter((name) => mayWrite || name !== "settings")
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
        </nav>
        {tab === "history" ? (
          <History domain={domain} />
        ) : tab === "setup" ? (
          <Setup domain={domain} />
        ) : tab === "settings" && mayWrite ? (
          <DangerZone domain={domain} />
        ) : (
          <Records key={id} domain={domain} />
        )}
      </div>
    </>
  );
}

function Setup({ domain }: { domain: Domain }) {
  const t = useTexts();
  return (
    <Panel title={t.records.setupTitle}>
      <div className="stack">
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
        <p className="muted">{t.records.setupAbout}</p>
      </div>
    </Panel>
  );
}

function DangerZone({ domain }: { domain: Domain }) {
  const t = useTexts();
  const go = useNavigate();
  const { client } = useData();
  const [isOpen, setOpen] = useState(false);
  const { run } = useChange(() => client.deleteDomain({ path: { id: domain.ID } }), {
    done: () => t.domains.deleted(domain.Name),
    onDone: () => void go({ to: "/dns" }),
  });
  return (
    <Panel title={t.server.danger} kind="danger">
      <div className="stack tight">
        <h3>{t.records.deleteTitle(domain.Name)}</h3>
        <p className="muted">{t.records.deleteAbout}</p>
        <div className="line">
          <Button kind="danger" icon="trash" onClick={() => setOpen(true)}>
            {t.common.delete}
          </Button>
        </div>
      </div>
      {isOpen && (
        <Confirm
          title={t.records.deleteTitle(domain.Name)}
          action={t.common.delete}
          typed={domain.Name}
          onConfirm={() => run(undefined)}
          onClose={() => setOpen(false)}
        >
          <p>{t.records.deleteAbout}</p>
        </Confirm>
      )}
    </Panel>
  );
}
