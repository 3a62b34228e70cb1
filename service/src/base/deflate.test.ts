import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { deflateInTurns, inflateText } from "./deflate.ts";

/** Returns the number of yields and the text. */
function run(texts: readonly string[]): { readonly yields: number; readonly text: string } {
  const work = deflateInTurns(texts);
  for (let yields = 0; ; yields++) {
    const { done, value } = work.next();
    if (done === true) return { yields, text: value };
  }
}

test("texts are compressed with yields, and are the same afterwards", () => {
  const record = '{"op":"Create","after":{"owner":"www","value":"192.0.2.1"}},';
  for (const texts of [
    [],
    [""],
    ["a", "", "bc"],
    [record.repeat(50_000)],
    Array.from({ length: 50_000 }, () => record),
  ]) {
    const { yields, text } = run(texts);
    const all = texts.join("");
    assert.ok(yields >= Math.floor(all.length / 65_536), `${yields} yields`);
    assert.ok(text.length < 100 + all.length / 20);
    assert.equal(inflateText(text), all);
  }
});

test("no character is cut, at any place between two parts", () => {
  for (const shift of [0, 1, 2, 3]) {
    const texts = ["x".repeat(shift), "𝄞é€".repeat(60_000)];
    assert.equal(inflateText(run(texts).text), texts.join(""));
  }
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "grapheme" })), (texts) => {
      assert.equal(inflateText(run(texts).text), texts.join(""));
    }),
  );
});
