/** Firewalls in rows: the stored firewall is the parsed one, also with the parser that parses each text once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createFirewallParser, firewallOf, firewallToText, normalise } from "./firewall.ts";

test("a stored firewall is parsed as it was", () => {
  const sets = Array.from({ length: 9 }, (_, index) =>
    normalise({ Rules: [{ Action: "Deny", Name: `n${index}` }] }, { family6: false }),
  );
  const texts = sets.map(firewallToText);
  const parse = createFirewallParser();
  for (const [index, firewall] of texts.entries()) {
    assert.deepEqual(parse({ firewall }), sets[index]);
    assert.equal(parse({ firewall }), parse({ firewall }));
    assert.deepEqual(JSON.parse(firewall), sets[index]);
    assert.deepEqual(firewallOf({ firewall }), sets[index]);
  }
});
