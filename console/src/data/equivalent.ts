/** The same request as a line of the CLI, as curl and in TypeScript. Loaded when a page shows it: it needs the contract. */

import type { OperationName } from "@brume/api/contract.ts";
import { type Command, type Field, operationCommands } from "../../../cli/src/model/commands.ts";
import { contract, fieldsOf, type Schema } from "../../../cli/src/model/schema.ts";

/** A request of the SDK. */
export interface Request {
  readonly operation: OperationName;
  readonly path?: Readonly<Record<string, number>>;
  readonly body?: Readonly<Record<string, unknown>>;
  /** Fields of the body that are shown as files of these names: their text may be long. */
  readonly files?: Readonly<Record<string, string>>;
}

export interface Equivalent {
  readonly name: string;
  readonly text: string;
}

/** Quotes a word of a shell if it needs it. */
const word = (value: string): string =>
  /^[A-Za-z0-9_./:=@,+-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;

const plain = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** Returns a flag with a value, which may begin with a hyphen. */
const withValue = (name: string, value: string): string =>
  `--${name}${value.startsWith("-") ? "=" : " "}${word(value)}`;

function flag(name: string, schema: Schema, value: unknown): string {
  if (schema.type === "boolean") return value === true ? `--${name}` : `--no-${name}`;
  // A list of objects is one value of YAML, which includes JSON.
  if (Array.isArray(value) && value.some((each) => typeof each === "object")) return withValue(name, plain(value));
  if (Array.isArray(value)) return withValue(name, value.map(plain).join(","));
  if (typeof value === "object" && value !== null)
    return Object.entries(value)
      .map(([key, each]) => withValue(name, `${key}=${plain(each)}`))
      .join(" ");
  return withValue(name, plain(value));
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

/** Returns the arguments and flags of the command. */
function partsOf(command: Command, { path = {}, body = {}, files = {} }: Request) {
  const valueOf = ({ field, place }: Field): unknown =>
    place === "path" ? path[field] : body[field] === undefined ? undefined : (files[field] ?? body[field]);
  const args = command.args.flatMap((argument) => {
    const value = valueOf(argument);
    return value === undefined ? [] : [plain(value)];
  });
  const flags = command.flags.flatMap((one) => {
    const value = valueOf(one);
    if (value === undefined || one.place === "query") return [];
    return [flag(one.name, one.schema, one.field in files ? `@${plain(value)}` : value)];
  });
  return { args, flags };
}

function cli(request: Request): string {
  const command = commandOf(request);
  if (command === undefined) return "";
  const { args, flags } = partsOf(command, request);
  const words = args.map(word);
  // An argument that begins with a hyphen is none of the flags.
  const rest = args.some((each) => each.startsWith("-")) ? [...flags, "--", ...words] : [...words, ...flags];
  return ["brume", ...command.words, ...rest].join(" ");
}

const filled = (path: string, ids: Request["path"] = {}): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(ids[name] ?? ""));

/** Returns the fields that are shown as files, and the others. */
function splitBody({ body = {}, files = {} }: Request) {
  const entries = Object.entries(body);
  return {
    read: entries.flatMap(([name]) => (files[name] === undefined ? [] : [[name, files[name]] as const])),
    rest: Object.fromEntries(entries.filter(([name]) => files[name] === undefined)),
  };
}

function curl(request: Request, origin: string): string {
  const { operation, path, body } = request;
  const { method, path: pattern } = contract[operation] ?? { method: "GET", path: "" };
  const lines = [
    `curl -sS${method === "GET" || (method === "POST" && body) ? "" : ` -X ${method}`} ${origin}${filled(pattern, path)}`,
  ];
  lines.push('-H "Authorization: Bearer $BRUME_TOKEN"');
  if (body) lines.push("-H 'Content-Type: application/json'");
  const { read, rest } = splitBody(request);
  const [file] = read;
  if (file !== undefined) {
    const [name, from] = file;
    const program = `{${name}: .}${Object.keys(rest).length === 0 ? "" : ` + ${JSON.stringify(rest)}`}`;
    return `jq -Rs ${word(program)} ${word(from)} |\n  ${[...lines, "-d @-"].join(" \\\n  ")}`;
  }
  if (body) lines.push(`-d ${word(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

function typescript(request: Request): string {
  const { operation, path, body } = request;
  const { read, rest } = splitBody(request);
  const shown = { ...rest, ...Object.fromEntries(read.map(([name]) => [name, `<${name}>`])) };
  const input = { ...(path && { path }), ...(body && { body: shown }) };
  let text = JSON.stringify(input, null, 2).replaceAll(/"([A-Za-z_]\w*)":/g, "$1:");
  for (const [name, from] of read)
    text = text.replace(`"<${name}>"`, () => `await readFile(${JSON.stringify(from)}, "utf8")`);
  return `await brume.${operation}(${text === "{}" ? "" : text});`;
}

/** Returns the requests of an upload in each form. */
function uploadOf({ body = {} }: Request, origin: string): Equivalent[] {
  const { Size: _size, Sha256: _sum, ...rest } = body;
  const size = `{Size: $size} + ${JSON.stringify(rest)}`;
  const token = '-H "Authorization: Bearer $BRUME_TOKEN"';
  const request = { operation: "createImage", body: rest } as const;
  const command = commandOf(request);
  const { args: [name = ""] = [], flags = [] } = command ? partsOf(command, request) : {};
  return [
    { name: "CLI", text: ["brume image upload FILE", withValue("name", name), ...flags].join(" ") },
    {
      name: "curl",
      text: [
        `ID=$(jq -n --argjson size $(stat -c %s FILE) ${word(size)} |`,
        `  curl -sS ${origin}/image ${token} --json @- | jq .ID)`,
        `curl -T FILE ${origin}/image/$ID/content ${token}`,
      ].join("\n"),
    },
    { name: "TypeScript", text: `await brume.uploadImage(${JSON.stringify(rest)}, await openAsBlob("FILE"));` },
  ];
}

/** Returns the value with a placeholder such as `<SharedKey>` for each secret. */
function masked(value: unknown, schema: Schema & { "x-secret"?: boolean } = {}, name = ""): unknown {
  if (schema["x-secret"] === true && typeof value === "string" && value !== "") return `<${name}>`;
  if (Array.isArray(value)) return value.map((one) => masked(one, schema.items, name));
  if (typeof value !== "object" || value === null) return value;
  const fields = fieldsOf(schema);
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, masked(one, fields[key], key)]));
}

/** Returns the request in each form, without its secrets. */
export function equivalentsOf(request: Request, origin: string): Equivalent[] {
  const { operation, body } = request;
  if (body === undefined) return formsOf(request, origin);
  const shown = { ...request, body: masked(body, contract[operation]?.body ?? {}) as NonNullable<Request["body"]> };
  return operation === "createImage" && body["Size"] !== undefined ? uploadOf(shown, origin) : formsOf(shown, origin);
}

const formsOf = (request: Request, origin: string): Equivalent[] => [
  { name: "CLI", text: cli(request) },
  { name: "curl", text: curl(request, origin) },
  { name: "TypeScript", text: typescript(request) },
];

/** Returns the fields of the body of an operation, or of the elements of its list: JSON schemas by name. */
export function bodyFields(operation: OperationName, list?: string): Readonly<Record<string, Schema>> {
  const fields = fieldsOf(contract[operation]?.body);
  return list === undefined ? fields : fieldsOf(fields[list]?.items);
}
