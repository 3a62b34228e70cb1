import assert from "node:assert/strict";
import { test } from "node:test";
import { withoutField } from "./detail.ts";

test("a detail is shown at its label without the name of the field in the API", () => {
  const rows = [
    ["/IP", "IP must be an address.", "must be an address."],
    ["/Changes/0/IP", "IP: обязательное поле.", "обязательное поле."],
    ["/Types/1", "Types must be A or B.", "must be A or B."],
    ["/Name", "Names must be unique.", "Names must be unique."],
    ["/Name", "Domain 1 has this name.", "Domain 1 has this name."],
    ["", "A name is missing.", "A name is missing."],
  ] as const;
  for (const [pointer, detail, shown] of rows) assert.equal(withoutField(pointer, detail), shown);
});
