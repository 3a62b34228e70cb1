/** A column with the time of a row, as "3 minutes ago"; its exact time is the title. */
import type { Format } from "../texts/format.ts";
import type { Column } from "./columns.ts";
import { None } from "./page.tsx";

interface TimeColumn<T> {
  readonly id: string;
  readonly name: string;
  readonly format: Format;
  readonly timeOf: (row: T) => string | null;
  /** Shown instead of no time; absent: a dash. */
  readonly none?: string;
}

export function timeColumn<T>({ id, name, format, timeOf, none }: TimeColumn<T>): Column<T> {
  return {
    id,
    name,
    width: "minmax(124px, 130px)",
    cell(row) {
      const time = timeOf(row);
      if (time === null) return none === undefined ? <None /> : <span className="muted">{none}</span>;
      return (
        <time dateTime={time} title={format.time(time)} className="muted">
          {format.ago(time)}
        </time>
      );
    },
  };
}
