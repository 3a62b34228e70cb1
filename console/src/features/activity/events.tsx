/** Every change of the project, live, the newest first. The list can be paused and filtered; an event shows its object. */
import { type Event, eventResourceNames } from "@brume/api/event.ts";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { EventObject, EventToken, NumberedObject, useTokenOf } from "../../data/eventlink.tsx";
import { objectOf, useEvents, wordsOf } from "../../data/eventview.ts";
import { Unread } from "../../data/unread.tsx";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { DataTable } from "../../ui/datatable.tsx";
import { Dialog, DialogHead } from "../../ui/dialog.tsx";
import { Code, Empty, Skeleton } from "../../ui/feedback.tsx";
import { SearchFilter, SelectFilter } from "../../ui/filters.tsx";
import { Facts } from "../../ui/page.tsx";

export function Events() {
  const t = useTexts();
  const format = useFormat();
  const go = useNavigate({ from: "/activity/" });
  const { q = "", kind = "" } = useSearch({ from: "/activity/" });
  const { events: live, read } = useEvents({ limit: 200 });
  const [paused, setPaused] = useState<readonly Event[] | null>(null);
  const [shown, setShown] = useState<Event | null>(null);
  const events = paused ?? live;
  const tokenOf = useTokenOf();
  const text = q.trim().toLowerCase();
  const rows = useMemo(
    () =>
      (events ?? []).filter(
        (event) =>
          (kind === "" || event.Resource === kind) &&
          (text === "" ||
            [
              objectOf(event, t),
              event.RequestID ?? "",
              tokenOf(event),
              event.Type,
              `${event.Resource}:${event.ResourceID}`,
            ].some((part) => part.toLowerCase().includes(text))),
      ),
    [events, kind, text, t, tokenOf],
  );
  const columns = useMemo<Column<Event>[]>(
    () => [
      {
        id: "time",
        name: t.activity.time,
        width: "92px",
        isBelow: true,
        cell: (event) => (
          <time dateTime={event.Date} title={format.exact(event.Date)} className="muted number">
            {format.clock(event.Date)}
          </time>
        ),
      },
      {
        id: "what",
        name: t.activity.what,
        width: "minmax(224px, 1fr)",
        isMain: true,
        cell: (event) => {
          const { kind: what, verb } = wordsOf(event, t);
          return `${what} ${verb}`;
        },
      },
      {
        id: "object",
        name: t.activity.object,
        width: "minmax(140px, 2fr)",
        isBelow: true,
        cell: (event) => <EventObject event={event} />,
      },
      {
        id: "token",
        name: t.activity.token,
        width: "minmax(72px, 0.5fr)",
        cell: (event) => (
          <span className="muted">
            <EventToken event={event} />
          </span>
        ),
      },
      {
        id: "details",
        name: t.activity.details,
        isNameHidden: true,
        width: "32px",
        isMain: true,
        isLoose: true,
        cell: (event) => (
          <Button
            kind="quiet"
            size="small"
            icon="info"
            aria-label={`${t.activity.details}: ${event.Type} ${event.ID}`}
            onClick={() => setShown(event)}
          />
        ),
      },
    ],
    [t, format],
  );
  const search = (part: { q?: string; kind?: string }): void => {
    void go({ search: (before) => ({ ...before, ...part }), replace: true });
  };
  const newest = paused?.[0]?.ID ?? 0;
  const waiting = paused === null ? 0 : (live ?? []).filter(({ ID }) => ID > newest).length;
  return (
    <>
      <div className="line apart">
        <p className="muted number">{paused === null ? t.activity.about : t.activity.paused(waiting)}</p>
        <Button
          icon={paused === null ? "pause" : "play"}
          onClick={() => setPaused(paused === null ? (live ?? []) : null)}
        >
          {paused === null ? t.activity.pause : t.activity.resume}
        </Button>
      </div>
      <div className="filters">
        <SearchFilter label={t.activity.filter} value={q} onChange={(text) => search({ q: text })} />
        <SelectFilter
          label={t.activity.what}
          any={t.activity.anyKind}
          value={kind}
          options={eventResourceNames.map((name) => [name, t.activity.kinds[name] ?? name])}
          onChange={(next) => search({ kind: next })}
        />
      </div>
      {events === undefined ? (
        read.error ? (
          <Unread of={[read]} />
        ) : (
          <Skeleton lines={8} />
        )
      ) : (
        <DataTable
          label={t.activity.tabs.events}
          columns={columns}
          rows={rows}
          idOf={({ ID }) => ID}
          nameOf={({ Type }) => Type}
          empty={<Empty icon="activity" title={events.length === 0 ? t.activity.empty : t.activity.noMatch} />}
        />
      )}
      {shown !== null && <EventDialog event={shown} onClose={() => setShown(null)} />}
    </>
  );
}

function EventDialog({ event, onClose }: { event: Event; onClose: () => void }) {
  const t = useTexts();
  const format = useFormat();
  const { kind, verb } = wordsOf(event, t);
  const title = `${kind} ${verb}`;
  return (
    <Dialog label={title} kind="wide" onClose={onClose}>
      <div className="inner">
        <DialogHead title={title} onClose={onClose} />
        <Facts
          facts={[
            { name: t.activity.time, value: format.exact(event.Date) },
            { name: t.activity.object, value: <NumberedObject event={event} /> },
            { name: t.activity.token, value: <EventToken event={event} /> },
            event.RequestID !== null && { name: t.activity.request, value: event.RequestID, copy: event.RequestID },
          ]}
        />
        {event.Data !== null && <Code text={JSON.stringify(event.Data, null, 2)} />}
      </div>
    </Dialog>
  );
}
