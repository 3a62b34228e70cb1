/**
 * The published document is valid OpenAPI 3.1, contains the whole contract, and its examples are valid.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Media, OperationObject, Response } from "@brume/api/components.ts";
import { contract, type OperationName } from "@brume/api/contract.ts";
import { examples } from "@brume/api/examples.ts";
import { describeApi } from "@brume/api/openapi.ts";
import type { Operation } from "@brume/api/operation.ts";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import type { TObject } from "typebox";
import { checkProblem, checkResponse, ownKeywords } from "../support/contractcheck.ts";
import { openapiSchema } from "./openapi-schema.ts";

type Json = Readonly<Record<string, unknown>>;
const api = describeApi(contract, { version: "0.1.0" });
const published = JSON.parse(JSON.stringify(api)) as Json;
const operations = Object.entries(contract) as [OperationName, Operation][];
const described = new Map<string, OperationObject>(
  Object.values(api.paths).flatMap((methods) => Object.values(methods).map((one) => [one.operationId, one] as const)),
);

function createAjv(): Ajv2020 {
  // A union of two names of a field requires fields that its parent defines.
  const ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true, strictRequired: false });
  formats.default(ajv);
  ajv.addVocabulary([...ownKeywords, "components", "example"]);
  return ajv;
}

function* within(value: unknown, pointer = "#"): Generator<readonly [string, Json]> {
  if (typeof value !== "object" || value === null) return;
  yield [pointer, value as Json];
  for (const [key, part] of Object.entries(value)) {
    yield* within(part, `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`);
  }
}

function find(reference: string): unknown {
  let value: unknown = published;
  for (const part of reference.split("/").slice(1)) {
    value = (value as Json | undefined)?.[part.replaceAll("~1", "/").replaceAll("~0", "~")];
  }
  return value;
}

test("the document has the structure of OpenAPI 3.1", () => {
  const ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true });
  const validate = ajv.compile(openapiSchema);
  assert.deepEqual(validate(published) ? [] : validate.errors, []);
});

test("an invalid structure is found", () => {
  const validate = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(openapiSchema);
  const isValidWith = (pointer: string, value: unknown) => {
    const copy: unknown = structuredClone(published);
    const path = pointer.split(" ");
    const last = path.pop() ?? "";
    const holder = path.reduce((at, part) => (at as Record<string, unknown>)[part], copy) as Record<string, unknown>;
    if (value === undefined) delete holder[last];
    else holder[last] = value;
    return validate(copy);
  };
  assert.equal(isValidWith("info title", "Other"), true);
  assert.equal(isValidWith("info version", undefined), false);
  assert.equal(isValidWith("paths /dns get responses", undefined), false);
  assert.equal(isValidWith("paths /dns get unknown", 1), false);
  assert.equal(isValidWith("paths dns", {}), false);
  assert.equal(isValidWith("paths /dns/{id} get parameters 0 required", undefined), false);
  assert.equal(isValidWith("components responses 404 description", undefined), false);
  assert.equal(isValidWith("components schemas Domain", 3), false);
});

test("every operation of the contract is listed by path and method, with its scope", () => {
  assert.equal(described.size, operations.length);
  for (const [name, op] of operations) {
    const one = api.paths[op.path]?.[op.method.toLowerCase()];
    assert.equal(one?.operationId, name);
    assert.equal(one?.["x-scope"], op.access);
    assert.equal(one?.requestBody !== undefined, op.body !== undefined || op.content === true, name);
  }
});

test("every reference resolves, and every component is used", () => {
  const used = new Set<string>();
  for (const [pointer, { $ref }] of within(published)) {
    if (typeof $ref !== "string") continue;
    assert.notEqual(find($ref), undefined, `${pointer} refers to ${$ref}`);
    used.add($ref);
  }
  const kinds = ["schemas", "responses", "parameters", "headers"] as const;
  const idle = kinds.flatMap((kind) => Object.keys(api.components[kind]).map((name) => `#/components/${kind}/${name}`));
  assert.deepEqual(
    idle.filter((reference) => !used.has(reference)),
    [],
  );
});

test("links lead to operations, with a value for each parameter of the path", () => {
  let count = 0;
  for (const operation of described.values()) {
    const response = operation.responses["200"] as Response;
    for (const { operationId, parameters } of Object.values(response.links ?? {})) {
      const [path] = Object.entries(api.paths).find(([, methods]) =>
        Object.values(methods).some((one) => one.operationId === operationId),
      ) ?? [""];
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      assert.deepEqual(Object.keys(parameters), names, `${operation.operationId} to ${operationId}`);
      for (const value of Object.values(parameters)) {
        const [, field] = /^\$response\.body#\/(\w+)$/.exec(value) ?? [];
        const [, own] = /^\$request\.path\.(\w+)$/.exec(value) ?? [];
        const op = contract[operation.operationId as OperationName] as Operation;
        if (field !== undefined) assert.ok(field in (op.answer as TObject).properties, value);
        else assert.ok(own !== undefined && op.path.includes(`{${own}}`), value);
      }
      count++;
    }
  }
  assert.ok(count > 50);
});

test("every schema is a valid and strict JSON Schema 2020-12", () => {
  const ajv = createAjv();
  ajv.addSchema({ $id: "api", components: { schemas: published["components"] && find("#/components/schemas") } });
  const compile = (schema: unknown) =>
    ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"api#/')) as Json);
  let count = 0;
  for (const [pointer, holder] of within(published)) {
    const { schema } = holder;
    if (schema === undefined || pointer.includes("/example") || pointer.includes("/properties/")) continue;
    assert.doesNotThrow(() => compile(schema), pointer);
    count++;
  }
  for (const title of Object.keys(api.components.schemas)) compile({ $ref: `#/components/schemas/${title}` });
  assert.ok(count > operations.length);
});

test("patterns have only escapes that the regular expressions of other languages have", () => {
  for (const [pointer, { pattern }] of within(published))
    if (typeof pattern === "string" && !pointer.includes("/example"))
      assert.doesNotMatch(pattern, /\\(?!x[0-9a-f]{2}|[dsw./$^*+?()[\]{}|\\-])/, pointer);
});

test("every operation has an example, and every example is valid", () => {
  const ajv = createAjv();
  ajv.addSchema({ $id: "api", components: { schemas: find("#/components/schemas") } });
  for (const [name, op] of operations) {
    const one = described.get(name);
    const media = one?.requestBody?.content["application/json"];
    if (media) {
      const value = media.examples?.["example"]?.value;
      const validate = ajv.compile(JSON.parse(JSON.stringify(media.schema).replaceAll('"#/', '"api#/')) as Json);
      assert.ok(validate(value), `${name}: ${ajv.errorsText(validate.errors)}`);
      const known = Object.keys(op.body?.properties ?? {});
      for (const key of Object.keys(value as Json)) assert.ok(known.includes(key), `${name}: ${key}`);
    }
    const response = one?.responses["200"] as Response | undefined;
    const answer = response?.content?.["application/json"] as Media | undefined;
    if (!answer || name === "readOpenapi") continue;
    checkResponse(name, answer.examples?.["example"]?.value);
  }
  for (const { value } of Object.values(api.components.examples)) checkProblem(value);
});

test("examples of paths name every parameter", () => {
  for (const [name, op] of operations) {
    const count = op.path.split("{").length - 1;
    assert.equal(examples[name]?.path?.length ?? 0, count, name);
  }
});

/** Lines of the specification, byte for byte: the order of keys is guaranteed. */
const lines: Partial<Record<OperationName, string>> = {
  listDomains: String.raw`[{"ID":3,"Name":"example.com","NamePunyCode":"example.com","TechName":"example_com","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","IsDelegate":false,"LinkedRecords":[{"ID":14,"TypeRecord":"TXT","IP":"","HostName":"_acme-challenge.example.com.","Priority":"","Text":"\"abc\" ","MnemonicName":"","ExtHostName":"","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"","Proto":"","Weight":"","TTL":60,"Port":"","Target":"","CanonicalDescription":"_acme-challenge.example.com. 60 IN TXT \"abc\"","PunyName":"_acme-challenge.example.com.","DomainID":3,"Labels":{}}],"NameServers":["ns1.brume.internal"],"Serial":1795166100,"Import":null,"Delegation":"Unknown","Labels":{}}]`,
  createRecordMX: String.raw`{"ID":11,"TypeRecord":"MX","IP":"","HostName":"@","Priority":"10","Text":"","MnemonicName":"","ExtHostName":"mail.example.com.","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"","Proto":"","Weight":"","TTL":3600,"Port":"","Target":"","CanonicalDescription":"@ 3600 MX 10 mail.example.com.","PunyName":"@","DomainID":3,"Labels":{}}`,
  updateRecordSRV: String.raw`{"ID":13,"TypeRecord":"SRV","IP":"","HostName":"@","Priority":"20","Text":"","MnemonicName":"","ExtHostName":"","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"_xmpp-client.","Proto":"tcp","Weight":"5","TTL":3600,"Port":"5223","Target":"chat.example.com.","CanonicalDescription":"_xmpp-client._tcp.example.com. 3600 IN SRV 20 5 5223 chat.example.com.","PunyName":"@","DomainID":3,"Labels":{}}`,
  readAccount: String.raw`{"ID":1,"FirstName":"","LastName":"","Email":"","Balance":0,"BalanceTillDateUtc":"9999-12-31T23:59:59.999Z","ProjectsBalance":[{"ProjectId":1,"Balance":{"Real":0,"Bonus":0,"Test":0}}],"Projects":[{"ID":1,"Name":"default","IsBlocked":false}],"Token":{"ID":1,"Name":"first","Scopes":["server:read","server:write","dns:read","dns:write","network:read","network:write","account:admin","metrics:read"],"ProjectID":1,"DomainID":null}}`,
  readOwnProject: String.raw`{"ID":1,"Name":"default","IsBlocked":false,"Balances":{"Real":0,"Bonus":0,"Test":0},"Quotas":{"Servers":100,"CPU":200,"RAM":262144,"HDD":4096,"PublicNetworks":50,"PrivateNetworks":100,"Domains":1000,"RecordsPerDomain":10000,"FirewallRules":500,"Tunnels":50,"SshKeys":100,"Images":50,"Tokens":100,"Webhooks":10},"Usage":{"Servers":1,"CPU":1,"RAM":512,"HDD":10,"PublicNetworks":1,"PrivateNetworks":0,"Domains":1,"SshKeys":1,"Images":0,"Tokens":1,"Webhooks":0},"DateCreate":"2026-11-20T09:15:00.120Z","Labels":{}}`,
  createToken: String.raw`{"ID":2,"Name":"acme","Token":"5f1c0e7a9b3d4c2e8f6a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e","Scopes":["dns:read","dns:write"],"ProjectID":1,"DomainID":3,"RecordPattern":"_acme-challenge*","RecordTypes":["TXT"],"ExpiresAt":"2027-11-20T00:00:00.000Z","RateLimit":null,"DateCreate":"2026-11-20T09:15:00.120Z","LastUsedAt":null,"AllowedFrom":null,"Labels":{}}`,
  listEvents: String.raw`[{"ID":991,"Type":"record.created","Date":"2026-11-20T09:15:00.120Z","ProjectID":1,"Resource":"record","ResourceID":14,"ParentID":3,"TokenID":2,"RequestID":"01JD4QK7Z8S3","Data":{"ID":14,"TypeRecord":"TXT","IP":"","HostName":"_acme-challenge.example.com.","Priority":"","Text":"\"abc\" ","MnemonicName":"","ExtHostName":"","State":"Active","DateCreate":"2026-11-20T09:15:00.120Z","Service":"","Proto":"","Weight":"","TTL":60,"Port":"","Target":"","CanonicalDescription":"_acme-challenge.example.com. 60 IN TXT \"abc\"","PunyName":"_acme-challenge.example.com.","DomainID":3,"Labels":{}}}]`,
};

test("keys are in the order of the specification", () => {
  for (const [name, line] of Object.entries(lines) as [OperationName, string][]) {
    assert.equal(JSON.stringify(examples[name]?.answer), line, name);
    checkResponse(name, JSON.parse(line));
  }
});

test("a response with a missing, unknown, misplaced or invalid key is rejected", () => {
  const domain = examples.createDomain?.answer;
  assert.ok(domain);
  const { Labels, ...rest } = domain;
  assert.throws(() => checkResponse("readDomain", rest), /required property 'Labels'/);
  assert.throws(() => checkResponse("readDomain", { ...domain, More: 1 }), /additional properties/);
  assert.throws(() => checkResponse("readDomain", { Labels, ...rest }), /has the keys Labels/);
  assert.throws(() => checkResponse("readDomain", { ...domain, State: "active" }), /allowed values/);
  assert.throws(() => checkResponse("readDomain", { ...domain, DateCreate: "2026-11-20T09:15:00Z" }), /date-time/);
  assert.throws(() => checkResponse("readDomain", { ...domain, ID: 0 }), /outside a dry run/);
  checkResponse("createDomain", { ...domain, ID: 0 }, { dryRun: true });
  assert.throws(() => checkResponse("deleteDomain", {}), /empty body/);
  checkResponse("deleteDomain", "");
  const problem = api.components.examples["domain_exists"]?.value;
  checkProblem(problem, "createDomain");
  assert.throws(() => checkProblem(problem, "deleteDomain"), /does not list/);
});
