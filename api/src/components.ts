/**
 * The parts of the OpenAPI document that do not depend on the contract: the TypeScript types of the document, the tags, the parameters
 * and headers that belong to a kind of operation (docs/spec.md#errors, #lists, #headers-and-queries-for-changes), and the error object.
 */
import { type ErrorCode, errorCodes, fieldCodes } from "./errors.ts";
import type { Operation } from "./operation.ts";

/** A JSON object of the document. */
export type Json = Readonly<Record<string, unknown>>;

/** Media Type Object of OpenAPI. */
export interface Media {
  readonly schema: Json;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

/** Parameter Object of OpenAPI. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Json;
  readonly example?: unknown;
}

/** Reference Object of OpenAPI. */
export interface Reference {
  readonly $ref: string;
}

/** Link Object of OpenAPI: an operation whose path parameters are values of this response or of its request. */
export interface Link {
  readonly operationId: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** Response Object of OpenAPI. */
export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Reference>>;
  readonly links?: Readonly<Record<string, Link>>;
  readonly content?: Readonly<Record<string, Media | { schema: Reference; examples: Record<string, Reference> }>>;
  /** Error codes that this status can carry. */
  readonly "x-codes"?: readonly ErrorCode[];
}

/** Operation Object of OpenAPI. */
export interface OperationObject {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly (Parameter | Reference)[];
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, Response | Reference>>;
  readonly "x-scope": Operation["access"];
  readonly "x-own"?: string;
  readonly "x-repeatable"?: boolean;
}

/** The OpenAPI document. */
export interface OpenApi {
  readonly openapi: "3.1.1";
  readonly info: Json & { readonly title: string; readonly version: string; readonly description: string };
  readonly jsonSchemaDialect: string;
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Json>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly headers: Readonly<Record<string, Json>>;
    readonly examples: Readonly<Record<string, { readonly value: unknown }>>;
    readonly securitySchemes: Json;
  };
}

/** The groups of the API reference, by key. */
export const tags: Readonly<Record<string, { readonly name: string; readonly description: string }>> = {
  dns: {
    name: "DNS",
    description: "Domains and their records. A change is served by the name server before the API responds.",
  },
  network: {
    name: "Networks",
    description: "Public networks with a router, firewall and VPN. Private networks.",
  },
  server: { name: "Servers", description: "Servers, groups of servers, images, SSH keys and locations." },
  account: { name: "Account", description: "Account, projects, tokens and the audit log." },
  event: {
    name: "Events",
    description:
      "A log of changes, delivered in order and exactly once per stream. Webhooks send the same events to an HTTP endpoint.",
  },
  service: { name: "Service", description: "Health, readiness, metrics and this reference." },
};
/** Tag by the first segment of a path. */
export const tagOf: Readonly<Record<string, keyof typeof tags>> = {
  dns: "dns",
  account: "account",
  publicnetwork: "network",
  network: "network",
  server: "server",
  "server-batch": "server",
  image: "server",
  sshkey: "server",
  dcLocation: "server",
  customer: "account",
  project: "account",
  token: "account",
  audit: "account",
  event: "event",
  orphan: "service",
  "disk-copy": "service",
  setting: "service",
  webhook: "event",
};

/** Description of the API in the document. */
export const description =
  `Every successful response has status 200. Responses are compact JSON. Every key of the schema is present, in the order of
the schema; later versions may add keys at the end of any object. A request body is JSON or a form. Field names are not case-sensitive,
and numbers may be sent as text. Every \`GET\` also accepts \`HEAD\`, and every path \`OPTIONS\`. In a dry run a new id is \`0\`.`.replaceAll(
    "\n",
    " ",
  );

/** Parameters that belong to a kind of operation, by component name. */
export const parameters: Readonly<Record<string, Parameter>> = {
  dryRun: {
    name: "dryRun",
    in: "query",
    description:
      "Validate only. Returns the response that the request would produce; new ids are `0`, new secrets are empty.",
    schema: { type: "boolean", default: false },
  },
  IdempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    description:
      "Makes the request idempotent: a repeated request with the same key returns the first response. Stored for 24 hours.",
    schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[!-~]+$" },
  },
  Prefer: {
    name: "Prefer",
    in: "header",
    description:
      "`wait=N`: respond when the change has taken effect, or after N seconds (at most 60). `handling=strict`: reject unknown fields and convert no types.",
    schema: { type: "string", examples: ["wait=10", "handling=strict"] },
  },
  IfMatch: {
    name: "If-Match",
    in: "header",
    description: "Change the object only if it still has this `ETag`. `*` matches any.",
    schema: { type: "string", examples: ['"domain-3-7"'] },
  },
  ContentRange: {
    name: "Content-Range",
    in: "header",
    description:
      "Position of the content: `bytes FIRST-LAST/SIZE`, as `curl -T FILE -C FIRST` sends it. Without it, the content is the whole file.",
    schema: { type: "string", pattern: "^bytes [0-9]+-[0-9]+/([0-9]+|\\*)$", examples: ["bytes 0-1048575/3145728"] },
  },
  limit: {
    name: "limit",
    in: "query",
    description:
      "Page size, 1 to 1000. Without `limit` and `cursor` all objects are returned; with `cursor` the default is 100. A page of domains or versions ends early rather than exceed 100,000 records.",
    schema: { type: "integer", minimum: 1, maximum: 1000 },
  },
  cursor: {
    name: "cursor",
    in: "query",
    description: "Start of the page: an opaque value from the `Link` header of the previous page.",
    schema: { type: "string" },
  },
  LastEventId: {
    name: "Last-Event-ID",
    in: "header",
    description: "Start the stream with the first event after this event id.",
    schema: { type: "string", pattern: "^[0-9]+$" },
  },
};

const header = (description: string, schema: Json = { type: "string" }) => ({ description, schema });
/** Response headers, by name. */
export const headers: Readonly<Record<string, Json>> = {
  "X-Request-Id": header("Id of the request: the client's own value if it sent one, else a new one."),
  ETag: header("Version of the object. It changes exactly when a field that a client can set changes."),
  Link: header('`<path?...&cursor=...>; rel="next"`: the next page. Absent on the last page.'),
  "X-Total-Count": header(
    "Number of objects that match the filters, on all pages. Of events, at most 10000 are counted.",
    { type: "integer", minimum: 0 },
  ),
  "Preference-Applied": header("The preferences of `Prefer` that were applied."),
  "Idempotency-Replayed": header("`true`: this is the stored response to the first request.", { const: "true" }),
  "X-Dry-Run": header("`true`: nothing was changed.", { const: "true" }),
  "X-Simulated": header("Names of the engines that are simulated: what the response shows does not exist on the host."),
  "RateLimit-Policy": header(
    'Limit of the token: `"token";q=REQUESTS;w=SECONDS`. Absent: the token has no rate limit.',
  ),
  RateLimit: header(
    'State of the limit: `"token";r=REMAINING;t=SECONDS`, with the seconds until it is full again. Absent: the token has no rate limit.',
  ),
  "Retry-After": header("Seconds to wait before the next attempt.", { type: "integer", minimum: 0 }),
  "WWW-Authenticate": header("`Bearer`, with `invalid_token` if a token was sent."),
};

/** All error codes. */
export const codes = Object.keys(errorCodes) as ErrorCode[];
/** Schema of a text. */
export const text = { type: "string" } as const;
/** Schema of the error object. */
export const problem: Json = {
  title: "Problem",
  type: "object",
  description: "Problem details (RFC 9457) with the older `Message` and `ModelState`. Programs compare `code`.",
  required: ["Message", "type", "title", "status", "detail", "instance", "code", "errors"],
  properties: {
    Message: { ...text, description: "The fixed sentence of this code." },
    ModelState: {
      type: "object",
      description: "Sentences by field path, such as `Rules[0].Source`. Present only if `errors` is not empty.",
      additionalProperties: { type: "array", items: text },
    },
    type: { ...text, format: "uri-reference", description: "Reference page of the error: `/docs#<code>`." },
    title: { ...text, description: "Same as `Message`." },
    status: { type: "integer", minimum: 400, maximum: 599 },
    detail: { ...text, description: "One sentence with the names and numbers of this case." },
    instance: { ...text, format: "uri", description: "`urn:brume:request:<X-Request-Id>`" },
    code: { ...text, enum: codes },
    errors: {
      type: "array",
      items: {
        type: "object",
        required: ["pointer", "code", "detail"],
        properties: {
          pointer: { ...text, description: "JSON Pointer into the body (RFC 6901), or `?name` for a query parameter." },
          code: { ...text, enum: [...fieldCodes, ...codes] },
          detail: text,
        },
      },
    },
  },
};
