/**
 * The published schema of each request is exact (docs/spec.md#strict-mode): strict mode accepts a body exactly if the schema does. Random
 * bodies are created from the schemas and from the examples, and then changed at random places.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { contract, type OperationName } from "@brume/api/contract.ts";
import { examples } from "@brume/api/examples.ts";
import { describeApi } from "@brume/api/openapi.ts";
import { isChange, type Operation } from "@brume/api/operation.ts";
import { decimalRange } from "@brume/api/requestschema.ts";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import fc from "fast-check";
import { decodeBody } from "../../service/src/http/read/body.ts";
import { readFields } from "../../service/src/http/read/fields.ts";
import { readQuery } from "../../service/src/http/read/query.ts";
import { ownKeywords } from "../support/contractcheck.ts";
import { runsOf } from "../support/random.ts";

type Json = Readonly<Record<string, unknown>>;
const api = describeApi(contract, { version: "0.0.0" });
const schemas = JSON.parse(JSON.stringify(api.components.schemas)) as Readonly<Record<string, Json>>;
const ajv = new Ajv2020({ allErrors: false, strict: true, allowUnionTypes: true, strictRequired: false });
formats.default(ajv);
ajv.addVocabulary([...ownKeywords, "components", "example"]);
ajv.addSchema(JSON.parse(JSON.stringify({ $id: "api", components: { schemas } }).replaceAll('"#/', '"api#/')) as Json);

const operations = (Object.entries(contract) as [OperationName, Operation][]).flatMap(([name, operation]) => {
  const { body } = operation;
  if (body === undefined) return [];
  const { title } = body as unknown as { title?: string };
  assert.ok(title, `the body of ${name} has no title`);
  const validate = ajv.compile({ $ref: `api#/components/schemas/${title}` });
  return [{ name, body, validate, schema: { $ref: `#/components/schemas/${title}` } }];
});

/** Texts of many forms, valid and invalid. Each is in Unicode form NFC: the schema cannot express another form. */
const texts = [
  "",
  " ",
  "a",
  "web-1",
  "Web_1.x",
  "a b",
  " a",
  "a ",
  "a\u0000b",
  "a<b>",
  "a\nb",
  "й",
  "😀",
  "0",
  "5",
  "05",
  "-1",
  "+1",
  "255",
  "65535",
  "65536",
  "1e2",
  "10.0.0.5",
  "2001:db8::1",
  "example.com",
  "example.com.",
  "@",
  "any",
  "true",
  "null",
  "tcp",
  "10.0.0.0/24",
  "https://example.com/x",
  "2026-11-20T09:15:00Z",
  "2026-11-20t09:15:00.123+01:00",
  "2026-02-31T09:15:00Z",
  "2026-11-20T09:15:00",
  "2026-11-20",
  "0123456789abcdefABCDEF0123456789abcdefABCDEF0123456789abcdefABCDEF".slice(0, 64),
  ...[7, 8, 15, 16, 63, 64, 65, 128, 129, 253, 254, 255, 256, 261, 320, 1024, 1025, 2048, 2049].map((n) =>
    "x".repeat(n),
  ),
  "😀".repeat(64),
];
const numbers = [
  -1,
  0,
  0.5,
  1,
  2,
  5,
  7,
  9,
  10,
  14,
  28,
  63,
  64,
  65,
  128,
  512,
  513,
  4096,
  65_535,
  65_536,
  2 ** 31 - 1,
  2 ** 31,
];
const text = fc.oneof(
  fc.constantFrom(...texts),
  fc.string({ unit: "grapheme", maxLength: 70 }).map((one) => one.normalize("NFC")),
);
const leaf: fc.Arbitrary<unknown> = fc.oneof(
  text,
  fc.constantFrom(...numbers, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER),
  fc.boolean(),
  fc.constant(null),
  fc.constantFrom<unknown>(
    [],
    {},
    [null],
    [""],
    ["a"],
    [1],
    [{}],
    { a: "b" },
    { a: null },
    { "": "x" },
    { a: " b" },
    { a: 1 },
  ),
);

/** Creates values for a schema. Most are valid. */
function valueOf(given: unknown): fc.Arbitrary<unknown> {
  const schema = (given ?? {}) as Json;
  const { $ref, oneOf, anyOf, type, properties, items } = schema as {
    $ref?: string;
    oneOf?: Json[];
    anyOf?: Json[];
    type?: string | string[];
    properties?: Readonly<Record<string, Json>>;
    items?: Json;
  };
  if ($ref !== undefined) return valueOf(schemas[$ref.slice($ref.lastIndexOf("/") + 1)]);
  const options = oneOf ?? (anyOf?.some((one) => "type" in one || "$ref" in one) ? anyOf : undefined);
  if (options !== undefined) return fc.oneof(...options.map(valueOf));
  if ("const" in schema) return fc.constant(schema["const"]);
  if (Array.isArray(schema["enum"])) return fc.constantFrom(...(schema["enum"] as unknown[]));
  const kinds = Array.isArray(type) ? type : [type];
  return fc.oneof(
    ...kinds.map((kind): fc.Arbitrary<unknown> => {
      if (kind === "null") return fc.constant(null);
      if (kind === "boolean") return fc.boolean();
      if (kind === "integer") {
        const { minimum = 0, maximum = 9, multipleOf = 1 } = schema as Record<string, number>;
        const within = { min: Math.ceil(minimum / multipleOf), max: Math.floor(maximum / multipleOf) };
        return fc.integer(within).map((one) => one * multipleOf);
      }
      if (kind === "array") {
        const { minItems = 0, maxItems = 3 } = schema as Record<string, number>;
        return fc.array(valueOf(items), { minLength: minItems, maxLength: Math.min(maxItems, minItems + 2) });
      }
      if (kind === "object" && properties !== undefined) {
        const required = (schema["required"] ?? []) as string[];
        const known = Object.fromEntries(Object.entries(properties).map(([key, part]) => [key, valueOf(part)]));
        return fc.record(known, { requiredKeys: required, noNullPrototype: true });
      }
      if (kind === "object")
        return fc.dictionary(fc.constantFrom("a", "b.c", "x/y", "A_1"), fc.constantFrom("", "b", "C-1", null), {
          maxKeys: 3,
          noNullPrototype: true,
        });
      if (kind === "string") {
        const {
          pattern = "",
          minLength = 0,
          maxLength = Number.POSITIVE_INFINITY,
        } = schema as {
          pattern?: string;
          minLength?: number;
          maxLength?: number;
        };
        const matching = texts.filter((one) => {
          const { length } = Array.from(one);
          return new RegExp(pattern, "u").test(one) && length >= minLength && length <= maxLength;
        });
        return matching.length === 0 ? fc.constant("x") : fc.constantFrom(...matching);
      }
      return leaf;
    }),
  );
}

type Step = string | number;
/** Returns all places inside a value. */
function* placesOf(value: unknown, path: readonly Step[] = []): Generator<readonly Step[]> {
  if (typeof value !== "object" || value === null) return;
  for (const key of Object.keys(value)) {
    const place = [...path, Array.isArray(value) ? Number(key) : key];
    yield place;
    yield* placesOf((value as Json)[key], place);
  }
}

const names = operations.flatMap(({ body }) => Object.keys(body.properties));
interface Mutation {
  readonly kind: "replace" | "remove" | "add" | "rename";
  readonly at: number;
  readonly name: string;
  readonly value: unknown;
}
const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom("replace", "replace", "remove", "add", "rename"),
  at: fc.nat(),
  name: fc.constantFrom(...names, "Extra", "ID", "State"),
  value: leaf,
});

/** Changes one place of a body: another value, no value, a further field, or the name of the field in other letter case. */
function mutate(body: unknown, { kind, at, name, value }: Mutation): unknown {
  const copy = structuredClone(body) as Record<string, unknown>;
  const places = [...placesOf(copy)];
  const place = places[at % (places.length + 1)];
  if (place === undefined) return { ...copy, [name]: value };
  let holder = copy;
  for (const step of place.slice(0, -1)) holder = holder[step] as Record<string, unknown>;
  const key = place.at(-1) as string;
  if (kind === "replace" || Array.isArray(holder)) holder[key] = value;
  else if (kind === "add") holder[name] = value;
  else {
    if (kind === "rename") holder[key.toLowerCase()] = holder[key];
    delete holder[key];
  }
  return copy;
}

function readStrictly(body: Operation["body"], value: unknown) {
  assert.ok(body);
  const raw = decodeBody(new TextEncoder().encode(JSON.stringify(value)), { contentType: "application/json" }, true);
  return readFields(body, raw, { strict: true }).errors;
}

test("strict mode accepts exactly the bodies that the schema accepts", () => {
  let accepted = 0;
  let total = 0;
  for (const { name, body, validate, schema } of operations) {
    const example = examples[name]?.request;
    const start = example === undefined ? valueOf(schema) : fc.oneof(valueOf(schema), fc.constant(example));
    const bodies = fc.tuple(start, fc.array(mutation, { maxLength: 2 })).map(([one, all]) => all.reduce(mutate, one));
    fc.assert(
      fc.property(bodies, (value) => {
        const errors = readStrictly(body, value);
        const isValid = validate(value);
        total++;
        if (isValid) accepted++;
        const found = isValid ? "accepts" : `rejects (${ajv.errorsText(validate.errors)})`;
        assert.equal(
          errors.length === 0,
          isValid,
          `the schema ${found} what strict mode reports as ${JSON.stringify(errors)}`,
        );
        for (const { pointer } of errors) assert.match(pointer, /^\//);
      }),
      { numRuns: runsOf(2000, 100) },
    );
  }
  assert.ok(accepted > total / 10 && accepted < (total * 9) / 10, `${accepted} of ${total} are valid`);
});

/** Query parameters whose schema describes all texts: numbers, yes or no, and single words. Lists of words and selectors are texts with a grammar. */
const parameters = Object.values(api.paths).flatMap((methods) =>
  Object.values(methods).flatMap(({ operationId, parameters: all = [] }) =>
    all.flatMap((one) => {
      const { $ref = "" } = one as { $ref?: string };
      const found = $ref === "" ? one : api.components.parameters[$ref.slice($ref.lastIndexOf("/") + 1)];
      const { name, in: place, schema } = found as { name: string; in: string; schema: Json };
      const isExact = ["integer", "boolean"].includes(String(schema["type"])) || "enum" in schema;
      return place === "query" && isExact ? [{ operation: operationId as OperationName, name, schema }] : [];
    }),
  ),
);

test("strict mode accepts exactly the query parameters that the schema accepts", () => {
  assert.ok(parameters.length > 50);
  const word = fc.constantFrom(
    "true",
    "false",
    "True",
    "1",
    "0",
    "yes",
    "",
    "abc",
    "1.0",
    "1e2",
    "+1",
    "-1",
    "01",
    " 1",
    "0x1",
    "null",
  );
  for (const { operation, name, schema } of parameters) {
    const op: Operation = contract[operation];
    const known = Array.isArray(schema["enum"])
      ? fc.constantFrom(...(schema["enum"] as string[]))
      : fc.integer({ min: -5, max: 2 ** 31 }).map(String);
    const validateValue = ajv.compile(JSON.parse(JSON.stringify(schema)) as Json);
    fc.assert(
      fc.property(fc.oneof(known, word, fc.constantFrom(...numbers).map(String)), (given) => {
        // An empty parameter is an absent one, except `dryRun`.
        if (given.trim() === "") return;
        const isNumber = schema["type"] === "integer" && /^(?:0|-?[1-9]\d*)$/.test(given);
        const isBoolean = schema["type"] === "boolean" && /^(?:true|false)$/.test(given);
        const value: unknown = isNumber ? Number(given) : isBoolean ? given === "true" : given;
        const change = isChange(op);
        const { errors } = readQuery(op.query, `${name}=${encodeURIComponent(given)}`, { strict: true, change });
        assert.equal(
          errors.length === 0,
          validateValue(value),
          `${operation} ${name}=${given}: ${JSON.stringify(errors)}`,
        );
      }),
      { numRuns: runsOf(300, 30) },
    );
  }
});

test("every example of a request is valid in strict mode", () => {
  for (const { name, body, validate } of operations) {
    const example = examples[name]?.request;
    if (example === undefined) continue;
    assert.ok(validate(example), `${name}: ${ajv.errorsText(validate.errors)}`);
    assert.deepEqual(readStrictly(body, example), [], name);
  }
});

test("a pattern matches the decimal numbers of a range, and no others", () => {
  const bounds = fc.tuple(fc.nat(70_000), fc.nat(70_000)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
  fc.assert(
    fc.property(bounds, fc.nat(80_000), ([low, high], value) => {
      const pattern = new RegExp(`^(?:${decimalRange(low, high)})$`, "u");
      for (const one of [value, low, high, low - 1, high + 1])
        assert.equal(pattern.test(String(one)), one >= low && one <= high, `${one} in ${low} to ${high}`);
      assert.ok(!pattern.test(`0${low}`));
    }),
  );
});
