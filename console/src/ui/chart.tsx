/** A chart of values over time (uPlot). Charts of a page share the position of the pointer and the zoom. */
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import { useTexts } from "../texts/texts.tsx";

interface Series {
  readonly name: string;
  /** Null: no measurement. */
  readonly values: readonly (number | null)[];
}

/** A moment that the chart shows as a vertical line. */
export interface Mark {
  /** Seconds since 1970. */
  readonly time: number;
  readonly label: string;
}

interface ChartProps {
  readonly label: string;
  /** Language and region. */
  readonly locale: string;
  /** Returns a value with its unit. */
  readonly show: (value: number) => string;
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly marks?: readonly Mark[];
  /** Sentence in the chart if it has no value. */
  readonly empty: string;
  /** Is called with the two ends of a drag, in seconds since 1970. */
  readonly onZoom: (from: number, to: number) => void;
}

const height = 190;
/** Pixels. A shorter drag is a click. */
const leastDrag = 8;
const none: readonly Mark[] = [];
/** Distances between the values of the axis: 1, 2 and 5, whose multiples need no more digits than `show` gives. */
const steps = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** (power - 1))).flat();
/** Pixels between the labels of two marks. */
const labelSpace = 90;
const strokes = ["--chart-1", "--chart-2"];

const colour = (name: string): string => {
  // A canvas needs the resolved colour of the theme.
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};

export function Chart({ label, locale, show, times, series, marks = none, empty, onZoom }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const zoom = useRef(onZoom);
  zoom.current = onZoom;
  const shown = useRef(show);
  shown.current = show;
  const marked = useRef(marks);
  const timeName = useTexts().activity.time;
  const names = series.map(({ name }) => name).join("\n");
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const font = `12px ${getComputedStyle(element).fontFamily}`;
    const axis = {
      font,
      stroke: colour("--muted"),
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { show: false },
    };
    const chart = new uPlot(
      {
        width: element.clientWidth,
        height,
        cursor: { sync: { key: "brume" }, points: { size: 6 }, y: false, drag: { x: true, y: false, setScale: false } },
        hooks: {
          draw: [(plot) => drawMarks(plot, marked.current, axis.stroke, font)],
          setSelect: [
            (plot) => {
              const { left, width } = plot.select;
              // The other charts show the same selection, but only the one under the pointer has it as its own.
              if (width < leastDrag || !element.matches(":hover")) return;
              zoom.current(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
              plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            },
          ],
        },
        legend: { live: true },
        axes: [
          { ...axis, size: 32, values: timesOf(locale) },
          { ...axis, size: 76, incrs: steps, values: (_, values) => values.map((value) => shown.current(value)) },
        ],
        // Without a value there is no axis of values.
        scales: {
          y: { range: (_, __, most: number | null) => (most === null ? [null, null] : [0, Math.max(most * 1.1, 1)]) },
        },
        series: [
          {
            label: timeName,
            value(plot, time: number | null) {
              const seconds = time ?? plot.data[0][lastIndex(plot.data)];
              return seconds === undefined ? "–" : new Date(seconds * 1000).toLocaleTimeString(locale);
            },
          },
          ...names.split("\n").map((name, index) => ({
            label: name,
            stroke: colour(strokes[index] ?? "--chart-1"),
            width: 1.5,
            points: { show: false },
            value(plot: uPlot, value: number | null, at: number, pointed: number | null) {
              const one = pointed === null ? plot.data[at]?.[lastIndex(plot.data)] : value;
              return typeof one === "number" ? shown.current(one) : "–";
            },
          })),
        ],
      },
      [[], ...names.split("\n").map(() => [])],
      element,
    );
    plot.current = chart;
    const resize = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height }));
    resize.observe(element);
    return () => {
      resize.disconnect();
      chart.destroy();
      plot.current = null;
    };
  }, [locale, names, timeName]);
  useEffect(() => {
    plot.current?.setData([[...times], ...series.map(({ values }) => [...values])]);
  }, [times, series]);
  useEffect(() => {
    marked.current = marks;
    plot.current?.redraw(false);
  }, [marks]);
  const isEmpty = series.every(({ values }) => values.every((value) => value === null));
  return (
    <div className="chart-box">
      <div
        className="chart"
        ref={box}
        role="img"
        aria-label={`${label}. ${isEmpty ? empty : summaryOf(series, show)}`}
      />
      {isEmpty && (
        <p className="muted" aria-hidden="true">
          <span>{empty}</span>
        </p>
      )}
    </div>
  );
}

/** Returns the index of the last time with a value, which the legend shows while no pointer is on a chart; -1: there is none. */
const lastIndex = ([times, ...series]: uPlot.AlignedData): number =>
  times.findLastIndex((_, index) => series.some((values) => typeof values[index] === "number"));

/** Draws the marks that are in the range of the chart. Labels that would cover each other are left out. */
function drawMarks(plot: uPlot, marks: readonly Mark[], stroke: string, font: string): void {
  const { ctx, bbox, scales } = plot;
  const { min, max } = scales["x"] ?? {};
  if (typeof min !== "number" || typeof max !== "number") return;
  const scale = devicePixelRatio;
  let free = bbox.left;
  ctx.save();
  ctx.strokeStyle = stroke;
  ctx.fillStyle = stroke;
  ctx.lineWidth = scale;
  ctx.setLineDash([3 * scale, 3 * scale]);
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  ctx.font = font.replace(/\d+(?=px)/, (size) => String(Number(size) * scale));
  for (const { time, label } of marks.toSorted((a, b) => a.time - b.time)) {
    if (time < min || time > max) continue;
    const x = Math.round(plot.valToPos(time, "x", true));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const isNearEnd = x + labelSpace * scale > bbox.left + bbox.width;
    ctx.textAlign = isNearEnd ? "right" : "left";
    if (x >= free) ctx.fillText(label, x + (isNearEnd ? -4 : 4) * scale, bbox.top + 2 * scale);
    if (x >= free) free = x + labelSpace * scale;
  }
  ctx.restore();
}

/** Returns the last value of each series, for screen readers. */
const summaryOf = (series: readonly Series[], show: (value: number) => string): string =>
  series
    .map(({ name, values }) => {
      const last = values.findLast((value) => value !== null) ?? null;
      return `${name}: ${last === null ? "–" : show(last)}`;
    })
    .join(", ");

const timesOf =
  (locale: string): uPlot.Axis.Values =>
  (_, splits, __, ___, increment) =>
    splits.map((time) => {
      const date = new Date(time * 1000);
      return increment >= 86_400
        ? date.toLocaleDateString(locale, { month: "short", day: "numeric" })
        : date.toLocaleTimeString(locale, { hour: "2-digit", minute: "2-digit" });
    });
