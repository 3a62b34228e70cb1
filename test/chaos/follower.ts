/** A reader of the event stream that reconnects after a loss and continues with `Last-Event-ID`. */
import { dial, type Line } from "../support/httpsocket.ts";
import type { Process } from "../support/process.ts";

export interface Follower {
  /** Ids in the order of arrival. */
  readonly ids: number[];
  /** Opens a stream; resolves at the start of the response. */
  follow(process: Process): Promise<void>;
  /** Resolves when the event with this id has arrived. */
  until(id: number): Promise<void>;
}

export function createFollower(last: number): Follower {
  const ids: number[] = [];
  let line: Line | null = null;
  let wake = (): void => {};

  async function read(from: Line): Promise<void> {
    for (;;) {
      const frame = await from.until("\n\n");
      const id = /^id: (\d+)$/m.exec(frame)?.[1];
      if (frame.includes("event: reset")) throw new Error("the stream was reset: events are lost");
      if (id === undefined) continue;
      ids.push(Number(id));
      wake();
    }
  }

  return {
    ids,
    async follow(process) {
      line?.close();
      line = await dial(process.port);
      const head = ["GET /event HTTP/1.1", `Authorization: Bearer ${process.token}`, "Accept: text/event-stream"];
      line.send(`${[...head, `Last-Event-ID: ${ids.at(-1) ?? last}`].join("\r\n")}\r\n\r\n`);
      const begun = await line.until("\r\n\r\n");
      if (!begun.startsWith("HTTP/1.1 200")) throw new Error(begun);
      // The stream ends with the service.
      read(line).catch(() => {});
    },
    async until(id) {
      while ((ids.at(-1) ?? last) < id)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    },
  };
}
