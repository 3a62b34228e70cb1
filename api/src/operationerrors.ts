/**
 * Error codes of each operation (docs/spec.md#order-of-checks): those that every operation of its kind can return, and its own. The
 * OpenAPI document, the API reference and the invariant tests use the full list.
 */
import { type ErrorCode, errorCodes } from "./errors.ts";
import { isChange, type Operation } from "./operation.ts";

/** Error codes of requests that match no operation: unknown path, unknown method. */
export const pathErrors = ["path_not_found", "method_not_allowed"] as const satisfies readonly ErrorCode[];

const order = Object.keys(errorCodes) as ErrorCode[];

/** Returns true if the operation reads a request body. */
const hasBody = (op: Operation) => op.method === "POST" || op.method === "PUT" || op.body !== undefined;

/** Returns true if the operation accepts `If-Match`: a change of the object in its path. */
export const takesIfMatch = (op: Operation) => isChange(op) && op.path.includes("{");

/** Returns every error code of the operation, in the order of the table of errors. */
export function errorsOf(op: Operation): ErrorCode[] {
  const isOpen = op.access === "open";
  const codes = new Set<ErrorCode>([...Object.values(op.params ?? {}), ...(op.errors ?? [])]);
  const add = (when: boolean, ...more: ErrorCode[]) => {
    if (when) for (const code of more) codes.add(code);
  };
  add(
    true,
    "path_not_readable",
    "request_not_readable",
    "transfer_coding_not_supported",
    "headers_too_large",
    "body_too_large",
    "request_timeout",
    "internal",
  );
  add(true, "validation_failed");
  add(!isOpen, "not_ready", "token_missing", "token_invalid", "token_expired", "rate_limited");
  add(!isOpen && op.access !== "any", "scope_missing");
  add(isChange(op) && op.method !== "DELETE" && op.allowedWhenBlocked !== true, "project_blocked");
  add(hasBody(op), "body_not_readable", "media_type_not_supported");
  add(hasBody(op) && op.content !== true, "body_not_object");
  add(op.content === true, "content_range_invalid");
  add(isChange(op), "idempotency_key_invalid", "idempotency_key_conflict", "idempotency_key_busy");
  add(!isOpen, "storage_unavailable");
  // A POST that changes nothing accepts `dryRun` too.
  add(!isChange(op) && (op.query !== undefined || op.method === "POST"), "query_invalid");
  add(takesIfMatch(op), "etag_mismatch");
  return order.filter((code) => codes.has(code));
}
