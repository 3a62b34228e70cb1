/** Webhooks: signed events, sent to an HTTP endpoint in order for each resource, and repeated until the endpoint accepts them. */
import type { Static } from "typebox";
import {
  date,
  id,
  integer,
  Labels,
  labelFilter,
  list,
  listQuery,
  maxId,
  nullable,
  object,
  optional,
  text,
  word,
  wordsFilter,
} from "./common.ts";
import { eventResourceNames, eventTypes } from "./event.ts";
import { operations } from "./operation.ts";

/** Times in milliseconds. */
export const webhookLimits = {
  /** Deliveries that the API returns for each webhook. */
  shown: 100,
  /** How long a delivery is repeated, and how long an endpoint may fail before `State` becomes `Failed`. */
  patience: 24 * 3_600_000,
} as const;

/** Values of `State`. `Failed`: deliveries are paused, see `Webhook.State`. */
export const webhookStates = ["Active", "Failed"] as const;
/** Values of `State`. `Waiting`: not sent yet, or repeated later. */
export const deliveryStates = ["Waiting", "Delivered", "Failed"] as const;

/** A webhook: an HTTP endpoint that receives events. */
export const Webhook = object("Webhook", "An HTTP endpoint that receives events.", {
  ID: id({ description: "Id of the webhook." }),
  Url: text({ description: "URL of the endpoint." }),
  Types: list(text({ description: "An event type, or a prefix followed by `*`." }), {
    description: "Event types; `*` at the end matches any ending.",
  }),
  Secret: text({
    description: "Only in the response to the creation, and only if the service generated it. Otherwise empty.",
  }),
  State: word(webhookStates, {
    description:
      "`Active`: events are sent. `Failed`: the endpoint responded 410, or failed for 24 hours. Nothing is sent until a resend succeeds.",
  }),
  FailingSince: nullable(date({ description: "When the endpoint began to fail. `null`: it works." })),
  Error: nullable(text({ description: "Error of the last delivery. `null`: it succeeded." })),
  DateCreate: date({ description: "When the webhook was created." }),
  Labels,
});
/** TypeScript type of this schema. */
export type Webhook = Static<typeof Webhook>;

/** The delivery of one event to a webhook. */
export const Delivery = object("Delivery", "The delivery of one event to a webhook.", {
  ID: id({ description: "Id of the delivery." }),
  EventID: id({ maximum: Number.MAX_SAFE_INTEGER, description: "Id of the event." }),
  Type: word(eventTypes, { description: "Type of the event." }),
  Resource: word(eventResourceNames, { description: "Kind of the object that the event is about." }),
  ResourceID: id({ description: "Id of the object that the event is about." }),
  State: word(deliveryStates, {
    description: "`Waiting`: will be sent. `Delivered`: the endpoint accepted it. `Failed`: not accepted in 24 hours.",
  }),
  Attempts: integer(0, maxId, { description: "Number of attempts." }),
  Status: nullable(integer(100, 999, { description: "HTTP status of the last response. `null`: no response." })),
  Error: nullable(text({ description: "Error of the last attempt. `null`: none." })),
  DateCreate: date({ description: "When the delivery was created." }),
  NextDate: nullable(date({ description: "Time of the next attempt. `null`: none." })),
  EndDate: nullable(date({ description: "When the delivery was accepted or failed. `null`: it waits." })),
});
/** TypeScript type of this schema. */
export type Delivery = Static<typeof Delivery>;

const webhookParam = { id: "webhook_not_found" } as const;

/** Operations on webhooks and their deliveries. */
export const webhookOperations = operations({
  listWebhooks: {
    method: "GET",
    path: "/webhook",
    access: "account:admin",
    observes: true,
    summary: "List webhooks",
    description: "Returns the webhooks of the project, by id, without their secrets.",
    query: listQuery({ state: wordsFilter(webhookStates), label: labelFilter }),
    answer: list(Webhook),
    list: true,
  },
  createWebhook: {
    method: "POST",
    path: "/webhook",
    access: "account:admin",
    summary: "Create a webhook",
    description:
      "Sends each new event of the project as `POST`, with the body that `GET /event` returns. The header `Brume-Signature: t=SECONDS,v1=HEX` contains the HMAC-SHA256 of `t`, a full stop and the body. A response of 200 to 299 within 10 seconds accepts the event. An event can be delivered more than once. Events of one resource are delivered in order.",
    body: object("CreateWebhookRequest", "A new webhook.", {
      Url: text({
        minLength: 8,
        maxLength: 2048,
        description: "`https://` or `http://` URL. Redirects are not followed.",
      }),
      Types: optional(
        list(text({ maxLength: 64, description: "An event type, or a prefix followed by `*`." }), {
          minItems: 1,
          maxItems: 64,
          description: "Event types; `*` at the end matches any ending. Default: all events.",
        }),
      ),
      Secret: optional(
        text({
          minLength: 16,
          maxLength: 128,
          "x-secret": true,
          "x-verbatim": true,
          description: "Key of the signature. Default: a generated one, which only this response contains.",
        }),
      ),
      Labels: optional(Labels),
    }),
    answer: Webhook,
    etag: true,
    resultOperation: "readWebhook",
    errors: ["quota_exceeded"],
  },
  readWebhook: {
    method: "GET",
    path: "/webhook/{id}",
    access: "account:admin",
    observes: true,
    summary: "Get a webhook",
    description: "Returns the webhook without its secret.",
    params: webhookParam,
    answer: Webhook,
    etag: true,
  },
  deleteWebhook: {
    method: "DELETE",
    path: "/webhook/{id}",
    access: "account:admin",
    summary: "Delete a webhook",
    description: "Events that are not yet delivered are not sent.",
    params: webhookParam,
    answer: null,
  },
  listDeliveries: {
    method: "GET",
    path: "/webhook/{id}/delivery",
    access: "account:admin",
    observes: true,
    summary: "List the last 100 deliveries, newest first",
    description: "Shows for each event whether the endpoint accepted it, and why not.",
    params: webhookParam,
    query: listQuery({ state: wordsFilter(deliveryStates), type: wordsFilter(eventTypes) }),
    answer: list(Delivery),
    list: true,
  },
  resendDelivery: {
    method: "POST",
    path: "/webhook/{id}/delivery/{deliveryID}/resend",
    access: "account:admin",
    summary: "Resend a delivery",
    description:
      "Sends the delivery now, outside the order. If `State` is `Failed` and the endpoint accepts the delivery, the webhook continues where it stopped.",
    params: { id: "webhook_not_found", deliveryID: "delivery_not_found" },
    answer: Delivery,
    errors: ["action_not_allowed"],
  },
});
