/** Columns of a table: which of them fit into its width, and their tracks in the grid. */
import type { CSSProperties, ReactNode } from "react";

export interface Column<T> {
  readonly id: string;
  readonly name: string;
  /** Width as a grid track: `120px`, `minmax(160px, 2fr)`. */
  readonly width: string;
  /** The name is only for screen readers. */
  readonly isNameHidden?: boolean;
  readonly isRight?: boolean;
  /** Is shown on a narrow screen too. */
  readonly isMain?: boolean;
  /** Is on a second line of the row on a narrow screen, where a column of its own would be too narrow. */
  readonly isBelow?: boolean;
  /** On the second line its name is before the value, which does not show what it is. */
  readonly isNamed?: boolean;
  /** Whether the row has no value: on the second line nothing is shown. */
  readonly isAbsent?: (row: T) => boolean;
  /** The content may be larger than the cell, as menus and inputs. */
  readonly isLoose?: boolean;
  readonly cell: (row: T) => ReactNode;
}

/** Pixels between two columns, and at both ends of a row. */
const gap = 16;
/** The same on a narrow screen. */
const narrowGap = 10;

export interface Fit<T> {
  readonly columns: readonly Column<T>[];
  /** The second line of the row; empty: there is none. */
  readonly below: readonly Column<T>[];
  /** All columns in one line would be too wide. */
  readonly isNarrow: boolean;
}

const widthOf = <T>(columns: readonly Column<T>[]): number =>
  columns.reduce((sum, column) => sum + leastOf(column.width) + gap, gap);

/** Returns the columns that fit: those without `isMain` are left out, the last one first, and then those with `isBelow` are on a second line. */
export function fitting<T>(columns: readonly Column<T>[], width: number): Fit<T> {
  const shown = [...columns];
  while (widthOf(shown) > width) {
    const at = shown.findLastIndex(({ isMain, isBelow }) => isMain !== true && isBelow !== true);
    if (at < 0) {
      const below = shown.filter(({ isBelow }) => isBelow);
      return { columns: shown.filter(({ isBelow }) => !isBelow), below, isNarrow: true };
    }
    shown.splice(at, 1);
  }
  return { columns: shown, below: [], isNarrow: false };
}

/** Returns the style of a row: a grid whose columns do not depend on their content, because every row is a grid of its own. */
export function gridOf<T>({ columns, isNarrow }: Fit<T>, hasSelection: boolean): CSSProperties {
  const tracks = columns.map(({ width }) => (isNarrow ? narrowed(width) : width));
  if (hasSelection) tracks.unshift("20px");
  const between = isNarrow ? narrowGap : gap;
  return {
    gridTemplateColumns: tracks.join(" "),
    columnGap: between,
    paddingInline: between,
    minWidth: `${tracks.reduce((sum, track) => sum + leastOf(track) + between, between)}px`,
  };
}

/** Returns the least width of a track in pixels. */
const leastOf = (track: string): number => Number(/\d+(?=px)/.exec(track)?.[0] ?? 0);

/** On a narrow screen a column may shrink to its content. */
const narrowed = (width: string): string => width.replace(/minmax\([^,]+,/, "minmax(0,");
