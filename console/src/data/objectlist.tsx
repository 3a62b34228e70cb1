/** A list of objects: error, placeholder, empty state, filter, table. What its filter selects is in the address of the page. */
import type { UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { useFormat, useTexts } from "../texts/texts.tsx";
import { Button } from "../ui/button.tsx";
import type { Column } from "../ui/columns.ts";
import { DataTable, type Selection } from "../ui/datatable.tsx";
import { Empty, ErrorBox, Skeleton } from "../ui/feedback.tsx";
import { SearchFilter, SelectFilter } from "../ui/filters.tsx";
import { useLater } from "../ui/later.ts";
import { errorText } from "./errortext.ts";
import { type Labels, labelTexts } from "./label.ts";

/** Labels that the filter offers. */
const mostLabels = 200;

/** Not every kind of object has labels. */
const labelsOf = (row: unknown): string[] => labelTexts((row as { readonly Labels?: Labels }).Labels ?? {});

/** The filter above a list. */
export interface Filter<T> {
  /** Name of the search field. */
  readonly name: string;
  /** The text to search for. */
  readonly q: string;
  /** The label that objects must have, as `stage=test`; absent: the list offers no labels. */
  readonly label?: string;
  /** What a row is searched by. Another function searches all rows again. */
  readonly textsOf: (row: T) => readonly string[];
  readonly onChange: (part: { readonly q?: string; readonly label?: string }) => void;
  /** Shown if no object matches. */
  readonly noMatch: string;
  /** Further conditions: their inputs, and whether they select anything. */
  readonly more?: {
    readonly inputs: ReactNode;
    readonly isActive: boolean;
    readonly fits: (row: T) => boolean;
    /** Clears these conditions, the text and the label. */
    readonly onClear: () => void;
  };
}

interface ObjectListProps<T> {
  readonly label: string;
  readonly query: Pick<UseQueryResult<T[]>, "data" | "error" | "refetch">;
  readonly columns: readonly Column<T>[];
  readonly idOf: (row: T) => number;
  readonly nameOf: (row: T) => string;
  readonly filter?: Filter<T>;
  readonly selection?: Selection | undefined;
  /** What the list is for; shown while there are no objects. */
  readonly empty?: ReactNode;
}

export function ObjectList<T>(props: ObjectListProps<T>) {
  const { label: title, query, columns, idOf, nameOf, filter, selection, empty } = props;
  const t = useTexts();
  const format = useFormat();
  const { data, error, refetch } = query;
  const { q = "", label = "", textsOf, more } = filter ?? {};
  const text = useLater(q.trim().toLowerCase());
  const fits = more?.fits;
  const rows = useMemo(
    () =>
      (data ?? []).filter(
        (row) =>
          (label === "" || labelsOf(row).includes(label)) &&
          (fits === undefined || fits(row)) &&
          (text === "" || textsOf?.(row).some((part) => part.toLowerCase().includes(text))),
      ),
    [data, text, label, fits, textsOf],
  );
  if (error) return <ErrorBox text={errorText(error, t)} onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton lines={6} />;
  if (data.length === 0 && empty !== undefined) return empty;
  const isFiltered = q !== "" || label !== "" || more?.isActive === true;
  return (
    <div>
      {filter && (
        <div className="filters">
          <SearchFilter label={filter.name} value={q} onChange={(next) => filter.onChange({ q: next })} />
          {more?.inputs}
          {filter.label !== undefined && (
            <LabelFilter rows={data} value={label} onChange={(next) => filter.onChange({ label: next })} />
          )}
          {isFiltered && (
            <>
              <Button
                kind="quiet"
                onClick={
                  more?.onClear ?? (() => filter.onChange({ q: "", ...(filter.label !== undefined && { label: "" }) }))
                }
              >
                {t.servers.clearFilter}
              </Button>
              <span className="muted number" role="status">
                {t.table.of(format.number(rows.length), format.number(data.length))}
              </span>
            </>
          )}
        </div>
      )}
      <DataTable
        label={title}
        columns={columns}
        rows={rows}
        idOf={idOf}
        nameOf={nameOf}
        selection={selection}
        empty={filter && <Empty icon="search" title={filter.noMatch} />}
      />
    </div>
  );
}

interface LabelFilterProps {
  readonly rows: readonly unknown[];
  readonly value: string;
  readonly onChange: (label: string) => void;
}

/** Offers the labels that objects have. */
function LabelFilter({ rows, value, onChange }: LabelFilterProps) {
  const t = useTexts();
  const labels = useMemo(
    () => [...new Set([...rows.flatMap(labelsOf), ...(value === "" ? [] : [value])])].sort().slice(0, mostLabels),
    [rows, value],
  );
  if (labels.length === 0) return null;
  return (
    <SelectFilter
      label={t.common.labels}
      any={t.servers.anyLabel}
      value={value}
      options={labels.map((one) => [one, one])}
      onChange={onChange}
    />
  );
}
