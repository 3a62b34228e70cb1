/**
 * The events of an agent: starts and ends of servers and new devices, numbered from 1 since the agent started. The last ones are kept, so a
 * client that reconnects gets what it missed, each event once. A client that missed more learns that, and observes everything.
 */
import type { ServerResponse } from "node:http";
import type { Machines } from "../drivers/machine/interface.ts";
import type { StreamEvent } from "./contract/session.ts";

/** Events that are kept for clients that reconnect. */
const kept = 4096;
/** Milliseconds between two signs of life. */
const alivePeriod = 2000;
/** Bytes that may wait for a slow client; it is disconnected beyond, and reads the rest when it comes back. */
const mostWaiting = 1 << 20;

/** The event log of one agent. */
export interface EventLog {
  /** Changes at each start of the agent. */
  readonly epoch: string;
  /** Number of the last event; 0: none. */
  last(): number;
  /** Sends the events after `after` and all later ones, until the response closes. `epoch`: the one that the client knows, or null. */
  stream(response: ServerResponse, epoch: string | null, after: number): void;
  /** Ends all streams and unsubscribes. */
  close(): void;
}

/** Creates the log and subscribes to the driver. */
export function createEventLog(machines: Pick<Machines, "onPower" | "onDevice">, epoch: string): EventLog {
  const events: { readonly number: number; readonly line: string }[] = [];
  const clients = new Set<ServerResponse>();
  let last = 0;

  function send(client: ServerResponse, line: string): void {
    client.write(line);
    if (client.writableLength > mostWaiting) client.destroy();
  }
  function publish(event: (number: number) => StreamEvent): void {
    last++;
    const line = `${JSON.stringify(event(last))}\n`;
    events.push({ number: last, line });
    if (events.length > kept) events.shift();
    for (const client of clients) send(client, line);
  }
  const leave = [
    machines.onPower((power) => publish((number) => ({ number, power }))),
    machines.onDevice((device) => publish((number) => ({ number, device }))),
  ];
  const timer = setInterval(() => {
    for (const client of clients) send(client, '{"alive":true}\n');
  }, alivePeriod);
  timer.unref();

  return {
    epoch,
    last: () => last,
    stream(response, known, after) {
      const isSame = known === epoch && after <= last;
      const isComplete = isSame && after >= (events[0]?.number ?? last + 1) - 1;
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      const missed = isComplete ? events.filter(({ number }) => number > after) : [];
      response.write(`${JSON.stringify({ epoch, last: isComplete ? after : last, isComplete })}\n`);
      for (const { line } of missed) response.write(line);
      clients.add(response);
      response.on("close", () => clients.delete(response));
    },
    close() {
      clearInterval(timer);
      for (const unsubscribe of leave) unsubscribe();
      for (const client of clients) client.destroy();
    },
  };
}
