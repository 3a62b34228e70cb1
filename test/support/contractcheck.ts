/**
 * Checks responses against the published OpenAPI document (docs/spec.md#responses-match-the-contract). It is stricter than the document,
 * which allows new fields: keys must be known and in the order of the schema, dates must have the exact form, and ids are 0 only in a dry
 * run.
 */
import assert from "node:assert/strict";
import type { OpenApi, OperationObject } from "@brume/api/components.ts";
import { contract, type OperationName } from "@brume/api/contract.ts";
import { errorCodes, type Problem } from "@brume/api/errors.ts";
import { describeApi } from "@brume/api/openapi.ts";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";

type Json = Record<string, unknown>;

/** Schema extensions of Brume. They describe how a request is parsed and do not affect validity. */
export const ownKeywords = [
  "x-also",
  "x-either",
  "x-forms",
  "x-id",
  "x-labels",
  "x-pattern-description",
  "x-requires",
  "x-secret",
  "x-shown",
  "x-skip",
  "x-ignored",
  "x-verbatim",
  "x-words",
  "x-prefix",
  "x-word",
];

/** The form of every date: RFC 3339, UTC, milliseconds. */
const responseDate = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the schemas with `additionalProperties: false` in every object. */
function close(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(close);
  if (!isJson(value)) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([key, part]) => [key, close(part)]));
  const isOpen = value["type"] === "object" && isJson(value["properties"]) && !("additionalProperties" in value);
  return isOpen ? { ...copy, additionalProperties: false } : copy;
}

const api: OpenApi = describeApi(contract, { version: "0.0.0" });
const schemas = close(api.components.schemas) as Record<string, Json>;
// `openapi.test.ts` checks that the schemas are valid. Each process compiles most schemas and uses each a few times: without optimisation, and
// with a schema that several refer to compiled once, that takes half of the time.
const ajv = new Ajv2020({
  allErrors: true,
  verbose: true,
  validateSchema: false,
  inlineRefs: false,
  code: { optimize: false },
});
ajv.addVocabulary([...ownKeywords, "components"]);
ajv.addFormat("date-time", responseDate);
ajv.addFormat("uri", /^[a-z]+:\S+$/);
ajv.addFormat("uri-reference", /^\S*$/);
ajv.addSchema({ $id: "api", components: { schemas } });

const operations = new Map<string, OperationObject>(
  Object.values(api.paths).flatMap((methods) => Object.values(methods).map((one) => [one.operationId, one] as const)),
);

const refer = (schema: Json): Json =>
  JSON.parse(JSON.stringify(close(schema)).replaceAll('"$ref":"#/', '"$ref":"api#/')) as Json;

const compiled = new Map<string, { validate: ValidateFunction; schema: Json }>();
function compile(name: string, schema: Json) {
  const known = compiled.get(name);
  if (known) return known;
  const made = { validate: ajv.compile(refer(schema)), schema };
  compiled.set(name, made);
  return made;
}

const resolve = (schema: Json): Json => {
  const reference = schema["$ref"];
  return typeof reference === "string" ? (schemas[reference.slice(reference.lastIndexOf("/") + 1)] ?? {}) : schema;
};

/** Yields errors that a schema cannot express: the order of keys, and ids of 0. */
function* walk(given: Json, value: unknown, pointer: string, dryRun: boolean): Generator<string> {
  const schema = resolve(given);
  if (Array.isArray(value)) {
    const items = schema["items"];
    if (isJson(items))
      for (const [index, item] of value.entries()) yield* walk(items, item, `${pointer}/${index}`, dryRun);
  }
  if (!isJson(value)) return;
  for (const option of Array.isArray(schema["anyOf"]) ? (schema["anyOf"] as Json[]) : [])
    yield* walk(option, value, pointer, dryRun);
  const properties = schema["properties"];
  if (!isJson(properties)) return;
  const present = Object.keys(value).join(", ");
  const wanted = Object.keys(properties)
    .filter((key) => key in value)
    .join(", ");
  if (present !== wanted) yield `${pointer} has the keys ${present}, expected ${wanted}`;
  for (const [key, part] of Object.entries(value)) {
    const property = properties[key];
    if (!dryRun && part === 0 && /(^|[a-z])I[Dd]$/.test(key)) yield `${pointer}/${key} is 0 outside a dry run`;
    if (isJson(property)) yield* walk(property, part, `${pointer}/${key}`, dryRun);
  }
}

function check(name: string, schema: Json, json: unknown, dryRun: boolean): void {
  const { validate } = compile(name, schema);
  const isValid = validate(json);
  const wrong = isValid
    ? [...walk(schema, json, "", dryRun)]
    : (validate.errors ?? []).map(
        (one) => `${one.instancePath} ${one.message}, got ${JSON.stringify(one.data)?.slice(0, 200)}`,
      );
  assert.deepEqual(wrong, [], `${name} does not match the contract`);
}

function find(name: OperationName): OperationObject {
  const operation = operations.get(name);
  assert.ok(operation, `the document has no operation ${name}`);
  return operation;
}

/** Asserts that the parsed body of a success matches its operation. Pass `undefined` or `""` for an empty body. */
export function checkResponse(name: OperationName, json: unknown, options: { readonly dryRun?: boolean } = {}): void {
  const response = find(name).responses["200"];
  assert.ok(response && !("$ref" in response));
  const [media] = Object.values(response.content ?? {});
  if (!media)
    assert.ok(json === undefined || json === "", `${name} must have an empty body, got ${JSON.stringify(json)}`);
  else check(name, media.schema as Json, json, options.dryRun ?? false);
  if (name === "listEvents") for (const event of json as Json[]) checkEvent(event);
}

/** Schemas of event data whose names differ from the resource. */
const dataSchemas: Readonly<Record<string, string>> = {
  publicnetwork: "PublicNetwork",
  tunnel: "TunnelStatus",
  sshkey: "SshKey",
};

/** Asserts that an event matches the contract, and its data the schema of the object. */
function checkEvent(json: unknown): void {
  check("Event", { $ref: "#/components/schemas/Event" }, json, false);
  const { Resource, Data } = json as { Resource: string; Data: unknown };
  const title = dataSchemas[Resource] ?? Resource.charAt(0).toUpperCase() + Resource.slice(1);
  if (Data !== null) check(title, { $ref: `#/components/schemas/${title}` }, Data, false);
}

/** Asserts that an error object matches the contract and, with `name`, that this operation may return its code. */
export function checkProblem(json: unknown, name?: OperationName): asserts json is Problem {
  check("Problem", { $ref: "#/components/schemas/Problem" }, json, false);
  const { Message, title, type, status, code, errors, ModelState } = json as Problem;
  assert.deepEqual(
    { Message, title, status },
    { Message: errorCodes[code].message, title: Message, status: errorCodes[code].status },
  );
  assert.equal(type, `/docs#${code}`);
  assert.equal(ModelState === undefined, errors.length === 0, "ModelState is present exactly if errors are");
  if (name === undefined) return;
  const given = find(name).responses[String(status)];
  const response = given && "$ref" in given ? api.components.responses[given.$ref.split("/").at(-1) ?? ""] : given;
  assert.ok(response?.["x-codes"]?.includes(code), `the contract does not list ${code} for ${name}`);
}
