/** Renders how to call an operation: a curl command with the example of the contract, and a form that sends the request with the reader's token. */
import type { OperationObject, Parameter } from "@brume/api/components.ts";
import { code, escape, exampleOrigin } from "./html.ts";

/** An operation of the document with its address. */
export interface Described {
  readonly method: string;
  readonly path: string;
  readonly operation: OperationObject;
  readonly parameters: readonly Parameter[];
}

const exampleOf = ({ operation }: Described): unknown =>
  operation.requestBody?.content["application/json"]?.examples?.["example"]?.value;

/** Returns the curl command that sends the example of an operation. */
export function renderCommand(described: Described): string {
  const { method, path, operation, parameters } = described;
  const target = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const id = parameters.find((one) => one.name === name)?.example;
    return typeof id === "number" ? String(id) : name;
  });
  const example = exampleOf(described);
  return [
    "curl",
    method !== "GET" && method !== "POST" ? `-X ${method}` : "",
    operation.security.length > 0 ? '-H "Authorization: Bearer $TOKEN"' : "",
    example === undefined ? "" : `--json '${JSON.stringify(example).replaceAll("'", "'\\''")}'`,
    `${exampleOrigin}${target}`,
  ]
    .filter((part) => part !== "")
    .join(" ");
}

/** Renders the form. It is hidden until the script of the page is loaded. A change is sent as a dry run unless the reader decides otherwise. */
export function renderTry(described: Described): string {
  const { method, path, operation, parameters } = described;
  const isStream = Object.keys(
    ("content" in (operation.responses["200"] ?? {}) && (operation.responses["200"] as { content?: object }).content) ||
      {},
  ).includes("text/event-stream");
  const id = (name: string) => `try-${operation.operationId}-${name}`;
  const fields = parameters
    .filter(({ name, in: place }) => place !== "header" && name !== "dryRun")
    .map(({ name, in: place, schema, example }) => {
      const words = Array.isArray(schema["enum"])
        ? (schema["enum"] as unknown[]).filter((word) => word !== null)
        : null;
      const value = place === "path" ? (example ?? "") : "";
      const input =
        words === null
          ? `<input id="${id(name)}" name="${escape(name)}" data-in="${place}" value="${escape(value)}"${place === "path" ? " required" : ""}>`
          : `<select id="${id(name)}" name="${escape(name)}" data-in="${place}"><option></option>${words.map((word) => `<option>${escape(word)}</option>`).join("")}</select>`;
      return `<label for="${id(name)}">${code(name)}</label>${input}`;
    });
  const example = exampleOf(described);
  const body =
    operation.requestBody === undefined
      ? ""
      : `<label for="${id("body")}">Body</label><textarea id="${id("body")}" data-in="body" rows="${Math.min(12, JSON.stringify(example ?? {}, null, 2).split("\n").length + 1)}" spellcheck="false">${escape(JSON.stringify(example ?? {}, null, 2))}</textarea>`;
  const dryRun = parameters.some(({ name }) => name === "dryRun")
    ? `<label class="check"><input type="checkbox" data-in="dryRun" checked> Dry run: validate, and change nothing</label>`
    : "";
  return `<details class="try" hidden><summary>Try it</summary><form data-method="${method}" data-path="${escape(path)}"${isStream ? " data-stream" : ""}>
<div class="fields">${fields.join("\n")}${body}</div>${dryRun}
<p><button>Send ${method}</button> <output></output></p><pre hidden tabindex="0"><code></code></pre></form></details>`;
}
