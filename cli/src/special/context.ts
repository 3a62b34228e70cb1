/** `brume context`: the list of installations. */
import { contextFile, readContexts, writeContexts } from "../context.ts";
import { UsageError } from "../model/values.ts";
import { type Run, type Session, textArgument } from "../session.ts";

const nameOf = (session: Session): string => {
  const name = textArgument(session, 0);
  if (!/^[\w.-]{1,64}$/.test(name))
    throw new UsageError(`A name has 1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-", not "${name}".`);
  return name;
};

async function readToken({ host }: Session, name: string): Promise<string> {
  const token = host.input.isTerminal ? await host.input.ask(`Token of ${name}: `, true) : await host.input.readAll();
  if (token.trim() === "")
    throw new UsageError("The token is empty.", "Give it on standard input, or a program that prints it after --.");
  return token.trim();
}

/** `brume context add`. */
export const add: Run = async (session) => {
  const { line, host, print } = session;
  const name = nameOf(session);
  const url = line.flags.get("url")?.at(-1);
  if (url === undefined || !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new UsageError(`--url takes a URL that begins with http:// or https://, not "${url ?? ""}".`);
  const access = line.after.length > 0 ? { helper: line.after } : { token: await readToken(session, name) };
  const { current, contexts } = await readContexts(host);
  await writeContexts(host, { current: current ?? name, contexts: { ...contexts, [name]: { url, ...access } } });
  print.note(`Context ${name} is stored in ${contextFile(host)}.`);
};

/** `brume context list`. */
export const list: Run = async ({ host, print, options }) => {
  const { current, contexts } = await readContexts(host);
  const rows = Object.entries(contexts).map(([name, { url, helper }]) => ({
    Name: name,
    Current: name === current,
    Url: url,
    Token: helper === undefined ? "stored" : `printed by ${helper[0] ?? ""}`,
  }));
  if (rows.length === 0 && options.output === "table") print.note("No contexts. The local installation needs none.");
  await print.result(rows, "", false);
};

/** `brume context use`. */
export const use: Run = async (session) => {
  const { host, print } = session;
  const name = nameOf(session);
  const stored = await readContexts(host);
  if (name !== "local" && stored.contexts[name] === undefined)
    throw new UsageError(`There is no context "${name}".`, "brume context list shows all of them.");
  await writeContexts(host, { ...stored, current: name === "local" ? null : name });
  print.note(`The current context is ${name}.`);
};

/** `brume context remove`. */
export const remove: Run = async (session) => {
  const { host, print } = session;
  const name = nameOf(session);
  const { current, contexts } = await readContexts(host);
  const { [name]: gone, ...rest } = contexts;
  if (gone === undefined)
    throw new UsageError(`There is no context "${name}".`, "brume context list shows all of them.");
  await writeContexts(host, { current: current === name ? null : current, contexts: rest });
  print.note(`Context ${name} is removed.`);
};
