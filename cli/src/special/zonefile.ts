/** `brume dns`: zone files of domains. */
import { UsageError } from "../model/values.ts";
import { confirm } from "../perform.ts";
import { type Row, recordValue, textOf } from "../print/columns.ts";
import { NotFound } from "../resolve.ts";
import { idArgument, isOn, type Run, type Session, textArgument } from "../session.ts";

/** `brume dns export`. */
export const exportFile: Run = async (session) => {
  const client = await session.client();
  const id = await idArgument(session, 0);
  session.host.out.write(await client.text("readDomain", { path: { id } }, { signal: session.host.signal }));
};

/** One change, as a line of a zone file with `-` or `+`. */
const lineOf = (sign: string, row: Row): string =>
  `${sign} ${textOf(row["PunyName"])} ${textOf(row["TTL"])} ${textOf(row["TypeRecord"])} ${recordValue(row)}`;

function linesOf(records: unknown, { style }: Session["print"]): string[] {
  return (records as { Before?: Row | null; After?: Row | null }[]).flatMap(({ Before, After }) => [
    ...(Before ? [style.red(lineOf("-", Before))] : []),
    ...(After ? [style.green(lineOf("+", After))] : []),
  ]);
}

/** Returns the zone file of the second argument. A command reads it once: standard input is empty after the first time. */
const readZone = (session: Session): Promise<string> => session.readText(textArgument(session, 1));

const sendZone = async (session: Session, id: number, ZoneFile: string, Mode: "Replace" | "Merge", dryRun: boolean) => {
  const client = await session.client();
  return client.importZone({ path: { id }, body: { ZoneFile, Mode } }, { dryRun, signal: session.host.signal });
};

/** `brume dns diff`. */
export const diff: Run = async (session) => {
  const id = await idArgument(session, 0);
  const { Records } = await sendZone(session, id, await readZone(session), "Replace", true);
  if (session.options.output === "table") session.print.lines(linesOf(Records, session.print));
  else await session.print.result(Records, "", false);
  return Records.length > 0 ? 1 : 0;
};

/** Returns the id of the domain, or null if it does not exist and the text is a name for a new one. */
async function findDomain(session: Session): Promise<number | null> {
  try {
    return await idArgument(session, 0);
  } catch (error) {
    if (error instanceof NotFound) return null;
    throw error;
  }
}

/** `brume dns import`. */
export const importFile: Run = async (session) => {
  const { print, host } = session;
  const name = textArgument(session, 0);
  const dryRun = isOn(session, "dry-run");
  if (isOn(session, "replace") && textArgument(session, 1) === "-" && !session.options.yes && !dryRun)
    throw new UsageError("The zone file is read from standard input, so nothing can be prompted.", "Add --yes.");
  const id = await findDomain(session);
  const ZoneFile = await readZone(session);
  if (id === null) {
    const client = await session.client();
    const made = await client.createDomain({ body: { Name: name, ZoneFile } }, { dryRun, signal: host.signal });
    return print.result(made, "Domain", false);
  }
  const mode = isOn(session, "replace") ? "Replace" : "Merge";
  const preview = await sendZone(session, id, ZoneFile, mode, true);
  if (session.options.output === "table") print.lines(linesOf(preview.Records, print));
  const removed = preview.Deleted === 1 ? "1 record" : `${preview.Deleted} records`;
  if (preview.Deleted > 0 && !dryRun) await confirm(session, `Import into ${name}: remove ${removed}`);
  const result = dryRun ? preview : await sendZone(session, id, ZoneFile, mode, false);
  const { Created, Updated, Deleted, Serial } = result;
  if (dryRun) print.note("Valid. Nothing was changed (--dry-run).");
  if (session.options.output !== "table") return print.result(result, "", true);
  print.lines([`${Created} created, ${Updated} updated, ${Deleted} deleted. Serial ${Serial}.`]);
};
