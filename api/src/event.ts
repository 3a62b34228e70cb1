/** Events: a log of changes, delivered in order and exactly once per stream, and stored for clients that reconnect. */
import type { Static } from "typebox";
import {
  anything,
  boolean,
  date,
  id,
  list,
  listQuery,
  nullable,
  object,
  optional,
  text,
  word,
  wordsFilter,
} from "./common.ts";
import { operations, type Scope } from "./operation.ts";

/** Event types of each kind of resource, and the scope that a token needs to receive them. */
export const eventResources = {
  server: { scope: "server:read", types: ["server.created", "server.changed", "server.crashed", "server.deleted"] },
  action: { scope: "server:read", types: ["action.created", "action.changed", "action.ended"] },
  batch: { scope: "server:read", types: ["batch.created", "batch.changed", "batch.deleted"] },
  domain: { scope: "dns:read", types: ["domain.created", "domain.changed", "domain.deleted", "domain.withdrawn"] },
  claim: { scope: "dns:read", types: ["claim.created", "claim.changed", "claim.deleted"] },
  record: { scope: "dns:read", types: ["record.created", "record.changed", "record.deleted"] },
  publicnetwork: {
    scope: "network:read",
    types: [
      "publicnetwork.created",
      "publicnetwork.changed",
      "publicnetwork.deleted",
      "publicnetwork.applied",
      "publicnetwork.limited",
    ],
  },
  tunnel: { scope: "network:read", types: ["tunnel.up", "tunnel.down"] },
  network: { scope: "network:read", types: ["network.created", "network.changed", "network.deleted"] },
  image: { scope: "server:read", types: ["image.created", "image.changed", "image.deleted"] },
  sshkey: { scope: "server:read", types: ["sshkey.created", "sshkey.deleted"] },
  project: { scope: "account:admin", types: ["project.created", "project.changed", "project.deleted"] },
  token: { scope: "account:admin", types: ["token.created", "token.deleted"] },
  session: { scope: "account:admin", types: ["session.created", "session.deleted"] },
  orphan: { scope: "account:admin", types: ["orphan.created", "orphan.changed", "orphan.deleted"] },
  disk: { scope: "account:admin", types: ["disk.low", "disk.recovered"] },
  certificate: { scope: "account:admin", types: ["certificate.changed", "certificate.failed"] },
  webhook: { scope: "account:admin", types: ["webhook.created", "webhook.changed", "webhook.deleted"] },
} as const satisfies Record<string, { scope: Scope; types: readonly string[] }>;

/** Kind of object that events are about. */
export type EventResource = keyof typeof eventResources;
/** Kinds of all objects with events. */
export const eventResourceNames = Object.keys(eventResources) as EventResource[];
/** All values of `Type`, such as `record.created`. */
export const eventTypes = eventResourceNames.flatMap((kind) => [...eventResources[kind].types]);
/** Most matching events that `X-Total-Count` of the list counts. */
export const mostCounted = 10_000;
/** A value of `eventTypes`. */
export type EventType = (typeof eventResources)[EventResource]["types"][number];

/** Returns the types that fit one of the words: a type, or the beginning of types with `*` at its end (`server.*`). */
export const fittingTypes = (words: readonly string[]): EventType[] =>
  eventTypes.filter((type) =>
    words.some((word) => (word.endsWith("*") ? type.startsWith(word.slice(0, -1)) : type === word)),
  );

/** An event: one change of an object. */
export const Event = object("Event", "One change of an object.", {
  ID: id({ maximum: Number.MAX_SAFE_INTEGER, description: "Id of the event. Later events have larger ids." }),
  Type: word(eventTypes, { description: "Kind of the object and of the change." }),
  Date: date({ description: "When the change was committed." }),
  ProjectID: id({ description: "Project of the object." }),
  Resource: word(eventResourceNames, { description: "Kind of the object." }),
  ResourceID: id({ description: "Id of the object." }),
  ParentID: nullable(
    id({
      description: "Server of an action, domain of a record, public network of a tunnel. `null`: there is none.",
    }),
  ),
  TokenID: nullable(id({ description: "Token of the request. `null`: the service made the change." })),
  RequestID: nullable(text({ description: "`X-Request-Id` of the request. `null`: the service made the change." })),
  Data: anything({
    description:
      "The object as `GET` returns it, without secrets; `null` after deletion. Of more than 500 firewall rules, only the range that changed is included, at most 500; `Omitted` is the number of the others.",
  }),
});
/** TypeScript type of this schema. */
export type Event = Static<typeof Event>;

/** The list of events and the stream of new ones. */
export const eventOperations = operations({
  listEvents: {
    method: "GET",
    path: "/event",
    access: "any",
    unlimited: true,
    observes: true,
    summary: "List events, oldest first, or stream them",
    description:
      "With `Accept: text/event-stream` the response is a stream; `Last-Event-ID` or `after` resumes it without gaps or duplicates. Otherwise it is an array of at most `limit` events (default 100). `X-Total-Count` counts at most 10000 events.",
    query: listQuery({
      type: wordsFilter(eventTypes, {
        "x-prefix": true,
        description: "Event types, separated by commas; `*` at the end matches any ending.",
      }),
      resource: optional(text({ description: "Up to 100 objects such as `domain:3`, separated by commas." })),
      after: optional(
        id({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: "Return only events after this event id." }),
      ),
      newest: optional(
        boolean({ description: "`true`: the newest events, newest first. It has one page and is not for a stream." }),
      ),
    }),
    answer: list(Event),
    media: "text/event-stream",
    list: true,
  },
});
