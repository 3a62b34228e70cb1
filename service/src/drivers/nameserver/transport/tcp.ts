/**
 * DNS over TCP (RFC 7766): pipelined queries on a connection get responses in order, and memory per client is limited. Idle time counts
 * from the last complete query, so that single bytes do not keep a connection open. Connections take turns of a few responses each, with
 * checks of other sockets in between, so neither a thousand pipelined queries nor a large transfer delays other clients.
 */
import { createServer, type Server, type Socket } from "node:net";
import { networkOf, plainAddress } from "../../../base/address.ts";
import { createPlaces, type PlaceLimits } from "../../../base/places.ts";
import type { Turn } from "../answer/responder.ts";

/** Times in milliseconds. */
export interface TcpLimits extends PlaceLimits {
  readonly idleMs: number;
  /** Replaces `idleMs` while most places are in use. */
  readonly crowdedIdleMs: number;
  /** Time after which a client that reads nothing of waiting responses is disconnected. */
  readonly stallMs: number;
  /** Average bytes per second at which a client must read waiting responses, beyond `stallMs`. */
  readonly leastRate: number;
}

/** Limits of production. Tests use smaller ones. */
export const TCP_LIMITS: TcpLimits = {
  total: 1024,
  perNetwork: 128,
  idleMs: 10_000,
  crowdedIdleMs: 2000,
  stallMs: 20_000,
  leastRate: 8192,
};

/** Maximum bytes of a query with signatures and options. A longer one is not from a DNS client. */
const QUERY_LIMIT = 4096;
/** Maximum bytes of waiting queries per connection; beyond it the connection is not read. */
const WAITING_LIMIT = 4 * QUERY_LIMIT;
/** Responses, or messages of a transfer, in one turn of a connection. */
const TURN_STEPS = 16;
/** Maximum milliseconds of turns before other sockets are served. */
const SLICE_MS = 4;

interface Connection {
  readonly socket: Socket;
  readonly address: string;
  data: Buffer;
  /** Rest of the current response. */
  reply: Iterator<Turn, void> | null;
  /** Another thread composes the next part of the response. */
  isWaiting: boolean;
  /** Time of the last query, or of the last part of a response. */
  active: number;
  ended: boolean;
  /** Bytes of all responses, since when the client does not read them, and for how long it has not before. */
  sent: number;
  blockedSince: number | null;
  blockedMs: number;
}

/** A server that the caller starts and that `close` ends with its connections. */
export interface TcpService {
  readonly server: Server;
  close(): void;
}

/** Creates the server, without listening. `answer` returns the responses to one message (see `Turn`); `now` returns milliseconds. */
export function serveTcp(
  answer: (packet: Buffer, address: string) => Iterable<Turn>,
  now: () => number,
  limits: TcpLimits = TCP_LIMITS,
): TcpService {
  const places = createPlaces<Connection>(limits);
  /** Connections with work, in the order of their turns. */
  const waiting = new Set<Connection>();
  let isPlanned = false;

  const nextQuery = (connection: Connection): Buffer | null => {
    const { data } = connection;
    if (data.length < 2) return null;
    const size = data.readUInt16BE(0);
    if (size > QUERY_LIMIT) {
      connection.socket.destroy();
      return null;
    }
    if (data.length < 2 + size) return null;
    connection.data = data.subarray(2 + size);
    return data.subarray(2, 2 + size);
  };

  /** Runs one turn, which ends at `until`. Returns whether there is more work now. */
  const advance = (connection: Connection, until: number): boolean => {
    const { socket } = connection;
    let steps = 0;
    let isDone = false;
    socket.cork();
    for (; steps < TURN_STEPS && !socket.destroyed && !socket.writableNeedDrain; steps++) {
      if (connection.reply === null) {
        const query = nextQuery(connection);
        isDone = query === null;
        if (query === null) break;
        places.touch(connection);
        connection.active = now();
        connection.reply = answer(query, connection.address)[Symbol.iterator]();
      }
      const { done, value } = connection.reply.next();
      if (done === true) connection.reply = null;
      else if (value === null) break;
      else if (value instanceof Promise) {
        connection.isWaiting = true;
        const proceed = (): void => {
          connection.isWaiting = false;
          enqueue(connection);
        };
        value.then(proceed, proceed);
        break;
      } else if (value instanceof Uint8Array) writeMessage(connection, value);
      else writeMessage(connection, value.bytes, value.release);
      if (now() > until) break;
    }
    socket.uncork();
    if (socket.destroyed) return false;
    if (steps > 0 && connection.reply !== null) {
      places.touch(connection);
      connection.active = now();
    }
    if (socket.writableNeedDrain) {
      connection.blockedSince ??= now();
      socket.pause();
      return false;
    }
    if (connection.isWaiting) return false;
    if (!isDone) return true;
    if (connection.ended) socket.end();
    else socket.resume();
    return false;
  };

  /** Runs one turn and closes the connection on an error, so that a failed transfer does not look complete. */
  const guarded = (connection: Connection, until: number): boolean => {
    try {
      return advance(connection, until);
    } catch {
      connection.socket.destroy();
      return false;
    }
  };

  const run = (): void => {
    isPlanned = false;
    const until = now() + SLICE_MS;
    for (const connection of waiting) {
      waiting.delete(connection);
      if (guarded(connection, until)) waiting.add(connection);
      if (now() > until) break;
    }
    if (waiting.size > 0) plan();
  };

  const plan = (): void => {
    if (isPlanned) return;
    isPlanned = true;
    setImmediate(run);
  };

  const enqueue = (connection: Connection): void => {
    if (connection.blockedSince !== null || connection.isWaiting || connection.socket.destroyed) return;
    waiting.add(connection);
    plan();
  };

  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const address = plainAddress(socket.remoteAddress ?? "");
    socket.on("error", () => socket.destroy());
    if (address === "") {
      socket.destroy();
      return;
    }
    const connection: Connection = {
      socket,
      address,
      data: Buffer.alloc(0),
      reply: null,
      isWaiting: false,
      active: now(),
      ended: false,
      sent: 0,
      blockedSince: null,
      blockedMs: 0,
    };
    places.enter(connection, networkOf(address))?.socket.destroy();
    socket.on("close", () => {
      places.leave(connection);
      waiting.delete(connection);
      connection.reply?.return?.();
    });
    socket.on("data", (chunk: Buffer) => {
      connection.data = connection.data.length === 0 ? chunk : Buffer.concat([connection.data, chunk]);
      if (connection.data.length > WAITING_LIMIT) socket.pause();
      enqueue(connection);
    });
    socket.on("drain", () => {
      connection.blockedMs += now() - (connection.blockedSince ?? now());
      connection.blockedSince = null;
      enqueue(connection);
    });
    socket.on("end", () => {
      connection.ended = true;
      enqueue(connection);
    });
  });

  const isOverdue = ({ active, sent, blockedSince, blockedMs, reply }: Connection, time: number): boolean => {
    if (blockedSince === null) {
      const idleMs = places.isCrowded() ? limits.crowdedIdleMs : limits.idleMs;
      return reply === null && time - active > idleMs;
    }
    const blocked = time - blockedSince;
    return blocked > limits.stallMs || blockedMs + blocked > limits.stallMs + (sent / limits.leastRate) * 1000;
  };

  const sweep = setInterval(
    () => {
      const time = now();
      for (const connection of places.all()) if (isOverdue(connection, time)) connection.socket.destroy();
    },
    Math.min(1000, limits.idleMs, limits.crowdedIdleMs),
  );

  return {
    server,
    close() {
      clearInterval(sweep);
      server.close();
      for (const { socket } of places.all()) socket.destroy();
    },
  };
}

/** Writes a message. `sent` is called when its memory is no longer needed. */
function writeMessage(connection: Connection, message: Buffer, sent?: () => void): void {
  const size = Buffer.allocUnsafe(2);
  size.writeUInt16BE(message.length);
  connection.socket.write(size);
  connection.socket.write(message, sent);
  connection.sent += 2 + message.length;
}
