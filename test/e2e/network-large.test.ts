/** Firewalls of the largest size, through the API (docs/spec.md#defaults-and-limits). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { onSqlite, refused } from "../support/harness.ts";

onSqlite("large firewalls", (harness) => {
  test("with 10,000 rules are accepted, however long their text", async () => {
    await harness.client.updateProject({ path: { id: 1 }, body: { Quotas: { FirewallRules: 10_000 } } });
    const { Id: id } = await harness.client.createPublicNetwork({ body: { Name: "large" } });
    const Rules = Array.from({ length: 10_000 }, (_, index) => ({
      Name: `rule ${index} `.padEnd(60, "."),
      Action: "Allow" as const,
      Protocol: "Tcp" as const,
      Source: `198.51.${index >> 8}.${index & 255}`,
      DestinationPort: "443",
    }));
    assert.ok(JSON.stringify({ Rules }).length > 2 ** 20);
    const set = (rules: typeof Rules) => harness.client.configureFirewall({ path: { id }, body: { Rules: rules } });
    const { Firewall } = await set(Rules);
    assert.equal(Firewall.Rules.length, 10_000);
    await refused(set([...Rules, ...Rules.slice(0, 1)]), "validation_failed");
    const large = await harness.request(`PUT /publicnetwork/${id}/firewall`, " ".repeat(16 * 2 ** 20 + 1));
    assert.deepEqual([large.status, large.code], [413, "body_too_large"]);
  });
});
