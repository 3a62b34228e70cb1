/** Webhook 1 and the delivery of event 991. */
import type { Contract } from "../contract.ts";
import type { Answer } from "../operation.ts";
import { date, type Examples, later } from "./example.ts";

const webhook = (secret: string): Answer<Contract["readWebhook"]> => ({
  ID: 1,
  Url: "https://hooks.example.net/brume",
  Types: ["record.*", "domain.*"],
  Secret: secret,
  State: "Active",
  FailingSince: null,
  Error: null,
  DateCreate: date,
  Labels: {},
});

const delivery: Answer<Contract["resendDelivery"]> = {
  ID: 5,
  EventID: 991,
  Type: "record.created",
  Resource: "record",
  ResourceID: 14,
  State: "Waiting",
  Attempts: 2,
  Status: 503,
  Error: "The endpoint returned status 503.",
  DateCreate: date,
  NextDate: later,
  EndDate: null,
};

/** Examples of the operations on webhooks. */
export const webhookExamples: Examples = {
  listWebhooks: { answer: [webhook("")] },
  createWebhook: {
    request: { Url: "https://hooks.example.net/brume", Types: ["record.*", "domain.*"] },
    answer: webhook("9c4b1f7a2e8d5c0b6f3a9e1d7c5b2a8f4e0d6c3b9a1f7e5d2c8b4a0f6e3d1c9b"),
  },
  readWebhook: { path: [1], answer: webhook("") },
  deleteWebhook: { path: [1] },
  listDeliveries: { path: [1], answer: [delivery] },
  resendDelivery: { path: [1, 5], answer: delivery },
};
