import assert from "node:assert/strict";
import { test } from "node:test";
import { addRates } from "./rates.ts";

test("a rate is the difference of two reads per second; a counter may start again", () => {
  const first = addRates(
    new Map(),
    new Map([["a", 10]]),
    new Map([
      ["a", 30],
      ["b", 5],
    ]),
    10,
  );
  assert.deepEqual(
    [...first],
    [
      ["a", [2]],
      ["b", [0]],
    ],
  );
  const second = addRates(
    first,
    new Map([
      ["a", 30],
      ["b", 5],
    ]),
    new Map([["a", 4]]),
    2,
  );
  assert.deepEqual([...second], [["a", [2, 2]]]);
});

test("only the last 60 rates are kept", () => {
  let rates = addRates(new Map(), new Map(), new Map([["a", 0]]), 1);
  for (let count = 1; count < 100; count++)
    rates = addRates(rates, new Map([["a", count - 1]]), new Map([["a", count]]), 1);
  assert.equal(rates.get("a")?.length, 60);
});
