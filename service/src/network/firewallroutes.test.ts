import assert from "node:assert/strict";
import { test } from "node:test";
import type { NetworkContext } from "./context.ts";
import { firewallRoutes } from "./firewallroutes.ts";

test("the check of a packet parses long rules before, with yields", () => {
  let parsed = 0;
  const Rules = Array.from({ length: 1000 }, (_, index) => ({
    Action: "Deny" as const,
    Protocol: "Tcp" as const,
    get Source() {
      parsed += 1;
      return `10.0.${index >> 8}.${index & 255}`;
    },
  }));
  const { checkFirewall } = firewallRoutes({ areas: { pool6: null } } as NetworkContext);
  const body = {
    Protocol: "Tcp",
    Source: "203.0.113.5",
    Destination: "10.64.0.10",
    DestinationPort: 80,
    Rules,
  } as const;
  let yields = 0;
  for (const work = checkFirewall.prepareCheck?.(body); work?.next().done === false; ) yields += 1;
  assert.ok(yields >= Rules.length, `${yields} yields`);
  assert.deepEqual(checkFirewall.check?.(body), []);
  assert.equal(parsed, Rules.length);
});
