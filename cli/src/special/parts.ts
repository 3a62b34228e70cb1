/** Commands that show a part of an object: records of a domain, the firewall of a network, the projects of the account. */
import { idArgument, type Run, textFlag } from "../session.ts";

/** `brume record list`. */
export const records: Run = async (session) => {
  const client = await session.client();
  const { LinkedRecords } = await client.readDomain(
    { path: { id: await idArgument(session, 0) } },
    { signal: session.host.signal },
  );
  const types = textFlag(session, "type")?.toUpperCase().split(",");
  const rows = LinkedRecords.filter(({ TypeRecord }) => types === undefined || types.includes(TypeRecord));
  await session.print.result(rows, "Record", false);
};

/** `brume project list`. */
export const projects: Run = async (session) => {
  const client = await session.client();
  const { Projects } = await client.readAccount({}, { signal: session.host.signal });
  await session.print.result(Projects, "ProjectSummary", false);
};

/** `brume firewall get`. */
export const firewall: Run = async (session) => {
  const client = await session.client();
  const { Firewall } = await client.readPublicNetwork(
    { path: { id: await idArgument(session, 0) } },
    { signal: session.host.signal },
  );
  const { Rules, ...rest } = Firewall;
  if (!["table", "wide"].includes(session.options.output)) return session.print.result(Firewall, "", true);
  await session.print.result(rest, "", true);
  if (Rules.length > 0) await session.print.result(Rules, "", false);
};
