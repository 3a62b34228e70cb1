/** The latest changes, live: of an action one row with its state, of changes of one object that follow each other one row. */
import type { Action } from "@brume/api/action.ts";
import { type Event, eventResourceNames } from "@brume/api/event.ts";
import { Link } from "@tanstack/react-router";
import { EventObject } from "../../data/eventlink.tsx";
import { foldEvents } from "../../data/eventnames.ts";
import { type LatestEvents, useEvents, wordsOf } from "../../data/eventview.ts";
import { actionState } from "../../data/serverview.ts";
import { Unread } from "../../data/unread.tsx";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { buttonClass } from "../../ui/button.tsx";
import { Empty, Skeleton } from "../../ui/feedback.tsx";
import { useTurn } from "../../ui/later.ts";
import { Panel, State } from "../../ui/page.tsx";

const shown = 10;
/** Events that are read: an action and a change have several. */
const mostRead = 60;

/** Sign-ins are no changes of what the project owns. */
const type = eventResourceNames
  .filter((name) => name !== "session")
  .map((name) => `${name}.*`)
  .join(",");

/** Returns the events that the overview shows. */
export function useLatest(): LatestEvents {
  const { events, read } = useEvents({ limit: mostRead, type });
  const changes = events && foldEvents(events.filter(({ Resource }) => Resource !== "session"));
  return { events: changes?.slice(0, shown), read };
}

export function Latest({ latest: { events, read } }: { latest: LatestEvents }) {
  const t = useTexts();
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
        <Changes events={events} />
      )}
    </Panel>
  );
}

function Changes({ events }: { events: readonly Event[] }) {
  const format = useFormat();
  // A phone shows the first ones on its screen. The others follow in a task of their own.
  const hasAll = useTurn();
  return (
    <ul className="list padded">
      {(hasAll ? events : events.slice(0, shown / 2)).map((event) => (
        <li key={event.ID} className="line fixed">
          <span className="grow break">
            <What event={event} /> <EventObject event={event} />
          </span>
          <time className="muted small nowrap" dateTime={event.Date} title={format.time(event.Date)}>
            {format.ago(event.Date)}
          </time>
        </li>
      ))}
    </ul>
  );
}

/** Kind and verb of an event; of an action its state. */
function What({ event }: { event: Event }) {
  const t = useTexts();
  if (event.Resource === "action" && event.Data !== null) {
    const { tone, word } = actionState(event.Data as Action, t);
    return <State tone={tone}>{word}</State>;
  }
  const { kind, verb } = wordsOf(event, t);
  return (
    <span className="muted">
      {kind} {verb}
    </span>
  );
}
