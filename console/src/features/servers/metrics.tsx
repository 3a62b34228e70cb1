/** Four charts of a server on one time axis. The pointer shows the same moment in all of them; a drag zooms all. */
import type { Server } from "@brume/api/server.ts";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { useData } from "../../data/data.tsx";
import { errorText } from "../../data/errortext.ts";
import { queriesOf } from "../../data/queries.ts";
import { actionName } from "../../data/serverview.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { Chart } from "../../ui/chart.tsx";
import { ErrorBox, Segments, Skeleton } from "../../ui/feedback.tsx";
import { Panel } from "../../ui/page.tsx";

/** Seconds of each range, and between two values: a chart has about 300 values. */
const ranges = {
  h1: [3600, 10],
  h6: [21_600, 60],
  d1: [86_400, 300],
  d7: [604_800, 1800],
  d30: [2_592_000, 7200],
} as const;
type Range = keyof typeof ranges;
/** Seconds that a drag selects at least. */
const leastZoom = 60;
/** Actions that are named below the charts. */
const mostListed = 5;
/** The last second that a date can have. */
const lastSecond = 8_640_000_000_000;
const rangeNames = Object.keys(ranges) as Range[];

export function ServerMetrics({ server: { ID: id, IsPowerOn } }: { server: Server }) {
  const t = useTexts();
  const format = useFormat();
  const go = useNavigate({ from: "/servers/$id" });
  const search = useSearch({ from: "/servers/$id" });
  const range = rangeNames.find((name) => name === search.range) ?? "h1";
  const [seconds, step] = ranges[range];
  const zoom = zoomOf(search);
  const reads = queriesOf(useData().client);
  const { data, error, refetch } = useQuery(
    zoom === null ? reads.metrics(id, seconds, step) : reads.metricsBetween(id, zoom.from, zoom.to, stepOf(zoom)),
  );
  const actions = useQuery(reads.actions(id)).data;
  const marks = useMemo(
    () =>
      (actions ?? []).map((action) => ({
        time: Date.parse(action.StartDate) / 1000,
        label: actionName(action, t),
      })),
    [actions, t],
  );
  if (error) return <ErrorBox text={errorText(error, t)} onRetry={() => void refetch()} />;
  const times = data?.Times.map((time) => Date.parse(time) / 1000) ?? [];
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  // In the order of time, as the charts show them.
  const within = marks.filter(({ time }) => time >= first && time <= last).toReversed();
  const charts =
    data === undefined
      ? []
      : ([
          [t.metrics.cpu, format.percent, [[t.metrics.used, data.Series.Cpu]]],
          [t.metrics.memory, format.megabytes, [[t.metrics.used, data.Series.MemoryUsed]]],
          [
            t.metrics.disk,
            format.bytesPerSecond,
            [
              [t.metrics.read, data.Series.DiskRead],
              [t.metrics.write, data.Series.DiskWrite],
            ],
          ],
          [
            t.metrics.network,
            format.rate,
            [
              [t.metrics.in, data.Series.NetIn],
              [t.metrics.out, data.Series.NetOut],
            ],
          ],
        ] as const);
  return (
    <div className="stack">
      <div className="line">
        <Segments
          label={t.metrics.range}
          value={range}
          options={rangeNames.map((name) => [name, t.metrics.ranges[name]])}
          onChange={(next) => void go({ search: { tab: "metrics", range: next }, replace: true })}
        />
        {zoom !== null && (
          <Button size="small" icon="close" onClick={() => void go({ search: { tab: "metrics", range } })}>
            {t.metrics.unzoom(format.time(iso(zoom.from)), format.time(iso(zoom.to)))}
          </Button>
        )}
      </div>
      {data === undefined ? (
        <Skeleton lines={8} />
      ) : (
        <div className="columns charts">
          {charts.map(([title, show, series]) => (
            <Panel key={title} title={title}>
              <Chart
                label={title}
                locale={format.locale}
                show={show}
                times={times}
                marks={marks}
                empty={IsPowerOn ? t.metrics.none : t.metrics.noneOff}
                onZoom={(from, to) =>
                  void go({
                    search: {
                      tab: "metrics",
                      range,
                      from: String(Math.floor(from)),
                      to: String(Math.max(Math.ceil(to), Math.floor(from) + leastZoom)),
                    },
                  })
                }
                series={series.map(([name, values]) => ({ name, values }))}
              />
            </Panel>
          ))}
        </div>
      )}
      {within.length > 0 && (
        <p className="muted small">
          {t.metrics.actions}{" "}
          {within
            .slice(-mostListed)
            .map(({ time, label }) => `${seconds > day ? format.time(iso(time)) : format.clock(iso(time))} ${label}`)
            .join(" · ")}
        </p>
      )}
      {within.length > 0 && (
        <Link to="/servers/$id" params={{ id: String(id) }} search={{ tab: "actions" }}>
          {t.metrics.allActions}
        </Link>
      )}
    </div>
  );
}

interface Zoom {
  /** Seconds since 1970. */
  readonly from: number;
  readonly to: number;
}

/** Returns the part of the range that the address selects; null: all of it. */
function zoomOf({ from, to }: { from?: string; to?: string }): Zoom | null {
  const zoom = { from: Number(from), to: Number(to) };
  return zoom.from > 0 && zoom.to > zoom.from && zoom.to < lastSecond ? zoom : null;
}

/** Returns the seconds between two values. Values of the last day are stored every 10 s, older ones every 5 min. */
function stepOf({ from, to }: Zoom): number {
  const isRecent = from > Date.now() / 1000 - day;
  return Math.max(isRecent ? 10 : 300, Math.ceil((to - from) / 300));
}

/** Seconds of a day, within which a time needs no date. */
const day = 86_400;

const iso = (seconds: number): string => new Date(seconds * 1000).toISOString();
