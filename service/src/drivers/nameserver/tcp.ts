/**
 * DNS over TCP (RFC 7766): many queries on one connection, answered in order, never more in memory than a client takes. A connection is
 * idle by the time since its last whole query, not its last byte, so that nobody keeps a place by dribbling.
 */
import { createServer, type Server, type Socket } from "node:net";
import { plainAddress } from "./rrl.ts";

export interface TcpLimits {
  readonly idleMs: number;
  readonly perAddress: number;
  readonly total: number;
}

export const TCP_LIMITS: TcpLimits = { idleMs: 10_000, perAddress: 64, total: 1024 };

/** No query is longer, signatures and options included; who announces more is not a DNS client. */
const QUERY_LIMIT = 4096;

interface Connection {
  readonly socket: Socket;
  readonly address: string;
  data: Buffer;
  /** Rest of the answer under way. */
  reply: Iterator<Buffer, void> | null;
  /** When the last query came or the last part of an answer went. */
  active: number;
  ended: boolean;
}

export interface TcpService {
  readonly server: Server;
  close(): void;
}

/** `answer` gives the answers to one message; `now` milliseconds. The server is returned without listening. */
export function serveTcp(
  answer: (packet: Buffer, address: string) => Iterable<Buffer>,
  now: () => number,
  limits: TcpLimits = TCP_LIMITS,
): TcpService {
  const connections = new Set<Connection>();
  const perAddress = new Map<string, number>();

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

  const advance = (connection: Connection): void => {
    const { socket } = connection;
    socket.cork();
    while (!socket.destroyed && !socket.writableNeedDrain) {
      if (connection.reply === null) {
        const query = nextQuery(connection);
        if (query === null) break;
        connection.reply = answer(query, connection.address)[Symbol.iterator]();
      }
      connection.active = now();
      const { done, value } = connection.reply.next();
      if (done === true) connection.reply = null;
      else writeMessage(socket, value);
    }
    socket.uncork();
    if (socket.destroyed) return;
    if (socket.writableNeedDrain) socket.pause();
    else if (connection.ended) socket.end();
    else socket.resume();
  };

  /** A transfer that fails on the way must not look complete. */
  const guarded = (connection: Connection): void => {
    try {
      advance(connection);
    } catch {
      connection.socket.destroy();
    }
  };

  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const address = plainAddress(socket.remoteAddress ?? "");
    const held = perAddress.get(address) ?? 0;
    socket.on("error", () => socket.destroy());
    if (address === "" || held >= limits.perAddress || connections.size >= limits.total) {
      socket.destroy();
      return;
    }
    const connection: Connection = { socket, address, data: Buffer.alloc(0), reply: null, active: now(), ended: false };
    connections.add(connection);
    perAddress.set(address, held + 1);
    socket.on("close", () => {
      connections.delete(connection);
      const left = (perAddress.get(address) ?? 1) - 1;
      if (left > 0) perAddress.set(address, left);
      else perAddress.delete(address);
    });
    socket.on("data", (chunk: Buffer) => {
      connection.data = connection.data.length === 0 ? chunk : Buffer.concat([connection.data, chunk]);
      guarded(connection);
    });
    socket.on("drain", () => guarded(connection));
    socket.on("end", () => {
      connection.ended = true;
      guarded(connection);
    });
  });

  const sweep = setInterval(
    () => {
      const oldest = now() - limits.idleMs;
      for (const { socket, active } of connections) if (active < oldest) socket.destroy();
    },
    Math.min(1000, limits.idleMs),
  );

  return {
    server,
    close() {
      clearInterval(sweep);
      server.close();
      for (const { socket } of connections) socket.destroy();
    },
  };
}

function writeMessage(socket: Socket, message: Buffer): void {
  const size = Buffer.allocUnsafe(2);
  size.writeUInt16BE(message.length);
  socket.write(size);
  socket.write(message);
}
