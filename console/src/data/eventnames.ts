/** What events show only together: names, because a deletion has no data and an action only the id of its server; and roll-backs. Pure. */
import type { Event } from "@brume/api/event.ts";
import type { PublicNetwork } from "@brume/api/network.ts";

/** An event, with the name that other events show of its deleted object, or of the server of its action. */
export interface NamedEvent extends Event {
  readonly name?: string;
  /** The service has restored the firewall rules before those that were not confirmed in time. */
  readonly isRollBack?: true;
}

/** Returns the name of the object that an event shows; undefined: it shows none. */
export function nameOf({ Data }: Event): string | undefined {
  const data = (typeof Data === "object" && Data !== null ? Data : {}) as Readonly<Record<string, unknown>>;
  const names = ["CanonicalDescription", "DisplayName", "Name", "Title"].map((field) => data[field]);
  return names.find((value): value is string => typeof value === "string" && value !== "");
}

/** Returns the names of objects, by kind and id. `events`: the newest first. */
export function namesOf(events: readonly Event[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const event of events) {
    const key = `${event.Resource} ${event.ResourceID}`;
    const name = names.has(key) ? undefined : nameOf(event);
    if (name !== undefined) names.set(key, name);
  }
  return names;
}

/**
 * Returns the events without those of an action before its newest one, which shows how far the action is, and of events of one object that
 * follow each other only the newest. `events`: the newest first.
 */
export function foldEvents<T extends Event>(events: readonly T[]): T[] {
  const seen = new Set<number>();
  return events
    .filter(({ Resource, ResourceID }) => {
      if (Resource !== "action") return true;
      const isNewest = !seen.has(ResourceID);
      seen.add(ResourceID);
      return isNewest;
    })
    .filter(({ Resource, ResourceID }, at, all) => {
      const newer = all[at - 1];
      return newer?.Resource !== Resource || newer.ResourceID !== ResourceID;
    });
}

/** Returns the ids of events that are roll-backs: the service made the change, and the event before it shows rules on trial. */
function rollBacksOf(events: readonly Event[]): ReadonlySet<number> {
  const found = new Set<number>();
  const waiting = new Map<number, boolean>();
  for (const { ID, Type, Resource, ResourceID, TokenID, Data } of events.toReversed()) {
    if (Resource !== "publicnetwork" || Data === null) continue;
    const isWaiting = ((Data as Partial<PublicNetwork>).Firewall?.ConfirmBy ?? null) !== null;
    if (Type === "publicnetwork.changed" && TokenID === null && !isWaiting && waiting.get(ResourceID) === true)
      found.add(ID);
    waiting.set(ResourceID, isWaiting);
  }
  return found;
}

/** Returns the events, the newest first, with the names that they do not show themselves, and the roll-backs among them marked. */
export function withNames(events: readonly Event[]): readonly NamedEvent[] {
  const names = namesOf(events);
  const rollBacks = rollBacksOf(events);
  return events.map((event) => {
    const { ID, Resource, ResourceID, ParentID, Data } = event;
    if (rollBacks.has(ID)) return { ...event, isRollBack: true };
    const isAction = Resource === "action";
    if (!isAction && Data !== null) return event;
    const name = names.get(isAction ? `server ${ParentID}` : `${Resource} ${ResourceID}`);
    return name === undefined ? event : { ...event, name };
  });
}
