/**
 * Creates the OpenAPI 3.1 document from the contract when the service starts. Schemas are JSON Schema 2020-12 and are copied unchanged;
 * schemas with a title move to the components. Keywords beyond OpenAPI begin with `x-`: scope, error codes, and how a field is read.
 */
import { maxId } from "./common.ts";
import {
  codes,
  description,
  headers,
  type Json,
  type Media,
  type OpenApi,
  type OperationObject,
  type Parameter,
  parameters,
  problem,
  type Reference,
  type Response,
  tagOf,
  tags,
  text,
} from "./components.ts";
import type { OperationName } from "./contract.ts";
import { describeProblem, type ErrorCode, errorCodes } from "./errors.ts";
import type { Example } from "./examples/example.ts";
import { examples } from "./examples.ts";
import { linksOf } from "./links.ts";
import { isChange, type Operation } from "./operation.ts";
import { errorsOf, takesIfMatch } from "./operationerrors.ts";
import { requestSchema } from "./requestschema.ts";

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null;
const refer = (kind: keyof OpenApi["components"], name: string): Reference => ({
  $ref: `#/components/${kind}/${name}`,
});
const referAll = (kind: keyof OpenApi["components"], names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, refer(kind, name)]));

/** Collects values by name. Throws if one name gets two different values. */
function createSchemas() {
  const named: Record<string, Json> = {};
  function put(name: string, value: Json): void {
    const known = named[name];
    if (known && JSON.stringify(known) !== JSON.stringify(value))
      throw new Error(`Two different schemas have the title ${name}.`);
    named[name] = value;
  }
  /** Moves every titled schema inside `schema`, and the schema itself, to the components. Returns the schema with references. */
  function describe(schema: Json): Json {
    const copy = Object.fromEntries(
      Object.entries(schema).map(([key, value]) => [
        key,
        Array.isArray(value)
          ? value.map((item: unknown) => (isObject(item) ? describe(item) : item))
          : isObject(value)
            ? describe(value)
            : value,
      ]),
    );
    if (typeof schema["title"] !== "string") return copy;
    put(schema["title"], copy);
    return refer("schemas", schema["title"]) as unknown as Json;
  }
  return { named, describe };
}

/** Allows id 0 in responses, for dry runs. */
function allowZeroIds(schema: unknown, name = ""): unknown {
  if (Array.isArray(schema)) return schema.map((item) => allowZeroIds(item, name));
  if (!isObject(schema)) return schema;
  // A nullable id is a union.
  const below = (key: string): string => (key === "anyOf" ? name : key);
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, allowZeroIds(value, below(key))]));
  const isId = /(^|[a-z])I[Dd]$/.test(name) && schema["type"] === "integer" && schema["minimum"] === 1;
  return isId ? { ...copy, minimum: 0 } : copy;
}

/** Headers of every response to a token with a rate limit. */
const rateHeaders = ["RateLimit-Policy", "RateLimit"];

/** Returns the OpenAPI document of a contract. Throws if two schemas have one title. */
export function describeApi(table: Readonly<Record<string, Operation>>, { version }: { version: string }): OpenApi {
  const schemas = createSchemas();
  const responses: Record<string, Response> = {};
  const used = new Set<string>();
  const paths: Record<string, Record<string, OperationObject>> = {};
  schemas.describe(problem);

  /** One error status with its codes. Operations share it, so it is a component. */
  function describeErrors(status: number, own: readonly ErrorCode[]): Reference {
    const response: Response = {
      description: own.map((code) => `\`${code}\`: ${errorCodes[code].message}`).join("\n\n"),
      headers: referAll("headers", [
        "X-Request-Id",
        ...rateHeaders,
        ...(status === 401 ? ["WWW-Authenticate"] : []),
        ...(status === 412 ? ["ETag"] : []),
        ...(status === 429 || status === 503 || own.includes("idempotency_key_busy") ? ["Retry-After"] : []),
      ]),
      content: {
        "application/problem+json": { schema: refer("schemas", "Problem"), examples: referAll("examples", own) },
      },
      "x-codes": own,
    };
    const written = JSON.stringify(response);
    for (let turn = 1; ; turn++) {
      const name = turn === 1 ? String(status) : `${status}-${turn}`;
      responses[name] ??= response;
      if (JSON.stringify(responses[name]) === written) return refer("responses", name);
    }
  }

  function describeResponse(name: string, op: Operation, example: Example): Response {
    const isRead = op.method === "GET";
    const names = [
      "X-Request-Id",
      ...(op.alwaysAnswers === true ? [] : rateHeaders),
      ...(op.etag ? ["ETag"] : []),
      ...(op.list ? ["Link", "X-Total-Count"] : []),
      ...(/^(?:server|network):/.test(op.access) ? ["X-Simulated"] : []),
      ...(isRead ? [] : ["Preference-Applied", "Idempotency-Replayed", "X-Dry-Run"]),
    ];
    const links = linksOf(name, op, table);
    const common = { headers: referAll("headers", names), ...(Object.keys(links).length > 0 && { links }) };
    if (op.answer === null) return { description: "Done. The body is empty.", ...common };
    const schema = schemas.describe(allowZeroIds(op.answer) as Json);
    const json: Media = {
      schema,
      ...(example.answer !== undefined && { examples: { example: { value: example.answer } } }),
    };
    const isText = schema["type"] === "string" && op.media !== undefined;
    return {
      description: op.list ? "The matching objects." : op.etag ? "The object after the request." : "The result.",
      ...common,
      content: {
        ...(!isText && { "application/json": json }),
        ...(op.media !== undefined && { [op.media]: { schema: text } }),
      },
    };
  }

  function describeParameters(op: Operation, path: readonly number[] = []): (Parameter | Reference)[] {
    const ids = [...op.path.matchAll(/\{(\w+)\}/g)].map(
      ([, name = ""], index): Parameter => ({
        name,
        in: "path",
        required: true,
        ...(op.params?.[name] && { description: `Id of the ${errorCodes[op.params[name]].noun}.` }),
        schema: { type: "integer", minimum: 1, maximum: maxId },
        ...(path[index] !== undefined && { example: path[index] }),
      }),
    );
    const filters = Object.entries(op.query?.properties ?? {}).map(([name, schema]): Parameter | Reference => {
      if (name in parameters) return refer("parameters", name);
      const { description, ...rest } = schemas.describe(schema as Json);
      return { name, in: "query", ...(typeof description === "string" && { description }), schema: rest };
    });
    const general = [
      ...(isChange(op) ? ["dryRun", "IdempotencyKey", "Prefer"] : []),
      ...(takesIfMatch(op) ? ["IfMatch"] : []),
      ...(op.content ? ["ContentRange"] : []),
      ...(op.media === "text/event-stream" ? ["LastEventId"] : []),
    ].map((name) => refer("parameters", name));
    return [...ids, ...filters, ...general];
  }

  function describeOperation(name: string, op: Operation): OperationObject {
    const example: Example = examples[name as OperationName] ?? {};
    const success = describeResponse(name, op, example);
    const errors = Map.groupBy(errorsOf(op), (code): number => errorCodes[code].status);
    const parameters = describeParameters(op, example.path);
    const tag = tagOf[op.path.split("/")[1] ?? ""] ?? "service";
    used.add(tag);
    for (const codes of errors.values()) for (const code of codes) used.add(code);
    return {
      operationId: name,
      tags: [tags[tag]?.name ?? tag],
      summary: op.summary,
      ...(op.description !== undefined && { description: op.description }),
      security: op.access === "open" ? [] : [{ token: op.access === "any" ? [] : [op.access] }],
      ...(parameters.length > 0 && { parameters }),
      ...(op.body && {
        requestBody: {
          required: (op.body.required ?? []).length > 0,
          content: {
            "application/json": {
              schema: schemas.describe(requestSchema(op.body as unknown as Json)),
              ...(example.request !== undefined && { examples: { example: { value: example.request } } }),
            },
          },
        },
      }),
      ...(op.content && { requestBody: { required: true, content: { "application/octet-stream": { schema: {} } } } }),
      responses: {
        200: success,
        ...Object.fromEntries((op.alsoReturns ?? []).map((status) => [status, success])),
        ...Object.fromEntries([...errors].map(([status, own]) => [status, describeErrors(status, own)])),
      },
      "x-scope": op.access,
      ...(op.own && { "x-own": op.own }),
      ...((op.repeatable || op.method === "GET") && { "x-repeatable": true }),
    };
  }

  for (const [name, op] of Object.entries(table)) {
    paths[op.path] = { ...paths[op.path], [op.method.toLowerCase()]: describeOperation(name, op) };
  }

  const shown = codes.filter((code) => used.has(code));
  return {
    openapi: "3.1.1",
    info: {
      title: "Brume",
      version,
      description,
      contact: { name: "The operator of this installation" },
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    jsonSchemaDialect: "https://json-schema.org/draft/2020-12/schema",
    servers: [{ url: "/" }],
    tags: Object.entries(tags).flatMap(([name, tag]) => (used.has(name) ? [tag] : [])),
    paths,
    components: {
      schemas: schemas.named,
      responses,
      parameters,
      headers,
      examples: Object.fromEntries(
        shown.map((code) => [
          code,
          { summary: errorCodes[code].message, value: describeProblem(code, errorCodes[code].message, "01JD4QK7Z8S3") },
        ]),
      ),
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "64 lower-case hexadecimal characters." },
      },
    },
  };
}
