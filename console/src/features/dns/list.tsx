/** The list of domains, with the state of their delegation. */
import type { Domain } from "@brume/api/dns.ts";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { useData, useMayOwnDomains } from "../../data/data.tsx";
import { queriesOf } from "../../data/queries.ts";
import { troubleOf } from "../../data/trouble.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { DataTable } from "../../ui/datatable.tsx";
import { Empty, Skeleton, TroubleBox } from "../../ui/feedback.tsx";
import { PageHead, State, type Tone } from "../../ui/page.tsx";
import { CreateDomain } from "./createdomain.tsx";

export const delegationTones = {
  Delegated: "good",
  Partial: "warn",
  NotDelegated: "warn",
  Unknown: "quiet",
} as const satisfies Readonly<Record<Domain["Delegation"], Tone>>;

export function DomainList() {
  const t = useTexts();
  const format = useFormat();
  const go = useNavigate({ from: "/dns" });
  const { q = "", create } = useSearch({ from: "/dns" });
  const mayWrite = useMayOwnDomains();
  const { data: domains, error, refetch } = useQuery(queriesOf(useData().client).domains());
  const text = q.trim().toLowerCase();
  const rows = useMemo(
    () => (domains ?? []).filter(({ Name, NamePunyCode }) => Name.includes(text) || NamePunyCode.includes(text)),
    [domains, text],
  );
  const columns = useMemo<Column<Domain>[]>(
    () => [
      {
        id: "name",
        name: t.common.name,
        width: "minmax(180px, 2fr)",
        isMain: true,
        cell: ({ ID, Name }) => (
          <Link to="/dns/$id" params={{ id: String(ID) }} className="whole">
            {Name}
          </Link>
        ),
      },
      {
        id: "delegation",
        name: t.domains.delegation,
        width: "160px",
        isMain: true,
        cell: ({ Delegation }) => <State tone={delegationTones[Delegation]}>{t.domains.delegations[Delegation]}</State>,
      },
      {
        id: "serial",
        name: t.domains.serial,
        width: "minmax(110px, 1fr)",
        cell: ({ Serial }) => <span className="mono">{Serial}</span>,
      },
      {
        id: "created",
        name: t.common.created,
        width: "minmax(120px, 1fr)",
        cell: ({ DateCreate }) => (
          <time dateTime={DateCreate} title={format.time(DateCreate)} className="muted">
            {format.ago(DateCreate)}
          </time>
        ),
      },
    ],
    [t, format],
  );
  const setCreating = (is: boolean): void => {
    void go({ search: { ...(q !== "" && { q }), ...(is && { create: "1" }) }, replace: true });
  };
  if (error) return <TroubleBox trouble={troubleOf(error, t)} onRetry={() => void refetch()} />;
  const button = mayWrite && (
    <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
      {t.domains.create}
    </Button>
  );
  return (
    <>
      <PageHead title={t.domains.title} count={domains && format.number(domains.length)}>
        {button}
      </PageHead>
      {domains === undefined ? (
        <Skeleton lines={6} />
      ) : domains.length === 0 ? (
        <Empty
          icon="dns"
          title={t.domains.emptyTitle}
          action={button}
          command="brume domain create example.com --ip 192.0.2.10"
        >
          {t.domains.emptyAbout}
        </Empty>
      ) : (
        <>
          <div className="filters">
            <input
              className="input"
              type="search"
              aria-label={t.domains.filter}
              placeholder={t.domains.filter}
              value={q}
              onChange={({ target }) =>
                void go({ search: (before) => ({ ...before, q: target.value }), replace: true })
              }
            />
          </div>
          <DataTable
            label={t.domains.title}
            columns={columns}
            rows={rows}
            idOf={({ ID }) => ID}
            nameOf={({ Name }) => Name}
            empty={<Empty icon="search" title={t.domains.noMatch} />}
          />
        </>
      )}
      {create !== undefined && mayWrite && <CreateDomain onClose={() => setCreating(false)} />}
    </>
  );
}
