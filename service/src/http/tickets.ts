/**
 * Tickets for WebSockets. An authenticated request issues a ticket, which opens one WebSocket within a minute. So no token is part of a
 * URL, which logs and histories store. Tickets exist only in memory and end with a restart.
 */
import { type Clock, steadyOf } from "../base/clock.ts";

/** A ticket for one WebSocket. */
export interface Ticket {
  /** Path of the WebSocket, which contains the secret. */
  readonly path: string;
  /** Time of expiry in ms since 1970. */
  readonly expires: number;
}

/** A byte stream in both directions to the target of a WebSocket, such as the console of a VM. */
export interface TargetStream extends NodeJS.ReadWriteStream {
  destroy(error?: Error): void;
}

/** Opens the target of a WebSocket. */
export type OpenTarget = () => Promise<TargetStream>;

/** The issued tickets. */
export interface Tickets {
  /** Issues a ticket. `folder` is the first part of its path, such as `/console`; `open` opens the target. */
  issue(folder: string, open: OpenTarget): Ticket;
  /** Returns true if a valid ticket has this path. */
  has(path: string): boolean;
  /** Uses up the ticket of this path. Returns undefined if it does not exist or has expired. */
  take(path: string): OpenTarget | undefined;
}

/** Life of a ticket in milliseconds. */
export const ticketLife = 60_000;
const secretBytes = 32;

/** Creates the tickets. `random` returns the given number of random bytes. */
export function createTickets(clock: Clock, random: (bytes: number) => Uint8Array): Tickets {
  const issued = new Map<
    string,
    { /** In ms of the steady clock. */ readonly expires: number; readonly open: OpenTarget }
  >();
  const isValid = (path: string): boolean => (issued.get(path)?.expires ?? -Infinity) > steadyOf(clock);
  return {
    issue(folder, open) {
      for (const path of issued.keys()) if (!isValid(path)) issued.delete(path);
      const path = `${folder}/${Buffer.from(random(secretBytes)).toString("hex")}`;
      issued.set(path, { expires: steadyOf(clock) + ticketLife, open });
      return { path, expires: clock.now() + ticketLife };
    },
    has: isValid,
    take(path) {
      const open = isValid(path) ? issued.get(path)?.open : undefined;
      issued.delete(path);
      return open;
    },
  };
}
