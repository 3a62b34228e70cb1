/** Parses the filters of `GET /audit`. Unknown resource kinds and operations are rejected, instead of matching nothing. */
import { contract, operationNames } from "@brume/api/contract.ts";
import { errorCodes } from "@brume/api/errors.ts";
import { eventResourceNames } from "@brume/api/event.ts";
import type { Operation } from "@brume/api/operation.ts";
import { errorAt } from "../base/error.ts";

/** Resource kinds of audit rows: those of events, and those in the paths of operations. */
const kinds = [
  ...new Set([
    ...eventResourceNames,
    ...operationNames.flatMap((name) =>
      Object.values((contract[name] as Operation).params ?? {}).map((code) =>
        errorCodes[code].noun.replaceAll(" ", ""),
      ),
    ),
  ]),
];

/** Parses `domain` or `domain:3`. Throws `query_invalid`. */
export function readAuditSubject(text: string | undefined): {
  readonly resource: string | undefined;
  readonly resourceId: number | undefined;
} {
  if (text === undefined) return { resource: undefined, resourceId: undefined };
  const [, resource = "", digits] = /^([a-z]+)(?::(\d{1,10}))?$/.exec(text.toLowerCase()) ?? [];
  if (resource === "")
    throw errorAt("query_invalid", "?resource", `resource must be a kind or kind:id, not ${JSON.stringify(text)}.`);
  if (!kinds.includes(resource))
    throw errorAt(
      "query_invalid",
      "?resource",
      `resource must be one of ${kinds.join(", ")}, with or without an id, not ${JSON.stringify(text)}.`,
    );
  return { resource, resourceId: digits === undefined ? undefined : Number(digits) };
}

/** Parses the name of an operation, or a prefix with `*`, and returns the names that match. Throws `query_invalid`. */
export function readAuditOperation(text: string | undefined): readonly string[] | undefined {
  if (text === undefined) return undefined;
  const prefix = text.endsWith("*") ? text.slice(0, -1) : null;
  const names = operationNames.filter((each) => (prefix === null ? each === text : each.startsWith(prefix)));
  if (names.length === 0)
    throw errorAt(
      "query_invalid",
      "?operation",
      `operation must be the name of an operation as /docs has it, or the beginning of one with *, not ${JSON.stringify(text)}.`,
    );
  return prefix === "" ? undefined : names;
}
