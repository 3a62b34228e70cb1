/**
 * Renders the API reference as one HTML page from the OpenAPI document, without script, font or second request. The name of each
 * operation, type and error code is an anchor, so the `type` of an error (`/docs#domain_exists`) links to its explanation.
 */
import type { Json, Media, OpenApi, OperationObject, Parameter, Reference, Response } from "./components.ts";
import { style } from "./docs-style.ts";
import { errorCodes } from "./errors.ts";
import { taskErrors } from "./work.ts";

/** Address in the commands of the page. The service replaces it by its own address, as the reader has called it. */
export const exampleOrigin = "http://127.0.0.1:8080";

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
/** Escapes text between tags. Quotes are kept, which makes the examples smaller. */
const escape = (text: unknown) => String(text).replaceAll(/[&<>]/g, (sign) => entities[sign] ?? sign);
/** Quotes and escapes the value of an attribute. */
const quote = (text: unknown) => `"${String(text).replaceAll(/[&<>"]/g, (sign) => entities[sign] ?? sign)}"`;
const anchor = (name: string) => quote(`#${name}`);
/** Renders text with `code` in backticks. */
const prose = (text: unknown) => escape(text).replaceAll(/`([^`]*)`/g, "<code>$1</code>");
const code = (text: unknown) => `<code>${escape(text)}</code>`;
const link = (name: string) => `<a href=${anchor(name)}>${escape(name)}</a>`;
const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  rows.length === 0
    ? ""
    : `<div class="wide"><table><thead><tr>${head.map((cell) => `<th>${cell}</th>`).join("")}</tr></thead><tbody>${rows
        .map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join("")}</tr>`)
        .join("")}</tbody></table></div>`;

const nameOf = (reference: string) => reference.slice(reference.lastIndexOf("/") + 1);
const asJson = (value: unknown) => (typeof value === "object" && value !== null ? (value as Json) : {});

/** Returns the type of a value in words: `list of Record`, `integer 0 to 65535`, `date or null`. */
function nameType(schema: Json): string {
  const { $ref, anyOf, format, minimum, maximum, minLength, maxLength } = schema;
  // `null` counts as absent in every optional field of a request.
  const all: readonly unknown[] = Array.isArray(schema["type"]) ? schema["type"] : [schema["type"]];
  const types = all.filter((one) => one !== "null");
  const [type] = types.length === 0 ? ["null"] : types;
  if (typeof $ref === "string") return link(nameOf($ref));
  if (Array.isArray(anyOf)) return anyOf.map((option) => nameType(asJson(option))).join(" or ");
  if (types.length > 1) return types.map((one) => nameType({ ...schema, type: one })).join(" or ");
  if ("const" in schema) return code(schema["const"]);
  if (Array.isArray(schema["enum"]))
    return schema["enum"]
      .filter((word) => word !== null && word !== "")
      .map(code)
      .join(" ");
  if (schema["x-labels"] === true) return "labels";
  if (type === "array") return `list of ${nameType(asJson(schema["items"]))}`;
  if (format === "date-time") return "date";
  if (type === "integer" && minimum === maximum && minimum !== undefined) return `integer ${escape(minimum)}`;
  if (type === "integer" && minimum !== undefined) return `integer ${escape(minimum)} to ${escape(maximum)}`;
  if (type === "string") {
    if (maxLength !== undefined) return `text of ${escape(minLength ?? 0)} to ${escape(maxLength)}`;
    return "text";
  }
  return type === undefined ? "anything" : escape(type);
}

/** Returns one row for each field. Fields of nested objects without a title follow with their path, such as `Changes[].Op`. */
function listFields(schema: Json, path = ""): string[][] {
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.entries(asJson(schema["properties"])).flatMap(([name, value]) => {
    const field = asJson(value);
    // Fields that the form does not have, and fields of responses, which are ignored.
    if (field["type"] === "null" || field["readOnly"] === true) return [];
    const inner = [field, asJson(field["items"]), ...(Array.isArray(field["anyOf"]) ? field["anyOf"].map(asJson) : [])];
    const suffix = field["type"] === "array" ? "[]" : "";
    return [
      [
        code(path + name) + (required.includes(name) ? "" : ' <small title="may be absent">optional</small>'),
        nameType(field),
        prose(field["description"] ?? ""),
      ],
      ...inner.flatMap((one) => listFields(one, `${path}${name}${suffix}.`)),
    ];
  });
}

/** Returns the curl command that sends the example of an operation. */
function writeCommand(
  method: string,
  path: string,
  operation: OperationObject,
  parameters: readonly Parameter[],
): string {
  const target = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const id = parameters.find((one) => one.name === name)?.example;
    return typeof id === "number" ? String(id) : name;
  });
  const example = operation.requestBody?.content["application/json"]?.examples?.["example"];
  return [
    "curl",
    method !== "GET" && method !== "POST" ? `-X ${method}` : "",
    operation.security.length > 0 ? '-H "Authorization: Bearer $TOKEN"' : "",
    example ? `--json '${JSON.stringify(example.value).replaceAll("'", "'\\''")}'` : "",
    `${exampleOrigin}${target}`,
  ]
    .filter((part) => part !== "")
    .join(" ");
}

/** Returns the page of an OpenAPI document. */
export function renderDocs(api: OpenApi): string {
  const { components } = api;
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );

  const follow = <T extends object>(kind: Readonly<Record<string, T>>, value: T | Reference): T | undefined =>
    "$ref" in value ? kind[nameOf(value.$ref)] : value;
  const codesOf = ({ responses }: OperationObject) =>
    Object.values(responses).flatMap((one) => follow<Response>(components.responses, one)?.["x-codes"] ?? []);

  /** Error codes that all operations of a method share. Each operation lists only its own. */
  const shared = new Map<string, readonly string[]>();
  for (const { method, operation } of operations) {
    if (operation.security.length === 0) continue;
    const codes = codesOf(operation);
    shared.set(method, shared.get(method)?.filter((one) => codes.some((other) => other === one)) ?? codes);
  }

  function renderParameters(parameters: readonly Parameter[]): string {
    const rows = parameters.map(({ name, in: place, schema, description }) => [
      `${code(name)} <small>${place}</small>`,
      nameType(schema),
      prose(description ?? ""),
    ]);
    return rows.length > 0 ? `<h4>Path, query and headers</h4>${table(["name", "type", ""], rows)}` : "";
  }

  /** Renders the fields of a schema, of each of its forms if it has forms. */
  function renderBody(schema: Json): string {
    const { $ref, oneOf } = schema;
    if (typeof $ref === "string") return renderBody(asJson(components.schemas[nameOf($ref)]));
    if (!Array.isArray(oneOf)) return table(["field", "type", ""], listFields(schema));
    return oneOf
      .map((option) => {
        const form = asJson(components.schemas[nameOf(String(asJson(option)["$ref"]))]);
        return `<p><b>${escape(form["title"])}</b>: ${prose(form["description"] ?? "")}</p>${renderBody(form)}`;
      })
      .join("\n");
  }

  function renderOperation({ method, path, operation }: (typeof operations)[number]): string {
    const parameters = (operation.parameters ?? []).flatMap(
      (one) => follow<Parameter>(components.parameters, one) ?? [],
    );
    const body = asJson(operation.requestBody?.content["application/json"]?.schema);
    const answer = follow<Response>(components.responses, operation.responses["200"] ?? { description: "" });
    const media = Object.entries(answer?.content ?? {});
    const example = (answer?.content?.["application/json"] as Media | undefined)?.examples?.["example"];
    const general = operation.security.length > 0 ? (shared.get(method) ?? []) : [];
    const specificCodes = codesOf(operation).filter((one) => !general.includes(one));
    const needs =
      operation["x-scope"] === "open"
        ? "Needs no token."
        : operation["x-scope"] === "any"
          ? "Needs a token."
          : `Needs ${code(operation["x-scope"])}${operation["x-own"] ? `, or access to the token's own ${escape(operation["x-own"])}` : ""}.`;
    const answers = media.map(([type, { schema }]) =>
      type === "application/json" ? nameType(asJson(schema)) : `${code(type)} text`,
    );
    const fields = renderBody(body);
    return `<article id=${quote(operation.operationId)}>
<h3><a href=${anchor(operation.operationId)}>${escape(operation.summary)}</a></h3>
<p class="line"><b class="${method.toLowerCase()}">${method}</b> ${code(path)} <small>${escape(operation.operationId)}</small></p>
<p>${prose(operation.description ?? "")} ${needs}</p>
${renderParameters(parameters)}${fields === "" ? "" : `<h4>Body</h4>${fields}`}
<h4>Response</h4><p>${answers.length > 0 ? answers.join(", or ") : "Empty."}</p>
<h4>Errors</h4><p>${specificCodes.map(link).join(", ")}${general.length > 0 ? `${specificCodes.length > 0 ? ", and" : ""} those of <a href="#every-${method}">every ${method}</a>` : ""}.</p>
<details><summary>Example</summary><pre>${escape(writeCommand(method, path, operation, parameters))}</pre>${
      example ? `<pre>${escape(JSON.stringify(example.value, null, 2))}</pre>` : ""
    }</details>
</article>`;
  }

  const groups = api.tags.map(({ name, description }) => ({
    name,
    description,
    members: operations.filter(({ operation }) => operation.tags.includes(name)),
  }));
  const types = Object.entries(components.schemas);
  const typeBody = (schema: Json): string =>
    Array.isArray(schema["oneOf"])
      ? `<p>One of ${schema["oneOf"].map((option) => nameType(asJson(option))).join(", ")}.</p>`
      : table(["field", "type", ""], listFields(schema));
  const headerRows = Object.entries(components.headers).map(([name, value]) => [
    code(name),
    prose(asJson(value)["description"] ?? ""),
  ]);
  const faultRows = Object.entries(errorCodes).map(
    ([name, { status, message }]) =>
      `<tr id=${quote(name)}><td><a href=${anchor(name)}>${code(name)}</a></td><td>${status}</td><td>${escape(message)}</td></tr>`,
  );

  // Two codes are errors of requests too, and have their place above.
  const workRows = Object.entries(taskErrors).map(([name, title]) => {
    const place = name in errorCodes ? "" : ` id=${quote(name)}`;
    return `<tr${place}><td><a href=${anchor(name)}>${code(name)}</a></td><td>${escape(title)}</td></tr>`;
  });

  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(api.info.title)} API ${escape(api.info.version)}</title><style>${style}</style></head><body>
<nav><p><a href="#top"><b>${escape(api.info.title)}</b></a> ${escape(api.info.version)}</p>
${groups
  .map(
    ({ name, members }) =>
      `<h2>${escape(name)}</h2><ul>${members
        .map(({ operation }) => `<li><a href=${anchor(operation.operationId)}>${escape(operation.summary)}</a></li>`)
        .join("")}</ul>`,
  )
  .join("\n")}
<h2>Reference</h2><ul><li><a href="#types">Types</a></li><li><a href="#headers">Response headers</a></li><li><a href="#errors">Errors</a></li><li><a href="/openapi.json">OpenAPI document</a></li></ul></nav>
<main id="top"><h1>${escape(api.info.title)} API</h1><p>${prose(api.info.description)}</p>
<pre>curl -H "Authorization: Bearer $TOKEN" ${exampleOrigin}/account</pre>
${groups.map(({ name, description, members }) => `<section><h2>${escape(name)}</h2><p>${prose(description)}</p>\n${members.map(renderOperation).join("\n")}</section>`).join("\n")}
<section id="types"><h2>Types</h2>
${types.map(([name, schema]) => `<article id=${quote(name)}><h3>${link(name)}</h3>${schema["description"] ? `<p>${prose(schema["description"])}</p>` : ""}${typeBody(schema)}</article>`).join("\n")}</section>
<section id="headers"><h2>Response headers</h2>${table(["header", ""], headerRows)}</section>
<section id="errors"><h2>Errors</h2><p>Every error is a ${link("Problem")} as <code>application/problem+json</code>.</p>
${[...shared].map(([method, codes]) => `<p id="every-${method}">Every <b>${method}</b> can return ${codes.map(link).join(", ")}.</p>`).join("\n")}
<div class="wide"><table><thead><tr><th>code</th><th>status</th><th>Message</th></tr></thead><tbody>${faultRows.join("\n")}</tbody></table></div>
<h3>Errors of background work</h3><p>The field <code>Error</code> of servers, actions, images, networks and tunnels is a ${link("WorkError")} or a ${link("MachineError")}.</p>
<div class="wide"><table><thead><tr><th>code</th><th>title</th></tr></thead><tbody>${workRows.join("\n")}</tbody></table></div></section>
</main></body></html>
`;
}
