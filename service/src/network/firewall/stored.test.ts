/** Firewalls in rows: what goes in comes out, whether it is still remembered or not. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { firewallOf, firewallToText, normalise } from "./firewall.ts";

test("what goes into a row comes out of it", () => {
  const sets = Array.from({ length: 9 }, (_, index) =>
    normalise({ Rules: [{ Action: "Deny", Name: `n${index}` }] }, { family6: false }),
  );
  const texts = sets.map(firewallToText);
  for (const [index, firewall] of texts.entries()) {
    assert.deepEqual(JSON.parse(firewall), sets[index]);
    assert.deepEqual(firewallOf({ firewall }), sets[index]);
  }
});
