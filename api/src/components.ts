/**
 * The parts of the OpenAPI document that are the same for every contract: its shapes as far as they are written here, parameters and
 * headers that belong to a kind of operation instead of one (docs/spec.md#errors, #lists, #headers-and-queries-for-changes), and the error object.
 */
import { type FaultCode, faults, fieldCodes } from "./errors.ts";
import type { Operation } from "./operation.ts";

export type Json = Readonly<Record<string, unknown>>;

export interface Media {
  readonly schema: Json;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Json;
  readonly example?: unknown;
}

export interface Reference {
  readonly $ref: string;
}

export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Reference>>;
  readonly content?: Readonly<Record<string, Media | { schema: Reference; examples: Record<string, Reference> }>>;
  /** Codes of the error object that this status comes with. */
  readonly "x-codes"?: readonly FaultCode[];
}

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

/** By the first word of the path. */
export const tags: Readonly<Record<string, { readonly name: string; readonly description: string }>> = {
  dns: { name: "DNS", description: "Domains and their records, served by the name server when the answer leaves." },
  network: {
    name: "Networks",
    description: "Public networks with router, firewall and VPN; private networks.",
  },
  server: { name: "Servers", description: "Servers, their images, keys and locations." },
  account: { name: "Account", description: "Account, projects, tokens, and the audit of every change asked for." },
  event: { name: "Events", description: "What happened, told once, in order; and webhooks, to which it is sent." },
  service: { name: "Service", description: "The service about itself." },
};
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
  webhook: "event",
};

export const description =
  `Every success is status 200. Answers are compact JSON with all keys always there, in the order of the schemas; new keys may
come at the end of any object. Requests may be JSON or a form, field names in any letter case, numbers as text. Every \`GET\` also
takes \`HEAD\`, every path \`OPTIONS\`. In a dry run a new id is \`0\`.`.replaceAll("\n", " ");

export const parameters: Readonly<Record<string, Parameter>> = {
  dryRun: {
    name: "dryRun",
    in: "query",
    description:
      "Check everything, change nothing, answer what would have come: with new ids `0` and new secrets empty.",
    schema: { type: "boolean", default: false },
  },
  IdempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    description: "Makes the request happen once: a repeat with this key gets the first answer. Kept 24 hours.",
    schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[!-~]+$" },
  },
  Prefer: {
    name: "Prefer",
    in: "header",
    description:
      "`wait=N`: hold the answer until the change has taken effect, at most N (60) seconds. `handling=strict`: take the request as written and refuse unknown names and every coercion.",
    schema: { type: "string", examples: ["wait=10", "handling=strict"] },
  },
  IfMatch: {
    name: "If-Match",
    in: "header",
    description: "Only if the object still has this `ETag`, or `*`.",
    schema: { type: "string", examples: ['"domain-3-7"'] },
  },
  limit: {
    name: "limit",
    in: "query",
    description:
      "Cut pages of this many objects. Absent: everything; with `cursor` 100. A page of domains or versions ends before it shows more than 100,000 records.",
    schema: { type: "integer", minimum: 1, maximum: 1000 },
  },
  cursor: {
    name: "cursor",
    in: "query",
    description: "Where the page begins: opaque, from the `Link` of the page before.",
    schema: { type: "string" },
  },
  LastEventId: {
    name: "Last-Event-ID",
    in: "header",
    description: "The stream begins with the first event after this one.",
    schema: { type: "string", pattern: "^[0-9]+$" },
  },
};

const header = (description: string, schema: Json = { type: "string" }) => ({ description, schema });
export const headers: Readonly<Record<string, Json>> = {
  "X-Request-Id": header("The client's own if it sent one, else a new one."),
  ETag: header("Changes when, and only when, something a client can set was changed."),
  Link: header('`<path?...&cursor=...>; rel="next"` if more objects follow.'),
  "X-Total-Count": header("How many objects match the filters, on all pages.", { type: "integer", minimum: 0 }),
  "Preference-Applied": header("What of `Prefer` was followed."),
  "Idempotency-Replayed": header("`true`: this is the stored answer of the first request.", { const: "true" }),
  "X-Dry-Run": header("`true`: nothing was changed.", { const: "true" }),
  "Retry-After": header("Seconds until it is worth trying again.", { type: "integer", minimum: 0 }),
  "WWW-Authenticate": header("`Bearer`, and `invalid_token` if one was sent."),
};

export const codes = Object.keys(faults) as FaultCode[];
export const text = { type: "string" } as const;
export const problem: Json = {
  title: "Problem",
  type: "object",
  description:
    "Problem details (RFC 9457) and the older `Message` and `ModelState` in one. `code` is what programs compare.",
  required: ["Message", "type", "title", "status", "detail", "instance", "code", "errors"],
  properties: {
    Message: { ...text, description: "The sentence of the code, always the same." },
    ModelState: {
      type: "object",
      description: "Sentences by field path, `Rules[0].Source`; only there if `errors` is not empty.",
      additionalProperties: { type: "array", items: text },
    },
    type: { ...text, format: "uri-reference", description: "`/docs#<code>`" },
    title: { ...text, description: "Same as `Message`." },
    status: { type: "integer", minimum: 400, maximum: 599 },
    detail: { ...text, description: "One sentence with names and numbers." },
    instance: { ...text, format: "uri", description: "`urn:brume:request:<X-Request-Id>`" },
    code: { ...text, enum: codes },
    errors: {
      type: "array",
      items: {
        type: "object",
        required: ["pointer", "code", "detail"],
        properties: {
          pointer: { ...text, description: "Into the body (RFC 6901), or `?name` for a query parameter." },
          code: { ...text, enum: [...fieldCodes, ...codes] },
          detail: text,
        },
      },
    },
  },
};
