/**
 * One example of request and response for each operation, for the OpenAPI document and the API reference. An invariant test checks them
 * against their schemas. All describe one small installation, so an id means the same object in every example.
 */

import { accountExamples } from "./examples/account.ts";
import { catalogExamples } from "./examples/catalog.ts";
import { claimExamples } from "./examples/claim.ts";
import { dnsExamples } from "./examples/dns.ts";
import type { Examples } from "./examples/example.ts";
import { networkExamples } from "./examples/network.ts";
import { orphanExamples } from "./examples/orphan.ts";
import { diskCopyExamples, serverExamples } from "./examples/server.ts";
import { settingExamples } from "./examples/setting.ts";
import { webhookExamples } from "./examples/webhook.ts";

/** Examples of all operations. */
export const examples: Examples = {
  ...serverExamples,
  ...catalogExamples,
  ...dnsExamples,
  ...claimExamples,
  ...networkExamples,
  ...accountExamples,
  ...orphanExamples,
  ...settingExamples,
  ...diskCopyExamples,
  ...webhookExamples,
};
