/**
 * WebSockets (RFC 6455), which connect a client with a target such as a console: bytes in both directions, in binary frames, at the pace
 * of the slower side. Only a request with a valid ticket becomes a WebSocket; the `Upgrade` of any other request is ignored.
 */
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { createWebSocketStream, type WebSocket, WebSocketServer } from "ws";
import type { Log } from "../base/log.ts";
import { connectionOf, isIdle } from "./exchange.ts";
import type { Stop } from "./stop.ts";
import type { TargetStream, Tickets } from "./tickets.ts";

/** Dependencies of the WebSockets. */
export interface UpgradeContext {
  readonly tickets: Tickets;
  readonly stop: Stop;
  readonly log: Log;
}

/** The WebSockets of a server. */
export interface Upgrades {
  /** Returns true if the request becomes a WebSocket. For `shouldUpgradeCallback` of node:http. */
  accepts(request: IncomingMessage): boolean;
  /** Handles the upgrades of `server`. */
  attach(server: Server): void;
  /** Closes all WebSockets with code 1001. */
  close(): void;
}

/** Maximum size in bytes of a message from a client. */
const mostBytes = 1024 * 1024;
/** Milliseconds between pings. A client without a pong since the last one is disconnected. */
const pingInterval = 30_000;

/** Close codes (RFC 6455 section 7.4.1). */
const goingAway = 1001;
const failed = 1011;

const pathOf = (request: IncomingMessage): string => (request.url ?? "").split("?", 1)[0] ?? "";

/** Creates the WebSockets of a server. */
export function createUpgrades({ tickets, stop, log }: UpgradeContext): Upgrades {
  const webSockets = new WebSocketServer({ noServer: true, maxPayload: mostBytes, perMessageDeflate: false });
  const alive = new WeakSet<WebSocket>();

  const pinging = setInterval(() => {
    for (const client of webSockets.clients) {
      if (!alive.delete(client)) client.terminate();
      else client.ping();
    }
  }, pingInterval);
  pinging.unref();

  async function connect(client: WebSocket, path: string): Promise<void> {
    // Buffers what the client sends before the target is open.
    const stream = createWebSocketStream(client);
    stream.on("error", () => client.terminate());
    alive.add(client);
    client.on("pong", () => alive.add(client));
    let target: TargetStream;
    try {
      const open = tickets.take(path);
      if (open === undefined) throw new Error("The ticket was used by another connection meanwhile.");
      target = await open();
    } catch (error) {
      log("warn", "The target of a WebSocket could not be opened.", { error });
      client.close(failed, "The target could not be opened.");
      return;
    }
    const disconnect = (): void => {
      target.destroy();
      // Sends the buffered bytes and closes the WebSocket.
      stream.end();
    };
    target.on("error", disconnect);
    target.on("close", disconnect);
    stream.on("close", disconnect);
    if (client.readyState !== client.OPEN) return disconnect();
    stream.pipe(target).pipe(stream);
  }

  return {
    accepts: (request) =>
      request.method === "GET" &&
      request.headers.upgrade?.toLowerCase() === "websocket" &&
      !stop.requested &&
      isIdle(connectionOf(request.socket)) &&
      tickets.has(pathOf(request)),
    attach(server) {
      server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
        socket.on("error", () => socket.destroy());
        webSockets.handleUpgrade(request, socket, head, (client) => {
          connect(client, pathOf(request)).catch((error: unknown) => {
            log("error", "A WebSocket failed.", { error });
            client.terminate();
          });
        });
      });
    },
    close() {
      clearInterval(pinging);
      for (const client of webSockets.clients) client.close(goingAway, "The service is stopping.");
    },
  };
}
