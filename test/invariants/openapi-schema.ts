/**
 * The structure of an OpenAPI 3.1 document as a JSON Schema (after OpenAPI Specification 3.1.1, section 4), for the objects that ours
 * uses: callbacks, webhooks, encodings and flows of OAuth are left out and so refused. Schema objects are left to Ajv itself.
 */

const text = { type: "string" } as const;
const boolean = { type: "boolean" } as const;
const to = (name: string) => ({ $ref: `#/$defs/${name}` });
const map = (schema: object, names = "^[a-zA-Z0-9._-]+$") => ({
  type: "object",
  propertyNames: { type: "string", pattern: names },
  additionalProperties: schema,
});
const list = (items: object) => ({ type: "array", items });

/** A closed object that also allows extensions (`x-…`). */
const object = (required: readonly string[], properties: Readonly<Record<string, object | boolean>>) => ({
  type: "object",
  required,
  properties,
  patternProperties: { "^x-": true },
  additionalProperties: false,
});
const orReference = (name: string) => ({ oneOf: [to("reference"), to(name)] });

export const openapiSchema = {
  $id: "openapi-3.1",
  ...object(["openapi", "info", "paths", "components"], {
    openapi: { type: "string", pattern: "^3\\.1\\.\\d+$" },
    info: object(["title", "version"], {
      title: text,
      summary: text,
      description: text,
      termsOfService: text,
      contact: object([], { name: text, url: text, email: text }),
      license: object(["name"], { name: text, identifier: text }),
      version: text,
    }),
    jsonSchemaDialect: { const: "https://json-schema.org/draft/2020-12/schema" },
    servers: { ...list(object(["url"], { url: text, description: text })), minItems: 1 },
    tags: { ...list(object(["name"], { name: text, description: text })), uniqueItems: true },
    security: list(to("security")),
    externalDocs: object(["url"], { url: text, description: text }),
    paths: {
      type: "object",
      propertyNames: { type: "string", pattern: "^/" },
      additionalProperties: to("pathItem"),
    },
    components: object([], {
      schemas: map(to("schema")),
      responses: map(orReference("response")),
      parameters: map(orReference("parameter")),
      examples: map(orReference("example")),
      requestBodies: map(orReference("requestBody")),
      headers: map(orReference("header")),
      securitySchemes: map(to("securityScheme")),
    }),
  }),
  $defs: {
    schema: { type: ["object", "boolean"] },
    reference: {
      type: "object",
      required: ["$ref"],
      properties: { $ref: { type: "string", pattern: "^#/components/" }, summary: text, description: text },
      additionalProperties: false,
    },
    security: map(list(text)),
    securityScheme: object(["type", "scheme"], {
      type: { const: "http" },
      scheme: { const: "bearer" },
      bearerFormat: text,
      description: text,
    }),
    pathItem: object([], {
      summary: text,
      description: text,
      parameters: list(orReference("parameter")),
      ...Object.fromEntries(
        ["get", "put", "post", "delete", "options", "head", "patch", "trace"].map((method) => [
          method,
          to("operation"),
        ]),
      ),
    }),
    operation: object(["operationId", "responses"], {
      tags: list(text),
      summary: text,
      description: text,
      operationId: { type: "string", pattern: "^[a-z][A-Za-z0-9]*$" },
      parameters: { ...list(orReference("parameter")), uniqueItems: true },
      requestBody: orReference("requestBody"),
      responses: {
        type: "object",
        minProperties: 1,
        propertyNames: { type: "string", pattern: "^(?:[1-5](?:\\d\\d|XX)|default)$" },
        additionalProperties: orReference("response"),
      },
      deprecated: boolean,
      security: list(to("security")),
    }),
    parameter: {
      ...object(["name", "in", "schema"], {
        name: text,
        in: { enum: ["query", "header", "path", "cookie"] },
        description: text,
        required: boolean,
        deprecated: boolean,
        style: text,
        explode: boolean,
        schema: to("schema"),
        example: true,
      }),
      anyOf: [
        { properties: { in: { enum: ["query", "header", "cookie"] } } },
        { properties: { required: { const: true } }, required: ["required"] },
      ],
    },
    requestBody: object(["content"], { description: text, content: to("content"), required: boolean }),
    response: object(["description"], {
      description: text,
      headers: map(orReference("header"), "."),
      content: to("content"),
      links: map(to("link")),
    }),
    link: object(["operationId"], {
      operationId: text,
      description: text,
      parameters: { type: "object", additionalProperties: { type: "string", pattern: "^\\$(?:request|response)\\." } },
    }),
    header: object([], { description: text, required: boolean, deprecated: boolean, schema: to("schema") }),
    content: map(to("media"), "^[a-z]+/[a-z+.-]+$"),
    media: object([], { schema: to("schema"), example: true, examples: map(orReference("example"), ".") }),
    example: object([], { summary: text, description: text, value: true, externalValue: text }),
  },
};
