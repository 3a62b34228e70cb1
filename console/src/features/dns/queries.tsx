/** What the name server has answered for a domain, and how much it answers now. */
import type { Domain } from "@brume/api/dns.ts";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useData } from "../../data/data.tsx";
import { digOf } from "../../data/dig.ts";
import { errorText } from "../../data/errortext.ts";
import { queriesOf } from "../../data/queries.ts";
import { useRates } from "../../data/rates.ts";
import { RequestPanel } from "../../data/requestpanel.tsx";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Empty, ErrorBox, Skeleton } from "../../ui/feedback.tsx";
import { Facts, Meter, None, Panel } from "../../ui/page.tsx";
import { Sparkline } from "../../ui/sparkline.tsx";

export function Queries({ domain }: { domain: Domain }) {
  const t = useTexts();
  const format = useFormat();
  const reads = queriesOf(useData().client);
  const { data, error, refetch, dataUpdatedAt } = useQuery(reads.domainMetrics(domain.ID));
  const { data: readiness } = useQuery({ ...reads.readiness(), enabled: data?.Queries === 0 });
  const counters = useMemo(() => new Map([["all", data?.Queries ?? 0]]), [data]);
  const values = useRates(counters, dataUpdatedAt).get("all") ?? [];
  if (error) return <ErrorBox text={errorText(error, t)} onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton lines={4} />;
  const now = t.queries.perSecond(format.number(Math.round((values.at(-1) ?? 0) * 10) / 10));
  return (
    <div className="stack">
      <p className="muted">{t.queries.about}</p>
      {data.Queries === 0 ? (
        <Empty
          icon="dns"
          title={t.queries.none}
          command={digOf(readiness?.Checks ?? [], domain.NamePunyCode, location.hostname)?.command}
        >
          {t.queries.noneAbout}
        </Empty>
      ) : (
        <div className="columns">
          <Panel title={t.queries.title}>
            <div className="stack">
              <Facts
                facts={[
                  { name: t.queries.total, value: <span className="number">{format.number(data.Queries)}</span> },
                  { name: t.queries.now, value: <span className="number">{now}</span> },
                  {
                    name: t.queries.served,
                    value: data.Serial === null ? <None /> : <span className="mono">{data.Serial}</span>,
                  },
                ]}
              />
              {values.length > 1 && <Sparkline label={`${t.queries.now}: ${now}`} values={values} />}
            </div>
          </Panel>
          <Panel title={t.queries.answers}>
            <div className="stack">
              {data.Answers.toSorted((a, b) => b.Count - a.Count).map(({ Code, Count }) => (
                <div key={Code} className="stack tight">
                  <div className="line apart">
                    <span>
                      <code>{Code}</code> <span className="muted">{t.queries.codes[Code] ?? ""}</span>
                    </span>
                    <span className="number">{format.number(Count)}</span>
                  </div>
                  <Meter label={Code} value={Count} limit={data.Queries} isProgress />
                </div>
              ))}
            </div>
          </Panel>
        </div>
      )}
      <RequestPanel request={{ operation: "readDomainMetrics", path: { id: domain.ID } }} />
    </div>
  );
}
