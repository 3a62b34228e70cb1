/** Events: what happened, told once, in order, and kept for those who were away. */
import { type Static, Type } from "typebox";
import { date, id, list, listQuery, nullable, optional, text, word, wordsFilter } from "./common.ts";
import { operations, type Scope } from "./operation.ts";

/** Each kind of resource with what one must be allowed to read to hear of it, and its events. */
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
  orphan: { scope: "account:admin", types: ["orphan.created", "orphan.changed", "orphan.deleted"] },
  disk: { scope: "account:admin", types: ["disk.low", "disk.recovered"] },
  webhook: { scope: "account:admin", types: ["webhook.created", "webhook.changed", "webhook.deleted"] },
} as const satisfies Record<string, { scope: Scope; types: readonly string[] }>;

export type EventResource = keyof typeof eventResources;
export const eventResourceNames = Object.keys(eventResources) as EventResource[];
export const eventTypes = eventResourceNames.flatMap((kind) => [...eventResources[kind].types]);
export type EventType = (typeof eventResources)[EventResource]["types"][number];

export const Event = Type.Object(
  {
    ID: id({ maximum: Number.MAX_SAFE_INTEGER }),
    Type: word(eventTypes),
    Date: date(),
    ProjectID: id(),
    Resource: word(eventResourceNames),
    ResourceID: id(),
    ParentID: nullable(id()),
    TokenID: nullable(id()),
    RequestID: nullable(text()),
    Data: Type.Unknown({
      description:
        "The object as `GET` shows it, secrets empty; null after deletion. A firewall of more than 500 rules shows those from the first to the last that changed, 500 at most, and in `Omitted` how many it leaves out.",
    }),
  },
  { title: "Event" },
);
export type Event = Static<typeof Event>;

export const eventOperations = operations({
  listEvents: {
    method: "GET",
    path: "/event",
    access: "any",
    unlimited: true,
    observes: true,
    summary: "List events, oldest first, or stream them",
    description:
      "With `Accept: text/event-stream` it is a stream that `Last-Event-ID` or `after` resumes without gap or double. Else an array, at most 100 unless `limit` says otherwise.",
    query: listQuery({
      type: wordsFilter(eventTypes, { "x-prefix": true, description: "Names with commas, `*` at the end." }),
      resource: optional(text({ description: "`domain:3`, several with commas." })),
      after: optional(id({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: "Id of an event." })),
    }),
    answer: list(Event),
    media: "text/event-stream",
    list: true,
  },
});
