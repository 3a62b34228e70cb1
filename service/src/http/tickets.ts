/**
 * Tickets for WebSockets: whoever may have one gets it by a request like any other, and comes with it once, soon. So no token has to
 * stand in an address, which logs and histories keep. Known in memory only: a ticket is worth nothing after a restart.
 */
import { type Clock, steadyOf } from "../base/clock.ts";

export interface Ticket {
  /** Of the WebSocket, with the secret in it. */
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly expires: number;
}

/** Bytes both ways. */
export interface FarSide extends NodeJS.ReadWriteStream {
  destroy(error?: Error): void;
}

/** Makes what is on the other side of the WebSocket. */
export type OpenFarSide = () => Promise<FarSide>;

export interface Tickets {
  /** `folder` is the beginning of the path, such as `/console`. */
  issue(folder: string, open: OpenFarSide): Ticket;
  /** A ticket that is good leads there; it stays good. */
  has(path: string): boolean;
  /** From now on it is good no more. Undefined: it never was, or is too old. */
  take(path: string): OpenFarSide | undefined;
}

/** Milliseconds. */
export const ticketLife = 60_000;
const secretBytes = 32;

/** `random` gives so many random bytes. */
export function createTickets(clock: Clock, random: (bytes: number) => Uint8Array): Tickets {
  const issued = new Map<
    string,
    { /** By the steady clock. */ readonly expires: number; readonly open: OpenFarSide }
  >();
  const isGood = (path: string): boolean => (issued.get(path)?.expires ?? -Infinity) > steadyOf(clock);
  return {
    issue(folder, open) {
      for (const path of issued.keys()) if (!isGood(path)) issued.delete(path);
      const path = `${folder}/${Buffer.from(random(secretBytes)).toString("hex")}`;
      issued.set(path, { expires: steadyOf(clock) + ticketLife, open });
      return { path, expires: clock.now() + ticketLife };
    },
    has: isGood,
    take(path) {
      const open = isGood(path) ? issued.get(path)?.open : undefined;
      issued.delete(path);
      return open;
    },
  };
}
