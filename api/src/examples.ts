/**
 * One conversation per operation: what is sent and what comes back. They stand in the OpenAPI document and on the page of
 * documentation, are checked against their schemas by a law, and are written as the schemas want them (the service also takes
 * `"3"` for `3`). All tell of one small installation, so that ids mean the same thing from one example to the next.
 */

import { accountExamples } from "./examples/account.ts";
import { catalogExamples } from "./examples/catalog.ts";
import { claimExamples } from "./examples/claim.ts";
import { diskCopyExamples } from "./examples/diskcopy.ts";
import { dnsExamples } from "./examples/dns.ts";
import type { Examples } from "./examples/example.ts";
import { networkExamples } from "./examples/network.ts";
import { orphanExamples } from "./examples/orphan.ts";
import { serverExamples } from "./examples/server.ts";
import { webhookExamples } from "./examples/webhook.ts";

export const examples: Examples = {
  ...serverExamples,
  ...catalogExamples,
  ...dnsExamples,
  ...claimExamples,
  ...networkExamples,
  ...accountExamples,
  ...orphanExamples,
  ...diskCopyExamples,
  ...webhookExamples,
};
