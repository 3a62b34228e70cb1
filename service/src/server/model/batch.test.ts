import assert from "node:assert/strict";
import { test } from "node:test";
import type { CreateBatchInput } from "@brume/api/batch.ts";
import { imageRow, references } from "../../../../test/support/rows.ts";
import { ApiError } from "../../base/error.ts";
import { checkBatch, membersOf, planEach, planTogether } from "./batch.ts";

type Body = Partial<CreateBatchInput>;
const namesOf = (body: Body) => membersOf(body).map(({ spec }) => spec.Name);
const entriesOf = (body: Body) => checkBatch(body).map(({ pointer, code }) => `${pointer} ${code}`);

test("exactly one of Count, Names and Servers is required", () => {
  const forms: Body[] = [{}, { Name: "a" }, { Count: 1, Names: ["a"] }, { Names: ["a"], Servers: [{}] }];
  for (const body of forms) {
    assert.throws(() => membersOf(body), { code: "batch_form_invalid" });
    // Reported only if there are no other errors.
    assert.deepEqual(checkBatch(body), []);
  }
});

test("{n} in names is replaced by the number; a name without it gets the number as a suffix", () => {
  assert.deepEqual(namesOf({ Name: "node-{n}", Count: 3 }), ["node-1", "node-2", "node-3"]);
  assert.deepEqual(namesOf({ Name: "node", Count: 2 }), ["node-1", "node-2"]);
  assert.deepEqual(namesOf({ Name: "{n}-{n}", Count: 1 }), ["1-1"]);
  const hosts = membersOf({ Name: "a", HostName: "h{n}", Count: 2 }).map(({ spec }) => spec.HostName);
  assert.deepEqual(hosts, ["h1", "h2"]);
});

test("Names are used unchanged; all other fields are common", () => {
  const [first, second] = membersOf({ Names: ["a{n}", "b"], Name: "c", CPU: 2, Policy: "BestEffort" });
  assert.deepEqual(
    [first?.spec, second?.spec],
    [
      { Name: "a{n}", CPU: 2 },
      { Name: "b", CPU: 2 },
    ],
  );
  assert.deepEqual([second?.at("Name"), second?.at("CPU")], ["/Names/1", "/CPU"]);
});

test("fields in the body are defaults of Servers; labels are merged", () => {
  const body: Body = {
    Name: "x",
    CPU: 2,
    Labels: { a: "1", b: "1" },
    Servers: [{ RAM: 256 }, { Name: "y", CPU: 4, Labels: { b: "2" } }],
  };
  const [first, second] = membersOf(body);
  assert.deepEqual(first?.spec, { Name: "x", CPU: 2, RAM: 256, Labels: { a: "1", b: "1" } });
  assert.deepEqual(second?.spec, { Name: "y", CPU: 4, Labels: { a: "1", b: "2" } });
  assert.deepEqual(
    [first?.at("CPU"), second?.at("CPU"), first?.at("HDD")],
    ["/CPU", "/Servers/1/CPU", "/Servers/0/HDD"],
  );
});

test("an error names its element; an error in a common field is reported once", () => {
  assert.deepEqual(entriesOf({ Count: 100 }), ["/Name field_required"]);
  assert.deepEqual(entriesOf({ Count: 2, Name: "a".repeat(64) }), ["/Name too_long"]);
  assert.deepEqual(entriesOf({ Count: 2, Name: "a", HostName: "A{n}" }), ["/HostName format_invalid"]);
  assert.deepEqual(entriesOf({ Servers: [{ Name: "a" }, { NetworkIP: "x" }] }), [
    "/Servers/1/Name field_required",
    "/Servers/1/NetworkIP format_invalid",
  ]);
  assert.deepEqual(entriesOf({ Names: ["a", "b"], HostName: "-" }), ["/HostName format_invalid"]);
  const labels = (from: number) =>
    Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`k${from + index}`, ""]));
  assert.deepEqual(entriesOf({ Name: "a", Labels: labels(0), Servers: [{ Labels: labels(20) }] }), [
    "/Servers/0/Labels too_long",
  ]);
  assert.deepEqual(entriesOf({ Name: "node-{n}", HostName: "h{n}", Count: 100 }), []);
});

const body: Body = {
  Servers: [
    { Name: "a" },
    { Name: "b", ImageID: "none", SshKeys: [99] },
    { Name: "c", NetworkID: 99 },
    { Name: "d", ImageID: "9" },
  ],
};
const images = { images: [imageRow(9, { state: "Failed" })] };

test("planned together, all errors of fields are reported at once and no server is planned", () => {
  const planned = () => planTogether(membersOf(body), references(images));
  assert.throws(planned, (error) => {
    assert.ok(error instanceof ApiError);
    assert.equal(error.code, "validation_failed");
    const pointers = error.errors.map(({ pointer }) => pointer);
    assert.deepEqual(pointers, ["/Servers/1/ImageID", "/Servers/1/SshKeys/0", "/Servers/2/NetworkID"]);
    return true;
  });
  const last = membersOf({ Servers: [{ Name: "a" }, { Name: "d", ImageID: "9" }] });
  assert.throws(() => planTogether(last, references(images)), { code: "image_not_ready" });
  const names = planTogether(membersOf({ Name: "n", Count: 2 }), references()).map(({ name }) => name);
  assert.deepEqual(names, ["n-1", "n-2"]);
});

test("planned independently, the valid servers are planned", () => {
  const planned = planEach(membersOf(body), references(images)).map(({ index, spec, error }) => [
    index,
    spec?.name ?? error?.code,
  ]);
  assert.deepEqual(planned, [
    [0, "a"],
    [1, "validation_failed"],
    [2, "validation_failed"],
    [3, "image_not_ready"],
  ]);
});
