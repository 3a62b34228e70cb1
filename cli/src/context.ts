/**
 * Installations and their tokens. A context has a URL and either a token or a program that prints one. Contexts are in one file that only
 * its user can read. Without a context, the installation that this program belongs to is used: its token is in its data folder.
 */
import { existsSync } from "node:fs";
import { chmod, chown, mkdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Host } from "./host.ts";
import { UsageError } from "./model/values.ts";

/** An installation. */
export interface Context {
  readonly url: string;
  readonly token?: string;
  /** Program and arguments that print the token. */
  readonly helper?: readonly string[];
}

/** Content of the file. */
export interface Contexts {
  readonly current: string | null;
  readonly contexts: Readonly<Record<string, Context>>;
}

/** An installation that is ready to use. */
export interface Target {
  /** Name of the context, `local`, or `environment`. */
  readonly name: string;
  readonly url: string;
  readonly token: string | undefined;
  /** PEM of the certificate that the service on this host serves: its URL has an address, which no authority confirms. */
  readonly certificate?: string;
}

const defaultUrl = "http://127.0.0.1:8080";
const none: Contexts = { current: null, contexts: {} };

/** Returns the path of the file. */
export const contextFile = ({ env, home }: Host): string =>
  join(env["XDG_CONFIG_HOME"] || join(home, ".config"), "brume", "contexts.json");

const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === "ENOENT";

/** Reads the contexts. Throws `UsageError` if the file is damaged, or if other users can read it. */
export async function readContexts(host: Host): Promise<Contexts> {
  const path = contextFile(host);
  try {
    const { mode } = await stat(path);
    if ((mode & 0o077) !== 0) throw new UsageError(`Other users can read the tokens in ${path}.`, `chmod 600 ${path}`);
    const value = JSON.parse(await readFile(path, "utf8")) as Partial<Contexts> | null;
    if (typeof value?.contexts !== "object") throw new SyntaxError("it has no contexts");
    return { current: value.current ?? null, contexts: value.contexts };
  } catch (error) {
    if (isMissing(error)) return none;
    if (error instanceof SyntaxError)
      throw new UsageError(`${path} is damaged: ${error.message}.`, `Correct or remove ${path}.`);
    throw error;
  }
}

/**
 * Creates a folder and its parents with this mode. Rejects with the error of the file system. The option `recursive` of `mkdir` never ends
 * in a file system that has the parent and refuses the folder with ENOENT, such as /proc.
 */
async function makeFolders(path: string, mode: number): Promise<void> {
  if (existsSync(path)) return;
  if (dirname(path) !== path) await makeFolders(dirname(path), mode);
  await mkdir(path, { mode }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  });
}

/** Replaces a file atomically, and creates its folder. */
export async function replaceFile(
  path: string,
  text: string,
  mode: number,
  folderMode: number,
  owner: { readonly uid: number; readonly gid: number } | null = null,
): Promise<void> {
  await makeFolders(dirname(resolve(path)), folderMode);
  const part = `${path}.${process.pid}`;
  try {
    await writeFile(part, text, { mode });
    // Only root may give a file away.
    if (owner !== null && process.getuid?.() === 0) await chown(part, owner.uid, owner.gid);
    await chmod(part, mode);
    await rename(part, path);
  } finally {
    await rm(part, { force: true });
  }
}

/** Replaces the file of contexts. */
export const writeContexts = (host: Host, contexts: Contexts): Promise<void> =>
  replaceFile(contextFile(host), `${JSON.stringify(contexts, null, 2)}\n`, 0o600, 0o700);

async function readLine(path: string): Promise<string | null> {
  return readFile(path, "utf8").then(
    (text) => text.trim(),
    (error: unknown) => {
      if (isMissing(error)) return null;
      if ((error as NodeJS.ErrnoException).code === "EACCES")
        throw new UsageError(
          `${path} is readable only by another user.`,
          "Use sudo, or add a context: brume context add NAME --url URL",
        );
      throw error;
    },
  );
}

/** Returns the data folder in the settings file of the service; null: there is no file, or it does not set the folder. */
async function folderOfSettings({ env, installation }: Host): Promise<string | null> {
  const usual = [...(installation === null ? [] : [join(installation, "brume.toml")]), "/etc/brume/brume.toml"];
  const chosen = env["BRUME_CONFIG"];
  for (const path of chosen === undefined ? usual : [chosen].filter((one) => one !== "")) {
    const text = await readFile(path, "utf8").catch(() => null);
    if (text === null) continue;
    const { parse } = await import("smol-toml");
    const { data } = parse(text);
    return typeof data === "string" ? resolve(installation ?? "", data) : null;
  }
  return null;
}

/** Returns the folders that can be the data folder of the local installation. */
async function dataFolders(host: Host): Promise<string[]> {
  const { env, installation } = host;
  const set = env["BRUME_DATA"];
  if (set !== undefined && set !== "") return [set];
  const folders = [await folderOfSettings(host), installation && join(installation, "data")];
  return folders.filter((one) => one !== null);
}

/** Finds the local installation; null: there is none. */
async function findLocal(host: Host): Promise<Target | null> {
  for (const folder of await dataFolders(host)) {
    const path = join(folder, "token");
    const token = await readLine(path);
    if (token === null) continue;
    // The token may be a link into the folder of the control plane, which also contains the URL.
    const beside = dirname(await realpath(path));
    const url = (await readLine(join(beside, "url"))) ?? defaultUrl;
    const certificate = url.startsWith("https:") ? await readLine(join(beside, "certificate.pem")) : null;
    return { name: "local", url, token, ...(certificate !== null && { certificate }) };
  }
  return null;
}

async function openContext(host: Host, name: string, { url, token, helper }: Context): Promise<Target> {
  if (helper === undefined) return { name, url, token };
  const [program = "", ...args] = helper;
  try {
    return { name, url, token: (await host.capture(program, args)).trim() };
  } catch (error) {
    throw new UsageError(
      `The program "${program}" of context ${name} printed no token: ${error instanceof Error ? error.message.trim() : String(error)}`,
      `Run it yourself: ${helper.join(" ")}`,
    );
  }
}

/**
 * Returns the installation to use: of `--context`, of `BRUME_URL` and `BRUME_TOKEN`, of `BRUME_CONTEXT`, the current context, or the local
 * installation, in this order.
 */
export async function findTarget(host: Host, wanted: string | null): Promise<Target> {
  const { env } = host;
  if (wanted === null && env["BRUME_URL"])
    return { name: "environment", url: env["BRUME_URL"], token: env["BRUME_TOKEN"] };
  const { current, contexts } = await readContexts(host);
  const name = wanted ?? env["BRUME_CONTEXT"] ?? current;
  if (name !== null && name !== undefined && name !== "" && !(name === "local" && contexts[name] === undefined)) {
    const context = contexts[name];
    if (context === undefined)
      throw new UsageError(`There is no context "${name}".`, "brume context list shows all of them.");
    return openContext(host, name, context);
  }
  const local = await findLocal(host);
  if (local !== null) return env["BRUME_TOKEN"] ? { ...local, token: env["BRUME_TOKEN"] } : local;
  if (env["BRUME_TOKEN"]) return { name: "local", url: defaultUrl, token: env["BRUME_TOKEN"] };
  throw new UsageError(
    "No installation is known.",
    "Start one with npm start in a clone of Brume, or add one: brume context add NAME --url URL",
  );
}
