import assert from "node:assert/strict";
import { test } from "node:test";
import { reasonOf } from "./reason.ts";

test("a reason is one line that ends a sentence, also of an error without a text", () => {
  assert.equal(reasonOf(new Error(" the disk is full. ")), "the disk is full");
  assert.equal(
    reasonOf(new Error("no space left on device\n    at run (exec.ts:3)")),
    "the host failed: the disk of the host is full (the log of the service has more)",
  );
  assert.equal(reasonOf("the disk is full"), "the disk is full");
  assert.equal(reasonOf(new Error("x".repeat(400))).length, 300);
  assert.equal(
    reasonOf(new Error("ENOENT: no such file or directory, open '/tmp/x'")),
    "the host failed: something that it needs is missing on the host (the log of the service has more)",
  );
  for (const error of [undefined, null, {}, 7, "", new Error(""), new Error(" \n")])
    assert.equal(reasonOf(error), "only the log of the service has the cause");
});
