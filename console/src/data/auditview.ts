/** What an entry of the audit log shows: its operation in words, its object, and the fields that the request has changed. */
import type { AuditEntry } from "@brume/api/account.ts";
import type { Texts } from "../texts/en.ts";
import { type NamedEvent, nameOf } from "./eventnames.ts";

/** Returns what an operation of the API does, in words. Those of records are named with the type of the record. */
export function operationName(operation: string, t: Texts): string {
  const [, base = operation, type = ""] = /^((?:create|update)Record)([A-Z]+)$/.exec(operation) ?? [];
  const name = t.audit.operations[base];
  return name === undefined ? operation : `${name} ${type}`.trim();
}

/** Kinds whose page is that of another object: its kind, and the field with its id. */
const parents: Readonly<Record<string, readonly [kind: string, field: string]>> = {
  action: ["server", "ServerID"],
  record: ["domain", "DomainID"],
  tunnel: ["publicnetwork", ""],
};

/**
 * Returns the objects of the entries as an event shows them, by the id of the entry. One without data has no page: an entry shows that it
 * does not exist, or it is not known where it is. `entries`: the newest first.
 */
export function objectsOf(entries: readonly AuditEntry[]): ReadonlyMap<number, NamedEvent> {
  const names = new Map<string, string>();
  const gone = new Set<string>();
  const all = entries.flatMap(({ ID, Resource, ResourceID, Status, Operation, Before, After }) => {
    if (Resource === null || ResourceID === null) return [];
    const data = (After ?? Before ?? {}) as Readonly<Record<string, unknown>>;
    const [parentKind, field = ""] = parents[Resource] ?? [];
    const ParentID = data[field] ?? null;
    const event = { Type: "", Resource, ResourceID, ParentID, Data: data } as unknown as NamedEvent;
    const key = `${Resource} ${ResourceID}`;
    const parent = parentKind === undefined ? key : `${parentKind} ${String(event.ParentID)}`;
    const name = nameOf(event);
    if (name !== undefined && !names.has(key)) names.set(key, name);
    if (Status === 404 || (Status < 400 && Operation.startsWith("delete"))) gone.add(key);
    const isPlaced = parentKind === undefined || ParentID !== null;
    return [{ ID, key, parent, event, isPlaced }];
  });
  return new Map(
    all.map(({ ID, key, parent, event, isPlaced }) => {
      const name = names.get(event.Resource === "action" ? parent : key);
      const named = name === undefined ? event : { ...event, name };
      return [ID, isPlaced && !gone.has(key) && !gone.has(parent) ? named : { ...named, Data: null }];
    }),
  );
}

export interface FieldChange {
  /** Names from the outside to the inside: `Quotas.CPU`. */
  readonly field: string;
  /** As JSON; null: the field was absent. */
  readonly before: string | null;
  readonly after: string | null;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the fields that differ. Objects are compared field by field, lists as a whole. */
export function fieldChanges(before: unknown, after: unknown, field = ""): FieldChange[] {
  if (isObject(before) || isObject(after)) {
    const [old, now] = [isObject(before) ? before : {}, isObject(after) ? after : {}];
    const names = [...new Set([...Object.keys(old), ...Object.keys(now)])];
    return names.flatMap((name) => fieldChanges(old[name], now[name], field === "" ? name : `${field}.${name}`));
  }
  const [old, now] = [before, after].map((value) =>
    value === undefined || (field === "" && value === null) ? null : JSON.stringify(value),
  );
  return old === now ? [] : [{ field, before: old ?? null, after: now ?? null }];
}
