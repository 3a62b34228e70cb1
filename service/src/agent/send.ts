/**
 * Sends an image or disk copy to an agent. It continues where an interrupted transfer ended, also one of an earlier process. The agent
 * verifies the SHA-256 of every file, and uses the content only when it is complete.
 */
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ContentFile, ContentOf, Contents } from "../drivers/content/interface.ts";

/** Interruptions without any progress after which the transfer fails. */
const mostFailures = 5;

/** Sends the content `from` of one host to another, where it is `to`; resolves when it is complete there. */
export async function sendContent(source: Contents, from: ContentOf, target: Contents, to: ContentOf): Promise<void> {
  const files = await source.listFiles(from);
  let before = -1;
  for (let failures = 0; ; ) {
    const positions = await target.expectFiles(to, files);
    const isOpen = ({ bytes, number }: ContentFile): boolean => (positions[number] ?? 0) < bytes;
    const next = files.find(isOpen);
    if (next === undefined) return target.completeFiles(to);
    const total = positions.reduce((sum, bytes) => sum + bytes, 0);
    failures = total > before ? 0 : failures + 1;
    if (failures > mostFailures)
      throw new Error(`${next.name} ended after ${positions[next.number]} of ${next.bytes} bytes`);
    before = total;
    await sendFile(source, from, target, to, next, positions[next.number] ?? 0).catch((error: unknown) => {
      if (failures === mostFailures) throw error;
    });
  }
}

/** Sends one file from a position; resolves when the target has closed it. */
async function sendFile(
  source: Contents,
  from: ContentOf,
  target: Contents,
  to: ContentOf,
  { number }: ContentFile,
  position: number,
): Promise<void> {
  const sink = await target.writeFile(to, number, position);
  // The connection may break while the source is being opened, when no other code handles its error.
  const closed = once(sink, "close").catch(() => {});
  // An agent ends the connection when everything is on its disk; this side must read to notice that.
  if ("resume" in sink) (sink as Duplex).resume();
  try {
    await pipeline(await source.openFile(from, number, position), sink);
  } finally {
    await closed;
  }
}
