/** The latest changes, live. */
import { eventResourceNames } from "@brume/api/event.ts";
import { Link } from "@tanstack/react-router";
import { EventObject } from "../../data/eventlink.tsx";
import { type LatestEvents, useEvents, wordsOf } from "../../data/eventview.ts";
import { Unread } from "../../data/unread.tsx";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { buttonClass } from "../../ui/button.tsx";
import { Empty, Skeleton } from "../../ui/feedback.tsx";
import { Panel } from "../../ui/page.tsx";

const shown = 10;

/** Sign-ins are no changes of what the project owns. */
const type = eventResourceNames
  .filter((name) => name !== "session")
  .map((name) => `${name}.*`)
  .join(",");

/** Returns the events that the overview shows. */
export function useLatest(): LatestEvents {
  const { events, read } = useEvents({ limit: shown, type });
  return { events: events?.filter(({ Resource }) => Resource !== "session").slice(0, shown), read };
}

export function Latest({ latest: { events, read } }: { latest: LatestEvents }) {
  const t = useTexts();
  const format = useFormat();
  return (
    <Panel
      title={t.overview.lately}
      isFlush
      actions={
        <Link to="/activity" className={buttonClass("quiet", "small")}>
          {t.overview.allActivity}
        </Link>
      }
    >
      {events === undefined ? (
        <div className="body">{read.error ? <Unread of={[read]} /> : <Skeleton />}</div>
      ) : events.length === 0 ? (
        <Empty icon="activity" title={t.activity.empty} />
      ) : (
        <ul className="list padded">
          {events.map((event) => {
            const { kind, verb } = wordsOf(event, t);
            return (
              <li key={event.ID} className="line fixed">
                <span className="grow break">
                  <span className="muted">
                    {kind} {verb}
                  </span>{" "}
                  <EventObject event={event} />
                </span>
                <time className="muted small nowrap" dateTime={event.Date} title={format.time(event.Date)}>
                  {format.ago(event.Date)}
                </time>
              </li>
            );
          })}
        </ul>
      )}
    </Panel>
  );
}
