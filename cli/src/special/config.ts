/** `brume config`: the settings of the service of this installation. The service itself reads and validates them. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "../host.ts";
import { UsageError } from "../model/values.ts";
import { isOn, type Run, type Session, textFlag } from "../session.ts";

/** What the service reports about its settings. */
interface Report {
  readonly File: string | null;
  readonly Unknown: readonly string[];
  readonly Settings: readonly { Setting: string; Variable: string; Value: string | null; Source: string }[];
}

/** Returns the folder of the installation and its program of Node. Throws `UsageError` for a command line without one. */
export function serviceOf({ installation }: Host): { readonly folder: string; readonly node: string } {
  if (installation === null)
    throw new UsageError(
      "This command line belongs to no installation.",
      "Use the command of the clone that the service runs from.",
    );
  const own = join(installation, "node_modules/.bin/node");
  return { folder: installation, node: existsSync(own) ? own : process.execPath };
}

/** Reads the settings as the service reads them. `file`: this one instead of the usual file. Throws `UsageError` for an invalid setting. */
export async function readReport(host: Host, file?: string): Promise<Report> {
  const { folder, node } = serviceOf(host);
  const args = [join(folder, "service/src/main.ts"), "config", ...(file === undefined ? [] : [file])];
  try {
    return JSON.parse(await host.capture(node, args)) as Report;
  } catch (error) {
    const { stderr } = error as { stderr?: string };
    const reason = /^Brume did not start: (.*)$/ms.exec(stderr ?? "")?.[1]?.trim();
    if (reason === undefined) throw error;
    throw new UsageError(reason, "docs/operate.md describes every setting.");
  }
}

const fileOf = (session: Session) => textFlag(session, "file") ?? undefined;

/** `brume config check`. */
export const check: Run = async (session) => {
  const { print, host } = session;
  const { File, Unknown, Settings } = await readReport(host, fileOf(session));
  for (const name of Unknown) print.note(`${name} is set, but Brume has no setting of this name.`);
  const count = Settings.filter(({ Source }) => Source !== "default").length;
  print.lines([
    `Valid: ${count} setting${count === 1 ? "" : "s"}, ${File === null ? "no settings file" : `file ${File}`}.`,
  ]);
};

/** `brume config show`. */
export const show: Run = async (session) => {
  const { print, host, options } = session;
  const { Settings } = await readReport(host, fileOf(session));
  if (!["table", "wide"].includes(options.output)) return print.result(Settings, "", false);
  const hasSource = isOn(session, "source") || options.output === "wide";
  const rows = Settings.map(({ Setting, Value, Source }) => ({ Setting, Value, ...(hasSource && { Source }) }));
  await print.result(rows, "", false);
};
