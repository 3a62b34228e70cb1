/** Runs the command of an operation: values of the line to a request, prompt, request, wait, output. */
import type { Argument, Command, Field } from "./model/commands.ts";
import { isChanging, usageOf } from "./model/parse.ts";
import { operationOf, titleOf } from "./model/schema.ts";
import { isList, parseValue, UsageError } from "./model/values.ts";
import { textOf } from "./print/columns.ts";
import { resolve } from "./resolve.ts";
import type { Session } from "./session.ts";
import { settle } from "./settle.ts";

/** Input of a request. */
export interface Request {
  readonly path: Record<string, number>;
  readonly query: Record<string, unknown>;
  readonly body: Record<string, unknown> | undefined;
}

async function valueOf(
  session: Session,
  name: string,
  one: Field,
  texts: readonly string[],
  parent: number | undefined,
) {
  const { kind, schema, field } = one;
  if (kind === null) return parseValue(name, field, schema, texts, session.readText);
  const client = await session.any();
  if (!isList(schema)) return resolve(client, kind, texts.at(-1) ?? "", parent);
  const names = texts.flatMap((text) => text.split(",")).filter((text) => text !== "");
  return Promise.all(names.map((text) => resolve(client, kind, text)));
}

async function readBody({ options, readText }: Session): Promise<Record<string, unknown>> {
  if (options.file === null) return {};
  const { parse } = await import("yaml");
  const value: unknown = parse(await readText(options.file));
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new UsageError(`${options.file} must contain the fields of one object.`);
  return value as Record<string, unknown>;
}

/** Pairs the arguments of the line with those of the command; absent ones are left out. */
function pairArguments(command: Command, given: readonly string[], present: (one: Argument) => boolean) {
  const pairs: [Argument, string][] = [];
  const rest = [...given];
  for (const [index, one] of command.args.entries()) {
    const needed = command.args.slice(index + 1).filter(({ required }) => required).length;
    const text = rest.length > (one.required ? 0 : needed) ? rest.shift() : undefined;
    if (text !== undefined) pairs.push([one, text]);
    else if (one.required && !present(one)) throw new UsageError(`${one.name} is missing.`, usageOf(command));
  }
  return pairs;
}

/** Converts the line to the input of the operation. Throws `UsageError`. */
async function readRequest(session: Session): Promise<Request> {
  const { command, args, flags } = session.line;
  const hasBody = command.operation !== null && operationOf(command.operation).body !== undefined;
  const file = await readBody(session);
  const request: Request = { path: {}, query: {}, body: hasBody ? { ...file, ...command.body } : undefined };
  const put = ({ place, field }: Field, value: unknown) => {
    if (place === "path") request.path[field] = Number(value);
    else if (place === "query") request.query[field] = Array.isArray(value) ? value.join(",") : value;
    else if (request.body) request.body[field] = value;
  };
  for (const [one, text] of pairArguments(command, args, ({ place, field }) => place === "body" && field in file)) {
    const parent = Object.values(request.path).at(-1);
    put(one, one.file ? await session.readText(text) : await valueOf(session, one.name, one, [text], parent));
  }
  for (const flag of command.flags) {
    const texts = flags.get(flag.name);
    if (texts !== undefined) put(flag, await valueOf(session, `--${flag.name}`, flag, texts, undefined));
    else if (flag.required && !(flag.field in file))
      throw new UsageError(`--${flag.name} is missing.`, `${usageOf(command)}. --help describes the flags.`);
  }
  return request;
}

/** Prompts before a change that deletes or overwrites. Throws `UsageError` if it is declined or cannot be prompted. */
export async function confirm({ host, options }: Session, what: string): Promise<void> {
  if (options.yes || options.dryRun) return;
  if (!host.input.isTerminal || !host.err.isTerminal)
    throw new UsageError(`Nothing was changed: "${what}" must be confirmed, and there is no terminal.`, "Add --yes.");
  const answer = await host.input.ask(`${what}? [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw new UsageError("Declined. Nothing was changed.");
}

async function readList(session: Session, name: string, { path, query }: Request): Promise<unknown[]> {
  const client = await session.any();
  const limit = query["limit"] === undefined ? Number.POSITIVE_INFINITY : Number(query["limit"]);
  const rows: unknown[] = [];
  const { signal } = session.host;
  const input = { path, query: { ...query, limit: Math.min(limit, name === "listDomains" ? 100 : 500) } };
  for await (const row of client.items(name, input, { signal })) {
    if (rows.length >= limit) break;
    rows.push(row);
  }
  return rows;
}

/** Runs the operation of a command. */
export async function perform(session: Session): Promise<void> {
  const { line, options, print, host } = session;
  const { command } = line;
  const name = command.operation ?? "";
  const operation = operationOf(name);
  const request = await readRequest(session);
  const title = titleOf(operation);
  if (operation.list === true) return print.result(await readList(session, name, request), title, false);

  const subject = line.args[0] ?? (textOf(request.body?.["Name"]) || command.words.join(" "));
  if (command.destroys) await confirm(session, `${operation.summary}: ${line.args.join(" ") || subject}`);
  const client = await session.any();
  const call = client.raw[name];
  if (!call) throw new TypeError(`the client has no operation ${name}`);
  const changes = isChanging(name);
  const { answer } = await call(
    { path: request.path, query: request.query, ...(request.body !== undefined && { body: request.body }) },
    { signal: host.signal, ...(changes && { dryRun: options.dryRun, ...(!options.wait && { wait: 0 }) }) },
  );
  if (changes && options.dryRun) print.note("Valid. Nothing was changed (--dry-run).");
  const final =
    changes && options.wait && !options.dryRun ? await settle(session, name, request.path, answer, subject) : answer;
  // A schema of any value, as that of the OpenAPI document or the metrics: people and other commands need the document as it is.
  if (operation.answer !== null && Object.keys(operation.answer).every((key) => key === "description"))
    return host.out.write(typeof answer === "string" ? answer : `${JSON.stringify(answer, null, 2)}\n`);
  // The value of a new token and the secret of a new webhook appear only in this response.
  const isDetail =
    operation.method === "GET" ||
    ["Token", "Webhook"].includes(title) ||
    title === "" ||
    !["table", "wide"].includes(options.output);
  if (final !== undefined && final !== null) return print.result(final, title, isDetail);
  if (changes && !options.dryRun && host.out.isTerminal)
    print.lines([`${print.style.green("✓")} ${operation.summary}: ${subject}`]);
}
