/** The list of domains, with the state of their delegation. */
import type { Domain } from "@brume/api/dns.ts";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { useData } from "../../data/data.tsx";
import { hasLabels, labelColumn } from "../../data/labelcolumn.tsx";
import { ObjectList } from "../../data/objectlist.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import type { Column } from "../../ui/columns.ts";
import { Empty } from "../../ui/feedback.tsx";
import { State, type Tone } from "../../ui/page.tsx";
import { timeColumn } from "../../ui/timecolumn.tsx";
import { useNameFilter } from "./namefilter.ts";

export const delegationTones = {
  Delegated: "good",
  Partial: "warn",
  NotDelegated: "warn",
  Unknown: "quiet",
} as const satisfies Readonly<Record<Domain["Delegation"], Tone>>;

export function DomainList({ button }: { button: ReactNode }) {
  const t = useTexts();
  const format = useFormat();
  const filter = useNameFilter(t.domains.noMatch);
  const query = useQuery(queriesOf(useData().client).domains());
  const isLabelled = hasLabels(query.data);
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
      ...labelColumn<Domain>(isLabelled, t),
      timeColumn({ id: "created", name: t.common.created, format, timeOf: ({ DateCreate }) => DateCreate }),
    ],
    [t, format, isLabelled],
  );
  return (
    <ObjectList
      label={t.domains.title}
      query={query}
      columns={columns}
      idOf={({ ID }) => ID}
      nameOf={({ Name }) => Name}
      filter={filter}
      empty={
        <Empty
          icon="dns"
          title={t.domains.emptyTitle}
          action={button}
          command="brume domain create example.com --ip 192.0.2.10"
        >
          {t.domains.emptyAbout}
        </Empty>
      }
    />
  );
}
