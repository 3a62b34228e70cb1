/** Long values are printed in slices: the text is that of `JSON.stringify`, with yields between elements of long lists. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { printInTurns } from "./printjson.ts";

/** Returns the number of yields and the text. */
function run(value: unknown): { readonly yields: number; readonly text: string | undefined } {
  const work = printInTurns(value);
  for (let yields = 0; ; yields++) {
    const { done, value: text } = work.next();
    if (done === true) return { yields, text };
  }
}

const rules = Array.from({ length: 1000 }, (_, index) => ({ Name: `rule "${index}"`, Hits: null }));

test("printing yields after some elements of a long list, also inside of objects", () => {
  for (const value of [rules, { Firewall: { Enabled: true, Rules: rules }, Error: undefined }]) {
    const { yields, text } = run(value);
    assert.ok(yields >= rules.length / 20, `${yields} yields`);
    assert.equal(text, JSON.stringify(value));
  }
});

test("any value is printed as `JSON.stringify` prints it", () => {
  const long = fc.array(fc.jsonValue(), { minLength: 257, maxLength: 300 });
  const value = fc.oneof(fc.jsonValue(), long, fc.dictionary(fc.string(), fc.oneof(long, fc.constant(undefined))));
  fc.assert(
    fc.property(value, (each) => {
      assert.equal(run(each).text, JSON.stringify(each));
    }),
    { numRuns: 50 },
  );
});
