/** The versions of a domain, each with its changes, and the way back to one of them. */
import type { Domain } from "@brume/api/dns.ts";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useData, useMayOwnDomains } from "../../data/data.tsx";
import { errorText } from "../../data/errortext.ts";
import { EventToken } from "../../data/eventlink.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import { ErrorBox, Skeleton } from "../../ui/feedback.tsx";
import { Panel } from "../../ui/page.tsx";
import { Diff } from "./diff.tsx";
import { Restore } from "./review.tsx";

/** Versions that are read at a time. */
const page = 50;

export function History({ domain }: { domain: Domain }) {
  const t = useTexts();
  const format = useFormat();
  const mayRestore = useMayOwnDomains();
  const { client } = useData();
  const [restoring, setRestoring] = useState<number | null>(null);
  const [most, setMost] = useState(page);
  const { data, error, refetch } = useQuery(queriesOf(client).versions(domain.ID, domain.Serial, most));
  if (error) return <ErrorBox text={errorText(error, t)} onRetry={() => void refetch()} />;
  return (
    <div className="stack">
      <p className="muted">{t.records.history}</p>
      <Panel isFlush>
        {data === undefined ? (
          <div className="body">
            <Skeleton />
          </div>
        ) : (
          <ul className="list padded">
            {data.map(({ Serial, Date: date, TokenID, Changes }) => (
              <li key={Serial} className="stack tight">
                <div className="line apart">
                  <strong className="number">{t.records.version(Serial)}</strong>
                  <span className="line">
                    {Changes.length > 0 && <span className="muted small">{t.records.changes(Changes.length)}</span>}
                    <span className="muted small break">
                      {TokenID !== null && `${t.activity.token} `}
                      <EventToken event={{ TokenID }} />
                    </span>
                    <time className="muted small" dateTime={date}>
                      {format.time(date)}
                    </time>
                    {Serial === domain.Serial && <span className="tag">{t.records.current}</span>}
                    {mayRestore && Serial !== domain.Serial && (
                      <Button size="small" icon="undo" onClick={() => setRestoring(Serial)}>
                        {t.records.restoreVersion}
                      </Button>
                    )}
                  </span>
                </div>
                {Changes.length > 0 && <Diff domain={domain} changes={Changes} />}
              </li>
            ))}
          </ul>
        )}
        {data !== undefined && data.length >= most && (
          <div className="body line">
            <Button onClick={() => setMost(most + page)}>{t.records.older}</Button>
          </div>
        )}
      </Panel>
      {restoring !== null && <Restore domain={domain} serial={restoring} onClose={() => setRestoring(null)} />}
    </div>
  );
}
