/** What a command gets when it runs: its values, the client of the selected installation, and the output. */
import { type Client, createClient } from "@brume/api/client.ts";
import { findTarget, type Target } from "./context.ts";
import type { Host } from "./host.ts";
import type { Command } from "./model/commands.ts";
import type { Options } from "./model/options.ts";
import { type Line, usageOf } from "./model/parse.ts";
import { parseValue, type ReadText, UsageError } from "./model/values.ts";
import type { Printer } from "./print/output.ts";
import { type AnyClient, anyClient, resolve } from "./resolve.ts";

/** A running command. */
export interface Session {
  readonly host: Host;
  readonly line: Line;
  readonly options: Options;
  readonly print: Printer;
  readonly readText: ReadText;
  /** All commands, for help, completion and the reference page. */
  readonly commands: readonly Command[];
  /** Returns the selected installation. */
  target(): Promise<Target>;
  /** Returns its client. `token`: instead of the one of the installation. */
  client(token?: string): Promise<Client>;
  /** Returns its client for operations that are known by name only. */
  any(): Promise<AnyClient>;
}

/** The function of a special command. Resolves to an exit code other than 0, or to nothing. */
export type Run = (session: Session) => Promise<number | void>;

/** Creates the session of a line. Nothing is read before it is needed. */
export function createSession(
  host: Host,
  line: Line,
  options: Options,
  print: Printer,
  readText: ReadText,
  commands: readonly Command[],
): Session & { readonly url: () => string } {
  let opened: Promise<Target> | null = null;
  let url = "http://localhost/";
  const target = () => (opened ??= findTarget(host, options.context));
  const client = async (token?: string) => {
    const found = await target();
    if (!/^https?:\/\//.test(found.url))
      throw new UsageError(`"${found.url}" is not a URL.`, "It begins with http:// or https://.");
    url = found.url;
    const { certificate } = found;
    const fetch = certificate === undefined ? host.fetch : (await import("./request.ts")).createRequest(certificate);
    return createClient({
      url: found.url,
      token: token ?? found.token,
      strict: options.strict,
      retries: 2,
      ...(fetch && { fetch }),
    });
  };
  return {
    host,
    line,
    options,
    print,
    readText,
    commands,
    target,
    client,
    any: async () => anyClient(await client()),
    url: () => url,
  };
}

/** Returns whether a switch of a special command is on. */
export const isOn = ({ line }: Session, name: string): boolean => line.flags.get(name)?.at(-1) === "true";
/** Returns the text of a flag of a special command; undefined: it is absent. */
export const textFlag = ({ line }: Session, name: string): string | undefined => line.flags.get(name)?.at(-1);

/** Returns the number of a flag of a special command; undefined: it is absent. Throws `UsageError`. */
export async function numberFlag({ line, readText }: Session, name: string): Promise<number | undefined> {
  const texts = line.flags.get(name);
  const flag = line.command.flags.find((one) => one.name === name);
  if (texts === undefined || flag === undefined) return undefined;
  return Number(await parseValue(`--${name}`, name, flag.schema, texts, readText));
}

/** Returns the id of an argument of a special command. Throws `UsageError` if it is missing. */
export async function idArgument(session: Session, index: number, parent?: number): Promise<number> {
  const one = session.line.command.args[index];
  return resolve(await session.any(), one?.kind ?? "id", textArgument(session, index), parent);
}

/** Returns an argument of a special command. Throws `UsageError` if it is missing. */
export function textArgument({ line: { command, args } }: Session, index: number): string {
  const text = args[index];
  if (text === undefined) throw new UsageError(`${command.args[index]?.name ?? ""} is missing.`, usageOf(command));
  return text;
}
