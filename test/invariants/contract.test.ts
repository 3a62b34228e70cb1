/**
 * Invariants of the contract, from which clients, documents and service are derived. Each test loops over all operations, so new
 * operations are included.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient, type Input } from "@brume/api/client.ts";
import { type Contract, contract, type OperationName } from "@brume/api/contract.ts";
import type { Domain } from "@brume/api/dns.ts";
import { type ErrorCode, errorCodes } from "@brume/api/errors.ts";
import { type Answer, isChange, type Operation, scopes } from "@brume/api/operation.ts";
import { errorsOf, pathErrors } from "@brume/api/operationerrors.ts";
import { requestSchema } from "@brume/api/requestschema.ts";

const operations = Object.entries(contract) as [OperationName, Operation][];

type Json = Readonly<Record<string, unknown>>;
const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null;

/** Returns a schema and all schemas inside it. */
function* within(schema: unknown): Generator<Json> {
  if (!isJson(schema)) return;
  yield schema;
  for (const [key, part] of Object.entries(schema)) if (key !== "x-forms") yield* within(part);
}

const objectsOf = (schema: unknown) =>
  [...within(schema)].flatMap((one) => (one["type"] === "object" && isJson(one["properties"]) ? [one] : []));
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
const keysOf = (schema: Json) => Object.keys(schema["properties"] as Json);

test("method and path identify one operation, regardless of letter case and parameter names", () => {
  const seen = new Map<string, string>();
  for (const [name, { method, path }] of operations) {
    const key = `${method} ${path.replaceAll(/\{\w+\}/g, "{}").toLowerCase()}`;
    assert.equal(seen.get(key), undefined, `${name} and ${seen.get(key)} are both ${key}`);
    seen.set(key, name);
    assert.match(path, /^(?:\/(?:[a-z][a-zA-Z.-]*|\{[a-zA-Z]+\}))+$/, name);
  }
});

test("each parameter of a path has the 404 of its kind, and nothing else has", () => {
  for (const [name, { path, params = {} }] of operations) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
    assert.deepEqual(Object.keys(params), inPath, name);
    for (const code of Object.values(params)) assert.equal(errorCodes[code].status, 404, `${name}: ${code}`);
  }
});

test("a read has no body, a list returns an array with pages, and a response with ETag is one object", () => {
  for (const [name, op] of operations) {
    if (op.method === "GET") assert.equal(op.body, undefined, name);
    if (op.readOnlyPost) assert.ok(op.method === "POST" && op.body !== undefined, name);
    if (op.list) {
      assert.equal((op.answer as unknown as Json)["type"], "array", name);
      assert.deepEqual(Object.keys(op.query?.properties ?? {}).slice(-2), ["limit", "cursor"], name);
    }
    if (op.etag) assert.match(keysOf(op.answer as unknown as Json)[0] ?? "", /^I[Dd]$/, name);
  }
});

test("references of an operation exist", () => {
  for (const [name, op] of operations) {
    assert.ok(["any", "open", ...scopes].includes(op.access), name);
    if (op.resultOperation !== undefined) {
      const shown = (contract as Readonly<Record<string, Operation>>)[op.resultOperation];
      assert.equal(shown?.method, "GET", `${name} shows ${op.resultOperation}`);
      if (op.answer !== null)
        assert.equal(shown?.answer, op.answer, `${name} answers another type than ${op.resultOperation}`);
    }
    const operationErrors = op.errors ?? [];
    assert.equal(new Set(operationErrors).size, operationErrors.length, `${name} repeats an error`);
    for (const code of operationErrors) assert.ok(code in errorCodes, `${name}: ${code}`);
  }
});

test("every change needs a write scope, and no read does", () => {
  for (const [name, op] of operations) {
    // Every token may begin and end its own sessions, which have its rights.
    if (op.path.startsWith("/session")) assert.equal(op.access, "any", name);
    else if (isChange(op)) assert.ok(/:write$|^account:admin$/.test(op.access), name);
    else assert.doesNotMatch(op.access, /:write$/, name);
  }
});

test("every error code is returned by some operation", () => {
  const answered = new Set<ErrorCode>([...pathErrors, ...operations.flatMap(([, op]) => errorsOf(op))]);
  assert.deepEqual(
    Object.keys(errorCodes).filter((code) => !answered.has(code as ErrorCode)),
    [],
  );
});

test("no object has two keys that differ only in letter case, other names of fields included", () => {
  for (const [name, op] of operations) {
    for (const schema of [...objectsOf(op.body), ...objectsOf(op.answer)]) {
      const also = Object.values(schema["properties"] as Json).flatMap((field) =>
        isJson(field) && Array.isArray(field["x-also"]) ? (field["x-also"] as string[]) : [],
      );
      const keys = [...keysOf(schema), ...also].map((key) => key.toLowerCase());
      assert.equal(new Set(keys).size, keys.length, `${name}: ${keys.join()}`);
    }
  }
});

test("all keys of a response are required, Labels last", () => {
  for (const [name, op] of operations) {
    for (const schema of objectsOf(op.answer)) {
      const keys = keysOf(schema);
      assert.deepEqual(schema["required"], keys, name);
      if (keys.includes("Labels")) assert.equal(keys.at(-1), "Labels", name);
    }
  }
});

test("every field of a request and of a response has a description, and every object a name", () => {
  for (const [name, op] of operations) {
    for (const schema of [...objectsOf(op.body), ...objectsOf(op.answer), ...objectsOf(op.query)]) {
      const isQuery = schema === (op.query as unknown);
      if (!isQuery) assert.match(textOf(schema["title"]), /^[A-Z][A-Za-z]+$/, `${name}: ${keysOf(schema).join()}`);
      for (const [key, field] of Object.entries(schema["properties"] as Readonly<Record<string, Json>>)) {
        const [option] = (field["anyOf"] ?? []) as Json[];
        const description = field["description"] ?? option?.["description"];
        assert.match(textOf(description), /^.*\S.*[.]$/s, `${name}: ${textOf(schema["title"])}.${key}`);
      }
    }
    assert.match(op.description ?? "", /[.]$/, name);
  }
});

test("the schema of a request is named and allows no other fields, in each of its forms", () => {
  for (const [name, { body }] of operations) {
    if (body === undefined) continue;
    const schema = requestSchema(body as unknown as Json);
    assert.match(textOf(schema["title"]), /Request$/, name);
    for (const one of objectsOf(schema)) assert.equal(one["additionalProperties"], false, name);
    const forms = (schema["oneOf"] ?? []) as Json[];
    assert.equal(new Set(forms.map((form) => form["title"])).size, forms.length, name);
  }
});

test("two schemas with one title are the same schema", () => {
  const titled = new Map<string, string>();
  for (const [name, op] of operations) {
    for (const schema of [...within(op.answer), ...within(op.body)]) {
      const title = schema["title"];
      if (typeof title !== "string") continue;
      const written = JSON.stringify(schema);
      assert.equal(titled.get(title) ?? written, written, `${name}: ${title}`);
      titled.set(title, written);
    }
  }
});

test("the client has a method for every operation, and its own helpers hide none", () => {
  const client = createClient({ url: "http://127.0.0.1" }) as unknown as Record<string, unknown>;
  const helpers = new Set(Object.keys(client).filter((key) => !(key in contract)));
  assert.deepEqual([...helpers].sort(), ["events", "items", "pages", "raw", "text", "uploadImage", "waitFor"]);
  for (const [name] of operations) assert.equal(typeof client[name], "function", name);
});

type IsAny<T> = 0 extends 1 & T ? true : false;
type Same<A, B> = IsAny<A> extends true ? false : [A, B] extends [B, A] ? true : false;
type Flat<T> = { [K in keyof T]: T[K] };
const same = <A, B>(holds: Same<A, B>) => assert.ok(holds);

test("the types of input and response match the schemas", () => {
  same<Answer<Contract["readDomain"]>, Domain>(true);
  same<Answer<Contract["listDomains"]>, Domain[]>(true);
  same<Answer<Contract["deleteDomain"]>, undefined>(true);
  same<Answer<Contract["readBalance"]>, number>(true);
  same<Flat<Input<Contract["readDomain"]>>, { readonly path: { readonly id: number } }>(true);
  same<
    Flat<Input<Contract["deleteRecord"]>>,
    { readonly path: { readonly domainid: number; readonly recordId: number } }
  >(true);
  same<Flat<Input<Contract["readAccount"]>>, Record<never, never>>(true);
  same<Input<Contract["createDomain"]>["body"]["Name"], string>(true);
  same<
    Input<Contract["createToken"]>["body"]["RecordTypes"],
    ("A" | "AAAA" | "CNAME" | "MX" | "NS" | "SRV" | "TXT")[] | undefined
  >(true);
  const client = createClient({ url: "http://127.0.0.1" });
  same<Awaited<ReturnType<typeof client.createDomain>>, Domain>(true);
  same<Awaited<ReturnType<typeof client.raw.createDomain>>["answer"], Domain>(true);
  const wrong = () => [
    // @ts-expect-error a body needs its required fields
    client.createDomain({ body: {} }),
    // @ts-expect-error an operation on one object needs its id
    client.readDomain(),
    // @ts-expect-error a read cannot be a dry run
    client.readDomain({ path: { id: 3 } }, { dryRun: true }),
    // @ts-expect-error only lists have pages
    client.pages("readDomain", { path: { id: 3 } }),
    // @ts-expect-error words are those of the contract
    client.createToken({ body: { Name: "a", Scopes: ["dns:all"] } }),
  ];
  assert.equal(typeof wrong, "function");
});
