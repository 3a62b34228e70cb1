import assert from "node:assert/strict";
import { test } from "node:test";
import { parseZone } from "./parse.ts";

const origin = "example.com";

test("marks in comments: labels, and the NS set at the top", () => {
  const text = [
    "@ NS ns.old.net.",
    "@ NS Ns.own.net. ; brume: own team=dns",
    "a A 10.0.0.1 ; brume: env=prod app/x= ",
    "b A 10.0.0.1 ; any other comment env=prod",
    "c ( ; brume: no=mark",
    "  A 10.0.0.1 ) ;brume: env=test",
  ].join("\n");
  const { records, labels, definesTop } = parseZone(text, origin);
  assert.deepEqual(
    records.map((one) => [one.owner, one.value, labels.get(one) ?? null]),
    [
      ["@", "Ns.own.net", '{"team":"dns"}'],
      ["a", "10.0.0.1", '{"env":"prod","app/x":""}'],
      ["b", "10.0.0.1", null],
      ["c", "10.0.0.1", '{"env":"test"}'],
    ],
  );
  assert.equal(definesTop, true);
  assert.equal(parseZone("@ NS ns.old.net.", origin).definesTop, false);
  assert.deepEqual(parseZone("@ NS ns.old.net. ; brume: automatic", origin).records, []);
  assert.throws(() => parseZone("a A 10.0.0.1 ; brume: env prod", origin), {
    errors: [
      {
        pointer: "/ZoneFile",
        code: "zone_file_invalid",
        detail: 'line 1: the comment must contain labels such as env=prod, not "env".',
      },
    ],
  });
});

test("the mark of the SOA contains the labels of the domain", () => {
  const soa = "@ SOA ns. hostmaster. ( 7 3600 600 1209600 60 )";
  const labelsOf = (comment: string) => parseZone(`${soa}${comment}\n`, origin).domainLabels;
  assert.equal(labelsOf(" ; brume: team=dns env=prod"), '{"team":"dns","env":"prod"}');
  assert.equal(labelsOf(" ; serial"), null);
  assert.throws(() => labelsOf(" ; brume: team"), { code: "zone_file_invalid" });
});
