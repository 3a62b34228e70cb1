/** Firewalls in rows: what goes in comes out, also from a parser that parses each only once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createFirewallParser, firewallOf, firewallToText, normalise } from "./firewall.ts";

test("what goes into a row comes out of it", () => {
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
