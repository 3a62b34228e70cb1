/**
 * A table of any length: only the visible rows and the one with the focus are in the page. Its columns share one grid. On a narrow screen
 * those without `isMain` are hidden, and those with `isBelow` are on a second line of the row. Rows can be selected. A screen reader reads it
 * as a table, not as a grid (docs/decisions/0021-tables-are-no-grids.md).
 */
import { defaultRangeExtractor, type Range, useVirtualizer } from "@tanstack/react-virtual";
import {
  type CSSProperties,
  type FocusEvent,
  memo,
  type ReactNode,
  type RefObject,
  useCallback,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { useTexts } from "../texts/texts.tsx";
import { type Column, fitting, gridOf } from "./columns.ts";

export interface Selection {
  readonly selected: ReadonlySet<number>;
  readonly onSelect: (selected: ReadonlySet<number>) => void;
}

interface TableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly idOf: (row: T) => number;
  readonly nameOf: (row: T) => string;
  readonly rowClass?: (row: T) => string;
  /** Whether the second line of a row is one line for each value: for rows that one fills in. */
  readonly isStacked?: (row: T) => boolean;
  readonly selection?: Selection | undefined;
  /** Shown instead of rows if there are none. */
  readonly empty?: ReactNode;
}

/** Rows up to which all are rendered: find-in-page works, and no script runs while scrolling. */
const plainRows = 60;
/** Pixels that a second line adds to a row. */
const secondLine = 24;
/** Pixels below each field of a stacked row. */
const stackedGap = 8;

/**
 * Returns the width of the element in pixels, also after it has changed; null: it is not in the page yet. Sets `--above` to its distance from the top of the page, so that
 * a long table ends where the screen does and the page itself does not scroll.
 */
function useWidth(element: RefObject<HTMLElement | null>): number | null {
  const [width, setWidth] = useState<number | null>(null);
  useLayoutEffect(() => {
    const box = element.current;
    if (box === null) return undefined;
    const measure = (): void => {
      setWidth(box.clientWidth);
      box.style.setProperty("--above", `${Math.round(box.getBoundingClientRect().top + scrollY)}px`);
    };
    const observer = new ResizeObserver(measure);
    // The first rows are made in a task of their own, and not in that in which the browser draws the page.
    const first = setTimeout(() => {
      measure();
      observer.observe(box);
    });
    return () => {
      clearTimeout(first);
      observer.disconnect();
    };
  }, [element]);
  return width;
}

interface RowProps<T> {
  readonly id: number;
  readonly row: T;
  readonly index: number;
  /** Pixels from the top; absent: below the row before it. */
  readonly start: number | undefined;
  readonly columns: readonly Column<T>[];
  readonly below: readonly Column<T>[];
  readonly grid: CSSProperties;
  /** Absent: rows cannot be selected. */
  readonly isSelected: boolean | undefined;
  readonly isStacked: boolean;
  readonly label: string;
  readonly look: string;
  readonly onToggle: (id: number) => void;
}

/** A row, which is rendered again only if one of its properties has changed: not while one scrolls. */
const Row = memo(function Row<T>(props: RowProps<T>) {
  const { id, row, index, start, columns, below, grid, isSelected, isStacked, label, look, onToggle } = props;
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={`row ${isSelected ? "selected" : ""} ${look} ${below.length === 0 ? "" : isStacked ? "stacked" : "double"}`}
      style={start === undefined ? grid : { ...grid, transform: `translateY(${start}px)` }}
    >
      {isSelected !== undefined && (
        <div role="cell" className="cell loose">
          <label className="tick">
            <input type="checkbox" checked={isSelected} aria-label={label} onChange={() => onToggle(id)} />
          </label>
        </div>
      )}
      {columns.map((column) => (
        <div
          key={column.id}
          role="cell"
          className={`cell ${column.isRight ? "right" : ""} ${column.isLoose ? "loose" : ""}`}
        >
          {column.cell(row)}
        </div>
      ))}
      {below.length > 0 && (
        <div role="none" className={isSelected === undefined ? "below" : "below indented"}>
          {below.map((column) => (
            <div key={column.id} role="cell" className="cell">
              {column.isAbsent?.(row) !== true && (
                <>
                  {(column.isNamed === true || isStacked) && (
                    <span className="name-of" aria-hidden="true">
                      {column.name}
                    </span>
                  )}
                  {column.cell(row)}
                </>
              )}
            </div>
          ))}
        </div>
      )}
    </div>
  );
}) as <T>(props: RowProps<T>) => ReactNode;

export function DataTable<T>(props: TableProps<T>) {
  const { label, rows, idOf, nameOf, rowClass, isStacked, selection, empty } = props;
  const t = useTexts();
  const scroll = useRef<HTMLDivElement>(null);
  const outer = useRef<HTMLDivElement>(null);
  const outerWidth = useWidth(outer);
  const width = (outerWidth ?? 0) - (selection ? 36 : 0);
  const fit = useMemo(() => fitting(props.columns, width), [props.columns, width]);
  const { columns, below } = fit;
  const isVirtual = rows.length > plainRows;
  // Index of the row with the focus.
  const [held, setHeld] = useState<number | null>(null);
  const hold = ({ target }: FocusEvent): void =>
    setHeld(Number(target.closest("[aria-rowindex]")?.getAttribute("aria-rowindex")) - 2);
  const isCoarse = matchMedia("(pointer: coarse)").matches;
  const rowHeight = (isCoarse ? 48 : 40) + (below.length > 0 ? secondLine : 0);
  const stackedHeight = (isCoarse ? 52 : 44) + below.length * ((isCoarse ? 40 : 32) + stackedGap);
  const isNarrow = below.length > 0;
  const stackedOf = (row: T | undefined): boolean => isNarrow && row !== undefined && isStacked?.(row) === true;
  const stackedCount = useMemo(
    () => (isNarrow && isStacked ? rows.filter(isStacked).length : 0),
    [rows, isNarrow, isStacked],
  );
  const virtual = useVirtualizer({
    count: isVirtual ? rows.length : 0,
    // Only a virtual table needs the size of this element, for which the browser lays out the page.
    getScrollElement: () => (isVirtual ? scroll.current : null),
    estimateSize: (index) => (stackedOf(rows[index]) ? stackedHeight : rowHeight),
    overscan: 8,
    // Otherwise the focus is lost when its row is scrolled out of view.
    rangeExtractor: useCallback(
      (range: Range): number[] => {
        const shown = defaultRangeExtractor(range);
        return held === null || held >= range.count || shown.includes(held)
          ? shown
          : [...shown, held].toSorted((a, b) => a - b);
      },
      [held],
    ),
  });
  const measure = useRef(virtual.measure);
  measure.current = virtual.measure;
  // biome-ignore lint/correctness/useExhaustiveDependencies: sizes that are known are of other rows
  useLayoutEffect(() => measure.current(), [rowHeight, stackedCount]);
  const hasSelection = selection !== undefined;
  const grid = useMemo(() => gridOf(fit, hasSelection), [fit, hasSelection]);
  const isWide = Number.parseFloat(String(grid.minWidth)) > width + (hasSelection ? 36 : 0);
  const isAll = rows.length > 0 && selection !== undefined && rows.every((row) => selection.selected.has(idOf(row)));

  const latest = useRef(selection);
  latest.current = selection;
  const toggle = useCallback((id: number): void => {
    const now = latest.current;
    if (now === undefined) return;
    const next = new Set(now.selected);
    if (!next.delete(id)) next.add(id);
    now.onSelect(next);
  }, []);
  const draw = (row: T, index: number, start?: number) => {
    const id = idOf(row);
    return (
      <Row
        key={id}
        id={id}
        row={row}
        index={index}
        start={start}
        columns={columns}
        below={below}
        grid={grid}
        isSelected={selection?.selected.has(id)}
        isStacked={stackedOf(row)}
        label={selection ? t.table.select(nameOf(row)) : ""}
        look={rowClass?.(row) ?? ""}
        onToggle={toggle}
      />
    );
  };

  // Rows are rendered once, for the width that they have.
  if (outerWidth === null) return <div className="table" ref={outer} />;
  if (rows.length === 0 && empty !== undefined)
    return (
      <div className="table" ref={outer}>
        {empty}
      </div>
    );
  return (
    <div className="table" ref={outer}>
      <div
        className={isVirtual ? "table-scroll" : "table-scroll free"}
        ref={scroll}
        role="table"
        aria-label={label}
        aria-rowcount={rows.length + 1}
        // A region that scrolls must be reachable with the keyboard.
        tabIndex={isVirtual || isWide ? 0 : undefined}
      >
        <div className="head" role="row" aria-rowindex={1} style={grid}>
          {selection && (
            <div role="columnheader">
              <label className="tick">
                <input
                  type="checkbox"
                  checked={isAll}
                  aria-label={t.table.selectAll}
                  onChange={() => selection.onSelect(new Set(isAll ? [] : rows.map(idOf)))}
                />
              </label>
            </div>
          )}
          {columns.map(({ id, name, isRight, isNameHidden }) => (
            <div key={id} role="columnheader" className={`cell ${isRight ? "right" : ""}`}>
              <span className={isNameHidden ? "hidden-text" : undefined}>{name}</span>
            </div>
          ))}
          {below.map(({ id, name }) => (
            <div key={id} role="columnheader" className="hidden-text">
              {name}
            </div>
          ))}
        </div>
        {isVirtual ? (
          <div
            className="body virtual"
            role="rowgroup"
            style={{ height: `${virtual.getTotalSize()}px` }}
            onFocus={hold}
            onBlur={() => setHeld(null)}
          >
            {virtual.getVirtualItems().map(({ index, start }) => {
              const row = rows[index];
              return row === undefined ? null : draw(row, index, start);
            })}
          </div>
        ) : (
          <div className="body" role="rowgroup">
            {rows.map((row, index) => draw(row, index))}
          </div>
        )}
      </div>
    </div>
  );
}
