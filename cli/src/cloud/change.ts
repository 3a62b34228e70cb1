/** What differs between a cloud file and the installation, and the work that removes the difference. */

import type { Client } from "@brume/api/client.ts";
import type { Labels } from "@brume/api/common.ts";
import { closest } from "../model/closest.ts";
import type { Path, Problem } from "../model/cloud/check.ts";
import { type Entry, fileLabel } from "../model/cloud/document.ts";
import type { Found, Kind } from "./state.ts";

/** A field that differs. Null: the object, or the element of the field, does not exist before or after. */
export interface FieldChange {
  readonly field: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** `Replace`: delete and create, only for a server that could not be created. `Wait`: it exists and is not ready yet. */
export type Op = "Create" | "Update" | "Replace" | "Delete" | "Wait";

/** Order of the work: what others refer to is created first and deleted last. */
export const stages = { networks: 0, rules: 1, servers: 2, removedServers: 3, domains: 4, removedNetworks: 5 } as const;

/** What a running change gets. */
export interface Work {
  readonly client: Client;
  readonly signal: AbortSignal;
  /** Milliseconds for each wait. */
  readonly timeout: number;
  /** Shows what the change does now. */
  progress(text: string): void;
  /** Ids of objects that were created by this run, by kind and name: `Networks/dmz`. */
  readonly created: Map<string, number>;
}

/** One difference. */
export interface Change {
  readonly op: Op;
  readonly kind: Kind;
  readonly name: string;
  readonly id: number | null;
  readonly fields: readonly FieldChange[];
  /** Place in the file; null: the object is not in the file. */
  readonly path: Path | null;
  readonly stage: number;
  /** Validates the change in the service without changing anything. Absent: it refers to objects that do not exist yet. */
  readonly check?: () => Promise<unknown>;
  readonly run: (work: Work) => Promise<void>;
}

/** What the planners share. */
export interface Planning {
  readonly client: Client;
  readonly signal: AbortSignal;
  readonly found: Found;
  /** Value of the label of the file; null: it has none. */
  readonly label: string | null;
  readonly problems: Problem[];
  /** Sentences for the user that are no difference. */
  readonly notes: string[];
}

/** Returns true if two values are equal as JSON; maps in any order. */
export function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  const [a, b] = [one as Record<string, unknown>, other as Record<string, unknown>];
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && isSame(a[key], b[key]));
}

/** Returns the difference of fields that the entry has, without regard to the case of words. */
export function diffFields(entry: object, current: object, names: readonly string[]): FieldChange[] {
  const [wanted, actual] = [entry as Record<string, unknown>, current as Record<string, unknown>];
  const fold = (value: unknown) => (typeof value === "string" ? value.toLowerCase() : value);
  return names
    .filter((name) => wanted[name] !== undefined && !isSame(fold(wanted[name]), fold(actual[name])))
    .map((field) => ({ field, before: actual[field] ?? null, after: wanted[field] }));
}

/** Returns the fields of an entry as new ones. Labels are added by `labelsOf`. */
export const newFields = (entry: object): FieldChange[] =>
  Object.entries(entry)
    .filter(([field]) => field !== "Name" && field !== "Labels")
    .map(([field, after]: [string, unknown]) => ({ field, before: null, after }));

/** Returns all labels that an object should have: those of its entry, else its present ones, and the label of the file. */
export function labelsOf(entry: object, current: Labels, label: string | null): Labels {
  const { [fileLabel]: owner, ...rest } = current;
  const own = (entry as { Labels?: Labels }).Labels ?? rest;
  const mark = label ?? owner;
  return mark === undefined ? own : { ...own, [fileLabel]: mark };
}

/** Returns the difference of labels, or nothing. */
export function diffLabels(entry: object, current: Labels, label: string | null): FieldChange[] {
  const after = labelsOf(entry, current, label);
  return isSame(after, current) ? [] : [{ field: "Labels", before: current, after }];
}

/** Returns whether an object has the label of the file, so that the file may delete it. */
export const isOwned = ({ Labels }: { readonly Labels: Labels }, label: string | null): boolean =>
  label !== null && Labels[fileLabel] === label;

/** Adds a problem if the object belongs to another file. */
export function requireOwner(planning: Planning, current: { readonly Labels: Labels }, what: string, path: Path): void {
  const owner = current.Labels[fileLabel];
  if (planning.label !== null && owner !== undefined && owner !== planning.label)
    planning.problems.push({ path, message: `${what} belongs to the file with Label "${owner}".` });
}

/** Adds a problem for fields that can be set only at creation. */
export function requireFixed(planning: Planning, fields: readonly FieldChange[], what: string, path: Path): void {
  for (const { field, before, after } of fields)
    planning.problems.push({
      path: [...path, field],
      message: `${field} of ${what} cannot be changed: it is ${JSON.stringify(before)}, not ${JSON.stringify(after)}.`,
    });
}

/** Returns the only object with a name, or undefined. Several are a problem. */
export function findByName<T extends { readonly Name: string }>(
  planning: Planning,
  all: readonly T[],
  entry: Entry,
  what: string,
  path: Path,
): T | undefined {
  const same = all.filter(({ Name }) => Name === entry.Name);
  if (same.length > 1)
    planning.problems.push({
      path: [...path, "Name"],
      message: `${same.length} ${what}s have the name "${entry.Name}". Rename all but one.`,
    });
  return same[0];
}

/** Returns the message of a name that nothing has. */
export function unknownName(what: string, name: string, names: readonly string[]): string {
  const near = closest(name, names);
  return `There is no ${what} "${name}".${near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : ""}`;
}
