import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../base/error.ts";
import { readPosition } from "./content.ts";

const position = (contentRange?: string, contentLength?: string) => readPosition({ contentRange, contentLength });

test("a range names the position of the content, and none the whole file", () => {
  assert.deepEqual(position("bytes 0-0/1"), { from: 0, to: 1, whole: 1 });
  assert.deepEqual(position(" Bytes 10-19/*", "10"), { from: 10, to: 20, whole: null });
  assert.deepEqual(position(undefined, "7"), { from: 0, to: 7, whole: 7 });
  assert.deepEqual(position(), { from: 0, to: null, whole: null });
});

test("a range that contradicts itself or the length is rejected", () => {
  for (const [range, length] of [
    ["bytes 5-4/10"],
    ["bytes 0-10/10"],
    ["bytes 0-4/10", "4"],
    ["bytes */10"],
    ["bytes 0-/10"],
    ["bytes -1-4/10"],
    ["bytes 0-4"],
    ["bytes 0-4/10, bytes 5-9/10"],
    [`bytes 0-${"9".repeat(16)}/*`],
    [""],
  ] as const)
    assert.throws(
      () => position(range, length),
      (error) => error instanceof ApiError && error.code === "content_range_invalid",
      range,
    );
});
