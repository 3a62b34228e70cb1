/** Webhooks: events sent to an endpoint of one's own, signed, in order per resource, and tried again until they are taken. */
import { type Static, Type } from "typebox";
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
  optional,
  text,
  word,
  wordsFilter,
} from "./common.ts";
import { eventResourceNames, eventTypes } from "./event.ts";
import { operations } from "./operation.ts";

/** Times in milliseconds. */
export const webhookLimits = {
  /** Deliveries that are shown. */
  shown: 100,
  /** How long a delivery is tried, and how long an endpoint may fail before its webhook is marked. */
  patience: 24 * 3_600_000,
} as const;

export const webhookStates = ["Active", "Failed"] as const;
export const deliveryStates = ["Waiting", "Delivered", "Failed"] as const;

export const Webhook = Type.Object(
  {
    ID: id(),
    Url: text(),
    Types: list(text(), { description: "Names of events, or beginnings of them with `*`." }),
    Secret: text({
      description: "Only in the answer that made it, and only if it was made by the service; else empty.",
    }),
    State: word(webhookStates, {
      description:
        "`Failed`: the endpoint answered 410, or failed for 24 hours. Nothing is sent until a resend succeeds.",
    }),
    FailingSince: nullable(date()),
    Error: nullable(text({ description: "Of the last delivery, if it failed." })),
    DateCreate: date(),
    Labels,
  },
  { title: "Webhook" },
);
export type Webhook = Static<typeof Webhook>;

export const Delivery = Type.Object(
  {
    ID: id(),
    EventID: id({ maximum: Number.MAX_SAFE_INTEGER }),
    Type: word(eventTypes),
    Resource: word(eventResourceNames),
    ResourceID: id(),
    State: word(deliveryStates),
    Attempts: integer(0, maxId),
    Status: nullable(integer(100, 999, { description: "Of the endpoint's last answer; null: there was none." })),
    Error: nullable(text()),
    DateCreate: date(),
    NextDate: nullable(date({ description: "When it is tried next." })),
    EndDate: nullable(date()),
  },
  { title: "Delivery" },
);
export type Delivery = Static<typeof Delivery>;

const webhookParam = { id: "webhook_not_found" } as const;

export const webhookOperations = operations({
  listWebhooks: {
    method: "GET",
    path: "/webhook",
    access: "account:admin",
    observes: true,
    summary: "List webhooks",
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
      "Each event of the project from now on is sent as `POST` with the body that `GET /event` shows, and `Brume-Signature: t=SECONDS,v1=HEX`: HMAC-SHA256 under the secret of `t`, a full stop and the body. Any answer of 200 to 299 within 10 seconds takes it. An event may come more than once; those of one resource come in their order.",
    body: Type.Object({
      Url: text({
        minLength: 8,
        maxLength: 2048,
        description: "`https://` or `http://`. Redirections are not followed.",
      }),
      Types: optional(
        list(text({ maxLength: 64 }), {
          minItems: 1,
          maxItems: 64,
          description: "Names of events, or beginnings of them with `*`. Default: all.",
        }),
      ),
      Secret: optional(
        text({
          minLength: 16,
          maxLength: 128,
          "x-secret": true,
          "x-verbatim": true,
          description: "Default: a new one, shown in this answer and never again.",
        }),
      ),
      Labels: optional(Labels),
    }),
    answer: Webhook,
    tagged: true,
    shows: "readWebhook",
    faults: ["quota_exceeded"],
  },
  readWebhook: {
    method: "GET",
    path: "/webhook/{id}",
    access: "account:admin",
    observes: true,
    summary: "Read a webhook",
    params: webhookParam,
    answer: Webhook,
    tagged: true,
  },
  deleteWebhook: {
    method: "DELETE",
    path: "/webhook/{id}",
    access: "account:admin",
    summary: "Delete a webhook",
    description: "What has not been sent is not sent any more.",
    params: webhookParam,
    answer: null,
  },
  listDeliveries: {
    method: "GET",
    path: "/webhook/{id}/delivery",
    access: "account:admin",
    observes: true,
    summary: "List the last 100 deliveries of a webhook, newest first",
    params: webhookParam,
    query: listQuery({ state: wordsFilter(deliveryStates), type: wordsFilter(eventTypes) }),
    answer: list(Delivery),
    list: true,
  },
  resendDelivery: {
    method: "POST",
    path: "/webhook/{id}/delivery/{deliveryID}/resend",
    access: "account:admin",
    summary: "Send a delivery again",
    description:
      "At once and out of its order. If the webhook has failed and the endpoint takes it, the webhook goes on where it stopped.",
    params: { id: "webhook_not_found", deliveryID: "delivery_not_found" },
    answer: Delivery,
    faults: ["action_not_allowed"],
  },
});
