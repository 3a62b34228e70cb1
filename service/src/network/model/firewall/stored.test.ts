/** Firewalls in rows: the stored firewall is the parsed one, also with the parser that parses each text once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runAtOnce } from "../../../base/turn.ts";
import { renderFirewall } from "../../../drivers/router/nft/firewall.ts";
import { createFirewallParser, createRuleReader, firewallOf, firewallToText, normalise } from "./firewall.ts";
import { convertFirewall, toRouterFirewall } from "./routerform.ts";

test("a stored firewall is parsed as it was", () => {
  const sets = Array.from({ length: 9 }, (_, index) =>
    normalise({ Rules: Array.from({ length: 60 }, () => ({ Action: "Deny", Name: `n${index}` })) }, { family6: false }),
  );
  const texts = sets.map((firewall) => runAtOnce(firewallToText(firewall)));
  const parse = createFirewallParser();
  for (const [index, firewall] of texts.entries()) {
    assert.deepEqual(parse({ firewall }), sets[index]);
    assert.equal(parse({ firewall }), parse({ firewall }));
    assert.deepEqual(JSON.parse(firewall), sets[index]);
    assert.deepEqual(firewallOf({ firewall }), sets[index]);
  }
});

test("a parser with a limit keeps the latest long firewalls", () => {
  const [one, two, three, short] = [101, 102, 103, 1].map((count) => {
    const Rules = Array.from({ length: count }, () => ({ Action: "Allow" as const }));
    return { firewall: runAtOnce(firewallToText(normalise({ Rules }, { family6: false }))) };
  });
  assert.ok(one && two && three && short);
  const parse = createFirewallParser(2);
  const first = parse(one);
  const second = parse(two);
  assert.equal(parse(one), first, "it is the latest again");
  parse(three);
  assert.deepEqual(parse(short).Rules.length, 1);
  assert.equal(parse(one), first);
  assert.notEqual(parse(two), second);
  assert.deepEqual(parse(two), second);
});

test("thousands of rules are parsed, converted and rendered with yields", () => {
  const Rules = Array.from({ length: 3000 }, (_, index) => ({
    Action: "Allow" as const,
    Source: `10.0.${index >> 8}.${index & 255}`,
  }));
  const { read, prepare } = createRuleReader();
  const families = { family6: false };
  const countYields = (work: Generator<void, unknown>): number => {
    let yields = 0;
    while (work.next().done !== true) yields += 1;
    return yields;
  };
  assert.ok(countYields(prepare(Rules, families)) >= Rules.length);
  assert.equal(read(Rules, families), read(Rules, families));
  assert.equal(countYields(prepare(Rules, families)), 0, "they are parsed once");
  const firewall = normalise({ Rules }, families, read);
  assert.ok(countYields(convertFirewall(firewall)) >= Rules.length);
  const most = countYields(renderFirewall(toRouterFirewall(firewall), ["10.64.0.8/29"]));
  assert.ok(most >= Rules.length, `${most} yields`);
  assert.ok(countYields(firewallToText(firewall)) >= Rules.length / 20);
});
