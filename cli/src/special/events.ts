/** `brume events`: the last events, or a stream of new ones. */
import { formatTable } from "../print/table.ts";
import { isOn, numberFlag, type Run, textFlag } from "../session.ts";

/** Events that are printed without `--after`. */
const last = 50;

const split = (text: string | undefined) => text?.split(",").filter((one) => one !== "");

export const run: Run = async (session) => {
  const { host, options, print } = session;
  const client = await session.client();
  const type = textFlag(session, "type");
  const resource = textFlag(session, "resource");
  const after = await numberFlag(session, "after");
  if (!isOn(session, "follow")) {
    const filter = { ...(type !== undefined && { type }), ...(resource !== undefined && { resource }) };
    const { signal } = host;
    if (after === undefined) {
      const newest = await client.listEvents({ query: { ...filter, newest: true, limit: last } }, { signal });
      return print.result(newest.toReversed(), "Event", false);
    }
    const events: unknown[] = [];
    for await (const event of client.items("listEvents", { query: { ...filter, after, limit: 1000 } }, { signal }))
      events.push(event);
    return print.result(events, "Event", false);
  }
  const types = split(type);
  const resources = split(resource);
  const stream = client.events({
    signal: host.signal,
    ...(types && { types }),
    ...(resources && { resources }),
    ...(after !== undefined && { after }),
  });
  let isFirst = true;
  for await (const event of stream) {
    if (event.Type === "reset") {
      print.note("Events are missing: the connection was lost for too long.");
      continue;
    }
    if (options.output === "json") host.out.write(`${JSON.stringify(event)}\n`);
    else if (options.output === "yaml") {
      const { stringify } = await import("yaml");
      host.out.write(`---\n${stringify(event, { lineWidth: 0 })}`);
    } else {
      const lines = formatTable([event], "Event", options.output === "wide", print.style);
      print.lines(isFirst ? lines : lines.slice(1));
    }
    isFirst = false;
  }
};
