/** A list of networks with a filter in the address: placeholder, error, empty state, table. */
import type { Network, PublicNetwork } from "@brume/api/network.ts";
import type { UseQueryResult } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { matchesNetwork } from "../../data/networkview.ts";
import { troubleOf } from "../../data/trouble.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import type { Column } from "../../ui/columns.ts";
import { DataTable } from "../../ui/datatable.tsx";
import { Empty, Skeleton, TroubleBox } from "../../ui/feedback.tsx";

interface FilteredProps<T> {
  readonly label: string;
  readonly query: UseQueryResult<T[]>;
  readonly columns: readonly Column<T>[];
  readonly idOf: (row: T) => number;
  readonly empty: ReactNode;
}

export function FilteredNetworks<T extends PublicNetwork | Network>(props: FilteredProps<T>) {
  const { label, query, columns, idOf, empty } = props;
  const t = useTexts();
  const format = useFormat();
  const go = useNavigate({ from: "/networks" });
  const { q = "" } = useSearch({ from: "/networks" });
  const { data, error, refetch } = query;
  const text = q.trim().toLowerCase();
  const rows = useMemo(() => (data ?? []).filter((network) => matchesNetwork(network, text)), [data, text]);
  if (error) return <TroubleBox trouble={troubleOf(error, t)} onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton lines={6} />;
  if (data.length === 0) return empty;
  return (
    <div>
      <div className="filters">
        <input
          className="input"
          type="search"
          aria-label={t.networks.filter}
          placeholder={t.networks.filter}
          value={q}
          onChange={({ target }) => void go({ search: (all) => ({ ...all, q: target.value }), replace: true })}
        />
        {q !== "" && (
          <span className="muted number" role="status">
            {t.table.of(format.number(rows.length), format.number(data.length))}
          </span>
        )}
      </div>
      <DataTable
        label={label}
        columns={columns}
        rows={rows}
        idOf={idOf}
        nameOf={({ Name }) => Name}
        empty={<Empty icon="search" title={t.networks.noMatch} />}
      />
    </div>
  );
}
