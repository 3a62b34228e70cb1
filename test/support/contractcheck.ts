/**
 * Holds an answer against the OpenAPI document as it is published (docs/spec.md#responses-match-the-contract). Stricter than the document,
 * which lets the interface grow: here no key may be unknown, keys stand in the order of the schema, dates have exactly their form, and an
 * id is 0 in a dry run only.
 */
import assert from "node:assert/strict";
import type { OpenApi, OperationObject } from "@brume/api/components.ts";
import { contract, type OperationName } from "@brume/api/contract.ts";
import { errorCodes, type Problem } from "@brume/api/errors.ts";
import { describeApi } from "@brume/api/openapi.ts";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";

type Json = Record<string, unknown>;

/** Keywords of ours, which say how to read a field and nothing about what is valid. */
export const ownKeywords = [
  "x-also",
  "x-either",
  "x-id",
  "x-labels",
  "x-says",
  "x-secret",
  "x-shown",
  "x-skip",
  "x-ignored",
  "x-verbatim",
  "x-words",
  "x-prefix",
  "x-word",
];

export const responseDate = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

/** The same schemas with every object closed. */
function close(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(close);
  if (!isJson(value)) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([key, part]) => [key, close(part)]));
  const isOpen = value["type"] === "object" && isJson(value["properties"]) && !("additionalProperties" in value);
  return isOpen ? { ...copy, additionalProperties: false } : copy;
}

const api: OpenApi = describeApi(contract, { version: "0.0.0" });
const schemas = close(api.components.schemas) as Record<string, Json>;
// That the schemas themselves are valid is a law of its own.
const ajv = new Ajv2020({ allErrors: true, verbose: true, validateSchema: false });
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

/** What is wrong with the order of keys and with ids of 0, which a schema cannot say. */
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
  if (present !== wanted) yield `${pointer} has its keys as ${present}, not as ${wanted}`;
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
        (one) => `${one.instancePath} ${one.message}, it is ${JSON.stringify(one.data)?.slice(0, 200)}`,
      );
  assert.deepEqual(wrong, [], `not as the contract says: ${name}`);
}

function find(name: OperationName): OperationObject {
  const operation = operations.get(name);
  assert.ok(operation, `the document has no operation ${name}`);
  return operation;
}

/** Holds the parsed body of a success against its operation; for an empty answer give `undefined` or `""`. */
export function checkResponse(name: OperationName, json: unknown, options: { readonly dryRun?: boolean } = {}): void {
  const response = find(name).responses["200"];
  assert.ok(response && !("$ref" in response));
  const [media] = Object.values(response.content ?? {});
  if (!media)
    assert.ok(json === undefined || json === "", `${name} answers with an empty body, not ${JSON.stringify(json)}`);
  else check(name, media.schema as Json, json, options.dryRun ?? false);
  if (name === "listEvents") for (const event of json as Json[]) checkEvent(event);
}

/** What the events of a resource carry, where that is not the schema of its name. */
const carried: Readonly<Record<string, string>> = {
  publicnetwork: "PublicNetwork",
  tunnel: "TunnelStatus",
  sshkey: "SshKey",
};

/** Holds one event against the contract, and what it carries against the type of the object it tells of. */
export function checkEvent(json: unknown): void {
  check("Event", { $ref: "#/components/schemas/Event" }, json, false);
  const { Resource, Data } = json as { Resource: string; Data: unknown };
  const title = carried[Resource] ?? Resource.charAt(0).toUpperCase() + Resource.slice(1);
  if (Data !== null) check(title, { $ref: `#/components/schemas/${title}` }, Data, false);
}

/** Holds an error object against the contract; with a name, also: may this operation answer so? */
export function checkProblem(json: unknown, name?: OperationName): asserts json is Problem {
  check("Problem", { $ref: "#/components/schemas/Problem" }, json, false);
  const { Message, title, type, status, code, errors, ModelState } = json as Problem;
  assert.deepEqual(
    { Message, title, status },
    { Message: errorCodes[code].message, title: Message, status: errorCodes[code].status },
  );
  assert.equal(type, `/docs#${code}`);
  assert.equal(ModelState === undefined, errors.length === 0, "ModelState is there when errors are");
  if (name === undefined) return;
  const given = find(name).responses[String(status)];
  const response = given && "$ref" in given ? api.components.responses[given.$ref.split("/").at(-1) ?? ""] : given;
  assert.ok(response?.["x-codes"]?.includes(code), `the contract does not say that ${name} can answer ${code}`);
}
