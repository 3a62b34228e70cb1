/** `brume logs`: the serial log of a server. */
import { plainText } from "../print/style.ts";
import { idArgument, isOn, numberFlag, type Run } from "../session.ts";
import { pause } from "../time.ts";

export const run: Run = async (session) => {
  const { host } = session;
  const client = await session.client();
  const id = await idArgument(session, 0);
  const tail = await numberFlag(session, "tail");
  const read = async (lines?: number): Promise<string> =>
    client.readServerLog(
      {
        path: { id },
        query: { ...(lines !== undefined && { tail: lines }), ...(isOn(session, "previous") && { previous: true }) },
      },
      { signal: host.signal },
    );
  const write = (text: string) => host.out.write(plainText(text));
  if (!isOn(session, "follow")) {
    const text = await read(tail);
    write(text === "" || text.endsWith("\n") ? text : `${text}\n`);
    return;
  }
  let seen = await read();
  const lines = seen.split("\n");
  write(lines.slice(-(tail ?? 20) - 1).join("\n"));
  while (!host.signal.aborted) {
    await pause(1000, host.signal);
    const now = await read();
    // After a boot the log begins again.
    write(now.startsWith(seen) ? now.slice(seen.length) : now);
    seen = now;
  }
};
