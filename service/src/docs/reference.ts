/**
 * Renders the pages of the API reference from the OpenAPI document, one for each group of operations: states, operations with a form to
 * try them, and types. Every operation and type has an anchor on exactly one page.
 */
import type { Json, Media, OpenApi, OperationObject, Parameter, Reference, Response } from "@brume/api/components.ts";
import { asJson, listFields, nameOf, nameType, renderStates, type TypeUrl } from "./fields.ts";
import { code, escape, heading, prose, table } from "./html.ts";
import { type Described, renderCommand, renderTry } from "./tryit.ts";

/** A page of the reference, and the anchors of its operations and types. */
export interface ReferencePage {
  readonly url: string;
  readonly title: string;
  readonly html: string;
}

/** Sections of the specification that explain the states of a group, by title of the group. */
const stateSections: Readonly<Record<string, readonly string[]>> = {
  Servers: ["Server states", "Action states", "Server group states"],
  DNS: ["Domain and record states"],
  Networks: ["Public network and link states", "Private network, image and tunnel states"],
};

const addressOf = (group: string): string => `/docs/api/${group.toLowerCase()}`;

/** Collects the names of all types that a value refers to. */
function collectTypes(value: unknown, schemas: OpenApi["components"]["schemas"], found: Set<string>): void {
  if (typeof value !== "object" || value === null) return;
  for (const [key, part] of Object.entries(value)) {
    if (key === "$ref" && typeof part === "string" && part.startsWith("#/components/schemas/")) {
      const name = nameOf(part);
      if (found.has(name)) continue;
      found.add(name);
      collectTypes(schemas[name], schemas, found);
    } else collectTypes(part, schemas, found);
  }
}

/** Renders all pages. `explain` returns a section of the specification as HTML. */
export function renderReference(api: OpenApi, explain: (section: string) => string): ReferencePage[] {
  const { components } = api;
  const follow = <T extends object>(kind: Readonly<Record<string, T>>, value: T | Reference): T | undefined =>
    "$ref" in value ? kind[nameOf(value.$ref)] : value;
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Described => {
      const all = operation.parameters ?? [];
      const parameters = all.flatMap((one) => follow<Parameter>(components.parameters, one) ?? []);
      return { method: method.toUpperCase(), path, operation, parameters };
    }),
  );
  const codesOf = ({ responses }: OperationObject) =>
    Object.values(responses).flatMap((one) => follow<Response>(components.responses, one)?.["x-codes"] ?? []);

  const groups = api.tags.map(({ name, description }) => {
    const members = operations.filter(({ operation }) => operation.tags.includes(name));
    return { name, description, members, types: [] as string[] };
  });
  // A type is on the page of the first group that uses it.
  const owners = new Map<string, string>();
  for (const group of groups) {
    const used = new Set<string>();
    for (const { operation } of group.members) collectTypes(operation, components.schemas, used);
    group.types = [...used].filter((name) => !owners.has(name));
    for (const name of group.types) owners.set(name, addressOf(group.name));
  }
  const rest = Object.keys(components.schemas).filter((name) => !owners.has(name));
  groups.at(-1)?.types.push(...rest);
  const last = addressOf(groups.at(-1)?.name ?? "");
  const urlOf: TypeUrl = (name) => `${owners.get(name) ?? last}#${name}`;

  /** Error codes that all operations of a method share. Each operation lists only its own. */
  const shared = new Map<string, readonly string[]>();
  for (const { method, operation } of operations) {
    if (operation.security.length === 0) continue;
    const codes: readonly string[] = codesOf(operation);
    shared.set(method, shared.get(method)?.filter((one) => codes.includes(one)) ?? codes);
  }
  const linkCode = (name: string) => `<a href="/docs/errors#${name}">${code(name)}</a>`;

  /** Renders the fields of a schema, of each of its forms if it has forms. */
  function renderBody(schema: Json): string {
    const { $ref, oneOf } = schema;
    if (typeof $ref === "string") return renderBody(asJson(components.schemas[nameOf($ref)]));
    if (!Array.isArray(oneOf)) return table(["field", "type", "meaning"], listFields(schema, urlOf));
    return oneOf
      .map((option) => {
        const form = asJson(components.schemas[nameOf(String(asJson(option)["$ref"]))]);
        return `<p><b>${escape(form["title"])}</b>: ${prose(form["description"] ?? "")}</p>${renderBody(form)}`;
      })
      .join("\n");
  }

  function renderOperation(described: Described): string {
    const { method, path, operation, parameters } = described;
    const { operationId } = operation;
    const body = asJson(operation.requestBody?.content["application/json"]?.schema);
    const answer = follow<Response>(components.responses, operation.responses["200"] ?? { description: "" });
    const example = (answer?.content?.["application/json"] as Media | undefined)?.examples?.["example"];
    const general = operation.security.length > 0 ? (shared.get(method) ?? []) : [];
    const own = (codesOf(operation) as readonly string[]).filter((one) => !general.includes(one));
    const scope = operation["x-scope"];
    const access =
      scope === "open"
        ? "Needs no token."
        : scope === "any"
          ? "Needs a token."
          : `Needs the scope ${code(scope)}${operation["x-own"] ? `, or access to the token's own ${escape(operation["x-own"])}` : ""}.`;
    const answers = Object.entries(answer?.content ?? {}).map(([type, { schema }]) =>
      type === "application/json" ? nameType(asJson(schema), urlOf) : `${code(type)} text`,
    );
    const rows = parameters.map(({ name, in: place, schema, description }) => [
      `${code(name)} <small>${place}</small>`,
      nameType(schema, urlOf),
      prose(description ?? ""),
    ]);
    const fields = renderBody(body);
    const errors = [
      ...(own.length > 0 ? [own.map(linkCode).join(", ")] : []),
      ...(general.length > 0
        ? [`those of <a href="/docs/errors#every-${method.toLowerCase()}">every ${method}</a>`]
        : []),
    ];
    return `<article class="operation">
${heading(3, operationId, escape(operation.summary))}
<p class="line"><b class="${method.toLowerCase()}">${method}</b> ${code(path)} <small>${escape(operationId)}</small></p>
<p>${prose(operation.description ?? "")} ${access}</p>
${rows.length > 0 ? `<h4>Path, query and headers</h4>${table(["name", "type", "meaning"], rows)}` : ""}
${fields === "" ? "" : `<h4>Body</h4>${fields}`}
<h4>Response</h4><p>${answers.length > 0 ? answers.join(", or ") : "Empty."}</p>
${errors.length > 0 ? `<h4>Errors</h4><p>${errors.join(", and ")}.</p>` : ""}
<details class="example"><summary>Example</summary><pre tabindex="0"><code>${escape(renderCommand(described))}</code></pre>${
      example ? `<pre tabindex="0"><code>${escape(JSON.stringify(example.value, null, 2))}</code></pre>` : ""
    }</details>
${renderTry(described)}
</article>`;
  }

  function renderType(name: string): string {
    const schema = asJson(components.schemas[name]);
    const { oneOf, description } = schema;
    const body = Array.isArray(oneOf)
      ? `<p>One of ${oneOf.map((option) => nameType(asJson(option), urlOf)).join(", ")}.</p>`
      : table(["field", "type", "meaning"], listFields(schema, urlOf));
    return `<article>${heading(4, name, escape(name))}${description === undefined ? "" : `<p>${prose(description)}</p>`}${body}</article>`;
  }

  return groups.map(({ name, description, members, types }) => {
    const states = types
      .map((type) => renderStates(type, asJson(components.schemas[type])))
      .filter((part) => part !== "");
    const sections = (stateSections[name] ?? []).map((section) => `<h4>${escape(section)}</h4>${explain(section)}`);
    const html = `<h1>${escape(name)}</h1><p>${prose(description)}</p>
${heading(2, "operations", "Operations")}
${members.map(renderOperation).join("\n")}
${states.length > 0 ? `${heading(2, "states", "States")}${states.join("\n")}${sections.join("\n")}` : ""}
${heading(2, "types", "Types")}
${types.sort().map(renderType).join("\n")}`;
    return { url: addressOf(name), title: name, html };
  });
}

/** Renders the error codes that every operation of a method can return, for the page of errors. */
export function renderShared(api: OpenApi): string {
  const shared = new Map<string, readonly string[]>();
  for (const methods of Object.values(api.paths))
    for (const [method, { responses, security }] of Object.entries(methods)) {
      if (security.length === 0) continue;
      const codes: readonly string[] = Object.values(responses).flatMap(
        (one) => ("$ref" in one ? api.components.responses[nameOf(one.$ref)] : one)?.["x-codes"] ?? [],
      );
      shared.set(method, shared.get(method)?.filter((one) => codes.includes(one)) ?? codes);
    }
  return [...shared]
    .map(([method, codes]) => {
      const links = codes.map((one) => `<a href="#${one}">${code(one)}</a>`).join(", ");
      return `<p id="every-${method}">Every <b>${method.toUpperCase()}</b> can return ${links}.</p>`;
    })
    .join("\n");
}
