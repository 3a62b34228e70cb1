/** Four charts of a server on one time axis. The pointer shows the same moment in all of them; a drag zooms all. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useData } from "../../data/data.tsx";
import { queriesOf } from "../../data/queries.ts";
import { troubleOf } from "../../data/trouble.ts";
import { useLanguage, useTexts } from "../../texts/texts.tsx";
import { Chart } from "../../ui/chart.tsx";
import { Empty, Segments, Skeleton, TroubleBox } from "../../ui/feedback.tsx";
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
const rangeNames = Object.keys(ranges) as Range[];

export function ServerMetrics({ id }: { id: number }) {
  const t = useTexts();
  const { language } = useLanguage();
  const go = useNavigate({ from: "/servers/$id" });
  const search = useSearch({ from: "/servers/$id" });
  const range = rangeNames.find((name) => name === search.range) ?? "h1";
  const [seconds, step] = ranges[range];
  const { data, error, refetch } = useQuery(queriesOf(useData().client).metrics(id, seconds, step));
  if (error) return <TroubleBox trouble={troubleOf(error, t)} onRetry={() => void refetch()} />;
  const times = data?.Times.map((time) => Date.parse(time) / 1000) ?? [];
  const isEmpty = data !== undefined && Object.values(data.Series).every((all) => all.every((one) => one === null));
  const charts =
    data === undefined
      ? []
      : ([
          [t.metrics.cpu, [[t.metrics.used, data.Series.Cpu]]],
          [t.metrics.memory, [[t.metrics.used, data.Series.MemoryUsed]]],
          [
            t.metrics.disk,
            [
              [t.metrics.read, data.Series.DiskRead],
              [t.metrics.write, data.Series.DiskWrite],
            ],
          ],
          [
            t.metrics.network,
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
          onChange={(next) => void go({ search: (before) => ({ ...before, range: next }), replace: true })}
        />
      </div>
      {data === undefined ? (
        <Skeleton lines={8} />
      ) : isEmpty ? (
        <Empty icon="activity" title={t.metrics.none} />
      ) : (
        <div className="columns charts">
          {charts.map(([title, series]) => (
            <Panel key={title} title={title}>
              <Chart
                label={title}
                language={language}
                times={times}
                series={series.map(([name, values]) => ({ name, values }))}
              />
            </Panel>
          ))}
        </div>
      )}
    </div>
  );
}
