/** The same request as a line of the CLI, as curl and in TypeScript. Loaded when a page shows it: it needs the contract. */

import type { OperationName } from "@brume/api/contract.ts";
import { type Command, type Field, operationCommands } from "../../../cli/src/model/commands.ts";
import { contract, fieldsOf, type Schema } from "../../../cli/src/model/schema.ts";

/** A request of the SDK. */
export interface Request {
  readonly operation: OperationName;
  readonly path?: Readonly<Record<string, number>>;
  readonly body?: Readonly<Record<string, unknown>>;
}

export interface Equivalent {
  readonly name: string;
  readonly text: string;
}

/** Quotes a word of a shell if it needs it. */
const word = (value: string): string =>
  /^[A-Za-z0-9_./:=@,+-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;

const plain = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function flag(name: string, schema: Schema, value: unknown): string {
  if (schema.type === "boolean") return value === true ? `--${name}` : `--no-${name}`;
  // A list of objects is one value of YAML, which includes JSON.
  if (Array.isArray(value) && value.some((each) => typeof each === "object")) return `--${name} ${word(plain(value))}`;
  if (Array.isArray(value)) return `--${name} ${word(value.map(plain).join(","))}`;
  if (typeof value === "object" && value !== null)
    return Object.entries(value)
      .map(([key, each]) => `--${name} ${word(`${key}=${plain(each)}`)}`)
      .join(" ");
  return `--${name} ${word(plain(value))}`;
}

/** Returns the command of the operation that sets the same fields. */
function commandOf({ operation, body }: Request): Command | undefined {
  const fitting = operationCommands().filter((command) => command.operation === operation);
  return (
    fitting.find(
      (command) => command.body && Object.entries(command.body).every(([key, value]) => body?.[key] === value),
    ) ?? fitting.find((command) => command.body === undefined)
  );
}

function cli(request: Request): string {
  const command = commandOf(request);
  if (command === undefined) return "";
  const { path = {}, body = {} } = request;
  const valueOf = ({ field, place }: Field): unknown => (place === "path" ? path[field] : body[field]);
  const words = command.args.flatMap((argument) => {
    const value = valueOf(argument);
    return value === undefined ? [] : [word(plain(value))];
  });
  const flags = command.flags.flatMap((one) => {
    const value = valueOf(one);
    return value === undefined || one.place === "query" ? [] : [flag(one.name, one.schema, value)];
  });
  return ["brume", ...command.words, ...words, ...flags].join(" ");
}

const filled = (path: string, ids: Request["path"] = {}): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(ids[name] ?? ""));

function curl({ operation, path, body }: Request, origin: string): string {
  const { method, path: pattern } = contract[operation] ?? { method: "GET", path: "" };
  const lines = [
    `curl -sS${method === "GET" || (method === "POST" && body) ? "" : ` -X ${method}`} ${origin}${filled(pattern, path)}`,
  ];
  lines.push('-H "Authorization: Bearer $BRUME_TOKEN"');
  if (body) lines.push("-H 'Content-Type: application/json'", `-d ${word(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

function typescript({ operation, path, body }: Request): string {
  const input = { ...(path && { path }), ...(body && { body }) };
  const text = JSON.stringify(input, null, 2).replaceAll(/"([A-Za-z_]\w*)":/g, "$1:");
  return `await brume.${operation}(${text === "{}" ? "" : text});`;
}

/** Returns the request in each form. */
export const equivalentsOf = (request: Request, origin: string): Equivalent[] => [
  { name: "CLI", text: cli(request) },
  { name: "curl", text: curl(request, origin) },
  { name: "TypeScript", text: typescript(request) },
];

/** Returns the fields of the body of an operation, or of the elements of its list: JSON schemas by name. */
export function bodyFields(operation: OperationName, list?: string): Readonly<Record<string, Schema>> {
  const fields = fieldsOf(contract[operation]?.body);
  return list === undefined ? fields : fieldsOf(fields[list]?.items);
}
