/** The text of a response is that of `JSON.stringify`, and each object of it is printed once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runInTurns } from "../base/turn.ts";
import { createPrint, showPrinted } from "./show.ts";

const rules = Array.from({ length: 1000 }, (_, index) => ({ Name: `rule "${index}"`, Hits: null }));

test("a response that was printed in slices has the same text", async () => {
  const answer = { Rules: rules };
  assert.equal((await showPrinted({ answer }, createPrint())).body, JSON.stringify(answer));
});

test("a part that was printed before keeps its text", async () => {
  const part = { Rules: rules };
  const print = createPrint();
  const text = await runInTurns(print.inTurns(part));
  assert.equal(text, JSON.stringify(part));
  const { stringify } = JSON;
  const printed: unknown[] = [];
  JSON.stringify = (value: unknown, ...others: []) => {
    printed.push(value);
    return stringify(value, ...others);
  };
  let body: string;
  try {
    ({ body } = await showPrinted({ answer: { Name: "one", Firewall: part } }, print));
  } finally {
    JSON.stringify = stringify;
  }
  assert.equal(body, JSON.stringify({ Name: "one", Firewall: part }));
  assert.deepEqual(
    printed.filter((value) => typeof value === "object"),
    [],
    "the part is not printed again",
  );
});
