/** The latest changes, live. */
import { type Event, eventResourceNames } from "@brume/api/event.ts";
import { Link } from "@tanstack/react-router";
import { EventObject } from "../../data/eventlink.tsx";
import { useEvents, wordsOf } from "../../data/eventview.ts";
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

/** Returns the events that the overview shows; undefined: not read yet. */
export const useLatest = (): readonly Event[] | undefined =>
  useEvents({ limit: shown, type })
    ?.filter(({ Resource }) => Resource !== "session")
    .slice(0, shown);

export function Latest({ events }: { events: readonly Event[] | undefined }) {
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
        <div className="body">
          <Skeleton />
        </div>
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
