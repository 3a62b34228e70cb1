import assert from "node:assert/strict";
import { test } from "node:test";
import { changeLabels, labelText, readKeys, readLabels } from "./label.ts";

test("labels are read as they are written, and a key may have no value", () => {
  assert.deepEqual(readLabels(" stage = test,team=a=b, ,spare "), { stage: "test", team: "a=b", spare: "" });
  assert.equal(labelText(readLabels("a=1, b")), "a=1, b");
  assert.deepEqual(readKeys("a, b=2"), ["a", "b"]);
  assert.deepEqual(readLabels(""), {});
});

test("a change sets pairs, removes keys and keeps the others", () => {
  const change = { add: { stage: "test" }, remove: ["old"] };
  assert.deepEqual(changeLabels({ stage: "production", old: "1", team: "web" }, change), {
    stage: "test",
    team: "web",
  });
});
