/** What an entry of the audit log shows: the fields that the request has changed. */

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
