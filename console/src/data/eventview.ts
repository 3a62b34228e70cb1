/** What an event is about, as words; and the latest events: those of the page load and those that arrive since. */
import type { Action } from "@brume/api/action.ts";
import type { Event } from "@brume/api/event.ts";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Texts } from "../texts/en.ts";
import { useCell } from "./cell.ts";
import { useData } from "./data.tsx";
import { type NamedEvent, nameOf, withNames } from "./eventnames.ts";
import { actionName } from "./serverview.ts";
import type { Read } from "./unread.tsx";

/** Which events are read when a page opens. */
interface FirstEvents {
  readonly limit: number;
  /** Types, as the API filters them; absent: all. */
  readonly type?: string;
}

/** The latest events, the newest first. */
export interface LatestEvents {
  /** Undefined: not read yet. */
  readonly events: readonly NamedEvent[] | undefined;
  /** The read of the events before the page load. */
  readonly read: Read;
}

/** Returns the latest events. Those that arrive later are of all types. */
export function useEvents(first: FirstEvents): LatestEvents {
  const { client, recent } = useData();
  const live = useCell(recent);
  const read = useQuery({
    queryKey: ["event", "newest", first],
    queryFn: ({ signal }) => client.listEvents({ query: { newest: true, ...first } }, { signal }),
  });
  const before = read.data;
  const events = useMemo(() => {
    if (before === undefined) return undefined;
    const oldest = live.at(-1)?.ID ?? Number.POSITIVE_INFINITY;
    return withNames([...live, ...before.filter(({ ID }) => ID < oldest)]);
  }, [live, before]);
  return { events, read };
}

/** Returns the name of the object of an event, or its kind and id. */
export function objectOf(event: NamedEvent, t: Texts): string {
  const { Resource, Data, name } = event;
  if (Resource === "action") {
    const { Type: type, ...rest } = (Data as Partial<Action> | null) ?? {};
    const action = type && actionName({ ...rest, Type: type }, t);
    if (action !== undefined) return name === undefined ? action : `${action}: ${name}`;
  }
  return nameOf(event) ?? name ?? kindAndId(event, t);
}

/** Returns kind and id of the object of an event: `Server 3`. */
export const kindAndId = ({ Resource, ResourceID }: Event, t: Texts): string =>
  `${t.activity.kinds[Resource] ?? Resource} ${ResourceID}`;

/** Returns kind and verb of an event: `Server`, `created`. */
export function wordsOf(event: NamedEvent, t: Texts): { readonly kind: string; readonly verb: string } {
  const { Type, Resource, isRollBack } = event;
  const verb = isRollBack ? "rolledBack" : Type.slice(Type.indexOf(".") + 1);
  return { kind: t.activity.kinds[Resource] ?? Resource, verb: t.activity.verbs[verb] ?? verb };
}
