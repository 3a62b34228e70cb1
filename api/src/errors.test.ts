import assert from "node:assert/strict";
import { test } from "node:test";
import { describeProblem, type ErrorCode, errorCodes, fieldCodes, legacyPath } from "./errors.ts";

const requestId = "01JD4QK7Z8S3";

test("the error object is, letter by letter, that of the specification", () => {
  assert.equal(
    JSON.stringify(describeProblem("domain_not_found", "There is no domain 999 in this project.", requestId)),
    '{"Message":"Domain not found","type":"/docs#domain_not_found","title":"Domain not found","status":404,"detail":"There is no domain 999 in this project.","instance":"urn:brume:request:01JD4QK7Z8S3","code":"domain_not_found","errors":[]}',
  );
  assert.equal(
    JSON.stringify(
      describeProblem("validation_failed", "2 fields are not valid.", requestId, [
        { pointer: "/CPU", code: "out_of_range", detail: "CPU must be between 1 and 64." },
        {
          pointer: "/Rules/0/Source",
          code: "format_invalid",
          detail: "Source must be an address, a block, a range or a word.",
        },
      ]),
    ),
    '{"Message":"The request is invalid.","ModelState":{"CPU":["CPU must be between 1 and 64."],"Rules[0].Source":["Source must be an address, a block, a range or a word."]},"type":"/docs#validation_failed","title":"The request is invalid.","status":400,"detail":"2 fields are not valid.","instance":"urn:brume:request:01JD4QK7Z8S3","code":"validation_failed","errors":[{"pointer":"/CPU","code":"out_of_range","detail":"CPU must be between 1 and 64."},{"pointer":"/Rules/0/Source","code":"format_invalid","detail":"Source must be an address, a block, a range or a word."}]}',
  );
  const exists = "Подобная запись для данного домена уже существует";
  assert.equal(
    JSON.stringify(
      describeProblem("record_exists", "Record 14 of domain 3 has the same type, name and data.", requestId, [
        { pointer: "", code: "record_exists", detail: exists },
      ]),
    ),
    `{"Message":"The record already exists.","ModelState":{"":["${exists}"]},"type":"/docs#record_exists","title":"The record already exists.","status":400,"detail":"Record 14 of domain 3 has the same type, name and data.","instance":"urn:brume:request:01JD4QK7Z8S3","code":"record_exists","errors":[{"pointer":"","code":"record_exists","detail":"${exists}"}]}`,
  );
  assert.equal(
    JSON.stringify(describeProblem("token_invalid", "The token is not known.", requestId)),
    '{"Message":"Authorization has been denied for this request.","type":"/docs#token_invalid","title":"Authorization has been denied for this request.","status":401,"detail":"The token is not known.","instance":"urn:brume:request:01JD4QK7Z8S3","code":"token_invalid","errors":[]}',
  );
});

test("sentences about one field are grouped, for any name of the field", () => {
  const { ModelState } = describeProblem("validation_failed", "", requestId, [
    { pointer: "/Name", code: "too_long", detail: "a" },
    { pointer: "/constructor", code: "unknown_field", detail: "b" },
    { pointer: "/Name", code: "format_invalid", detail: "c" },
  ]);
  assert.deepEqual(ModelState && Object.entries(ModelState), [
    ["Name", ["a", "c"]],
    ["constructor", ["b"]],
  ]);
});

test("a field called __proto__ has its sentence too", () => {
  const hostile = describeProblem("validation_failed", "", requestId, [
    { pointer: "/__proto__", code: "unknown_field", detail: "d" },
  ]);
  assert.match(JSON.stringify(hostile), /"ModelState":\{"__proto__":\["d"\]\}/);
});

test("pointers become paths of the older form", () => {
  const paths: [string, string][] = [
    ["", ""],
    ["/Name", "Name"],
    ["/Rules/0/Source", "Rules[0].Source"],
    ["/Changes/17", "Changes[17]"],
    ["/Labels/a~1b~0c", "Labels.a/b~c"],
    ["/Labels/~01", "Labels.~1"],
    ["?limit", "limit"],
  ];
  for (const [pointer, path] of paths) assert.equal(legacyPath(pointer), path);
});

test("codes are words, statuses are those of errors, and no field code is also a response code", () => {
  for (const code of Object.keys(errorCodes) as ErrorCode[]) {
    assert.match(code, /^[a-z]+(?:_[a-z]+)*$/);
    assert.ok(errorCodes[code].status >= 400 && errorCodes[code].status < 600, code);
    assert.ok(errorCodes[code].message.length > 0, code);
  }
  assert.deepEqual(
    fieldCodes.filter((code) => code in errorCodes),
    [],
  );
});
