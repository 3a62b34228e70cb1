/** `brume logs`: the serial log of a server. */
import { plainText } from "../print/style.ts";
import { idArgument, isOn, numberFlag, type Run } from "../session.ts";
import { pause } from "../time.ts";

/** How a log ends while the guest writes: with the beginning of a letter, or of a sequence for the terminal. */
const unfinished = /(?:\uFFFD|\p{Cc}\[[\d;?]*|[^\P{Cc}\n\r\t])$/u;
/** The line that replaces the middle of a very long log (`service/src/base/logfile.ts`). */
const gap = /^\[\d+ bytes are left out here\]$/m;

/** Returns what was written since `seen`. */
function newPart(seen: string, now: string): string {
  if (now.startsWith(seen)) return now.slice(seen.length);
  const end = seen.slice(-1000);
  const at = gap.test(now) ? now.lastIndexOf(end) : -1;
  // After a boot the log begins again.
  return at < 0 ? now : now.slice(at + end.length);
}

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
  const readFinished = async (): Promise<string> => (await read()).replace(unfinished, "");
  let seen = await readFinished();
  const lines = seen.split("\n");
  write(lines.slice(-(tail ?? 20) - 1).join("\n"));
  while (!host.signal.aborted) {
    await pause(1000, host.signal);
    const now = await readFinished();
    write(newPart(seen, now));
    seen = now;
  }
};
