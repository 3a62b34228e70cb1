/**
 * The table of error codes. Programs compare the code. `status` is the HTTP status; `message` is a fixed sentence that existing clients
 * compare exactly, so it never changes.
 */

interface ErrorRow {
  readonly status: number;
  readonly message: string;
  /** What is missing, as sentences and the audit name it. */
  readonly noun?: string;
}

const invalid = (message: string): ErrorRow => ({ status: 400, message });
const denied: ErrorRow = { status: 401, message: "Authorization has been denied for this request." };
const missing = <Noun extends string>(what: string, noun: Noun) => ({
  status: 404,
  message: `${what} not found`,
  noun,
});
const conflict = (message: string): ErrorRow => ({ status: 409, message });

/** Codes of error responses: `code` of the error object (docs/spec.md#errors). */
export const errorCodes = {
  validation_failed: invalid("The request is invalid."),
  body_not_readable: invalid("The request body could not be read."),
  body_not_object: invalid("The request body must be an object."),
  path_not_readable: invalid("The request address could not be read."),
  request_not_readable: invalid("The request is not valid HTTP."),
  query_invalid: invalid("The query is invalid."),
  content_range_invalid: invalid("The content range is not valid."),
  idempotency_key_invalid: invalid("The idempotency key is not valid."),
  disk_cannot_shrink: invalid("The disk cannot be made smaller."),
  disk_too_small: invalid("The disk is smaller than the image needs."),
  location_mismatch: invalid("The objects are in different locations."),
  not_linked: invalid("The server is not linked to this network."),
  batch_form_invalid: invalid("Give exactly one of Count, Names and Servers."),
  record_exists: invalid("The record already exists."),
  cname_conflict: invalid("A CNAME record cannot stand beside other records."),
  cname_at_apex: invalid("A CNAME record cannot stand at the top of a domain."),
  delegation_conflict: invalid("The name belongs to a delegated part of the domain."),
  name_outside_domain: invalid("The name is not inside the domain."),
  record_type_mismatch: invalid("The record is of another type."),
  record_in_other_domain: invalid("The record belongs to another domain."),
  zone_file_invalid: invalid("The zone file could not be read."),
  peer_network_overlap: invalid("The networks of the tunnels overlap."),
  tunnel_type_fixed: invalid("The type of a tunnel cannot be changed."),
  token_missing: denied,
  token_invalid: denied,
  token_expired: denied,
  scope_missing: { status: 403, message: "The token does not allow this operation." },
  token_restricted: { status: 403, message: "The token does not allow this record." },
  project_blocked: { status: 403, message: "The project is blocked." },
  quota_exceeded: { status: 403, message: "The quota of the project is used up." },
  stock_image: { status: 403, message: "Stock images cannot be deleted." },
  domain_public_suffix: { status: 403, message: "The name is a public suffix." },
  domain_reserved: { status: 403, message: "The name is reserved." },
  path_not_found: { status: 404, message: "There is no such address." },
  server_not_found: missing("Server", "server"),
  action_not_found: missing("Action", "action"),
  batch_not_found: missing("Server group", "batch"),
  domain_not_found: missing("Domain", "domain"),
  record_not_found: missing("Record", "record"),
  claim_not_found: missing("Claim", "claim"),
  withdrawn_domain_not_found: missing("Withdrawn domain", "withdrawn domain"),
  reservation_not_found: missing("Reservation", "reservation"),
  public_network_not_found: missing("Public network", "public network"),
  network_not_found: missing("Network", "network"),
  tunnel_not_found: missing("Tunnel", "tunnel"),
  image_not_found: missing("Image", "image"),
  sshkey_not_found: missing("SSH key", "sshkey"),
  orphan_not_found: missing("Orphan", "orphan"),
  token_not_found: missing("Token", "token"),
  session_not_found: missing("Session", "session"),
  project_not_found: missing("Project", "project"),
  webhook_not_found: missing("Webhook", "webhook"),
  delivery_not_found: missing("Delivery", "delivery"),
  method_not_allowed: { status: 405, message: "The method is not allowed here." },
  request_timeout: { status: 408, message: "The request did not arrive in time." },
  idempotency_key_conflict: conflict("The idempotency key was used with another request."),
  idempotency_key_busy: conflict("A request with this idempotency key is still running."),
  action_not_allowed: conflict("The action is not possible in this state."),
  server_busy: conflict("Another action of this server is running."),
  queue_full: conflict("Too many actions are waiting for this server."),
  server_protected: conflict("The server is protected against deletion."),
  restart_needed: conflict("The change needs a restart of the server."),
  image_not_ready: conflict("The image is not ready."),
  upload_conflict: conflict("The content does not continue the upload."),
  already_linked: conflict("The server is already linked to this network."),
  range_overlap: conflict("The address ranges overlap."),
  address_taken: conflict("The address is already in use."),
  network_full: conflict("The network has no free address."),
  network_in_use: conflict("Servers are linked to the network."),
  network_deleting: conflict("The network is being deleted."),
  nothing_to_confirm: conflict("There is no change to confirm."),
  domain_exists: conflict("The domain already exists."),
  domain_not_available: conflict("The domain is not available."),
  reservation_exists: conflict("The name is already reserved."),
  title_taken: conflict("The title is already in use."),
  last_admin_token: conflict("The last administrator token cannot be deleted."),
  project_in_use: conflict("The project still owns objects."),
  etag_mismatch: { status: 412, message: "The object was changed in the meantime." },
  body_too_large: { status: 413, message: "The request body is too large." },
  media_type_not_supported: { status: 415, message: "The media type is not supported." },
  rate_limited: { status: 429, message: "Too many requests." },
  headers_too_large: { status: 431, message: "The request headers are too large." },
  internal: { status: 500, message: "An unexpected error happened." },
  transfer_coding_not_supported: { status: 501, message: "The transfer coding is not supported." },
  not_ready: { status: 503, message: "The service is not ready." },
  no_capacity: { status: 503, message: "There is not enough capacity." },
  pool_exhausted: { status: 503, message: "No address block of this size is free." },
  engine_unavailable: { status: 503, message: "The engine for this operation is not available." },
  storage_unavailable: { status: 503, message: "The database is not available." },
} as const satisfies Record<string, ErrorRow>;

/** A value of `code` in an error response. */
export type ErrorCode = keyof typeof errorCodes;

/** Error codes of an object that does not exist. */
export type MissingCode = {
  [C in ErrorCode]: (typeof errorCodes)[C] extends { readonly noun: string } ? C : never;
}[ErrorCode];

/** Codes of single fields; only inside `errors`. */
export const fieldCodes = [
  "field_required",
  "type_mismatch",
  "out_of_range",
  "too_long",
  "too_short",
  "format_invalid",
  "value_not_allowed",
  "unknown_field",
  "duplicate_field",
  "fields_conflict",
  "port_not_allowed",
  "unknown_reference",
] as const;

/** A value of `code` in an entry of `errors`. */
export type FieldCode = (typeof fieldCodes)[number];

/** One entry of `errors`. `pointer`: JSON Pointer into the body (RFC 6901), or `?name` for a query parameter. */
export interface FieldError {
  readonly pointer: string;
  readonly code: FieldCode | ErrorCode;
  readonly detail: string;
}

/** The error object: `Message` and `ModelState` of the original API and problem details (RFC 9457). Keys have this order. */
export interface Problem {
  readonly Message: string;
  readonly ModelState?: Readonly<Record<string, readonly string[]>>;
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance: string;
  readonly code: ErrorCode;
  readonly errors: readonly FieldError[];
}

/** Converts a pointer to the form of `ModelState`: `/Rules/0/Source` to `Rules[0].Source`, `?limit` to `limit`, the root to `""`. */
export function legacyPath(pointer: string): string {
  if (pointer.startsWith("?")) return pointer.slice(1);
  let path = "";
  for (const part of pointer.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (/^\d+$/.test(key)) path += `[${key}]`;
    else path += path === "" ? key : `.${key}`;
  }
  return path;
}

/** Creates the error object (docs/spec.md#errors). */
export function describeProblem(
  code: ErrorCode,
  detail: string,
  requestId: string,
  errors: readonly FieldError[] = [],
): Problem {
  const { status, message } = errorCodes[code];
  // No prototype: a field may have any name.
  const state = Object.create(null) as Record<string, string[]>;
  for (const error of errors) (state[legacyPath(error.pointer)] ??= []).push(error.detail);
  return {
    Message: message,
    ...(errors.length > 0 && { ModelState: state }),
    type: `/docs#${code}`,
    title: message,
    status,
    detail,
    instance: `urn:brume:request:${requestId}`,
    code,
    errors,
  };
}
