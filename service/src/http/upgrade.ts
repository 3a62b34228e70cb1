/**
 * WebSockets (RFC 6455), for what does not fit into requests and answers: bytes both ways, in binary frames, at the pace of the slower
 * side. Only a request that comes with a good ticket becomes one; any other that asks for an upgrade is answered as if it had not.
 */
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { createWebSocketStream, type WebSocket, WebSocketServer } from "ws";
import type { Log } from "../base/log.ts";
import { connectionOf, isIdle } from "./exchange.ts";
import type { Stop } from "./stop.ts";
import type { FarSide, Tickets } from "./tickets.ts";

export interface UpgradeTools {
  readonly tickets: Tickets;
  readonly stop: Stop;
  readonly log: Log;
}

export interface Upgrades {
  /** For node:http: whether the request becomes a WebSocket. */
  wants(request: IncomingMessage): boolean;
  attend(server: Server): void;
  /** Says goodbye to all. */
  close(): void;
}

/** Bytes of one message from a client. */
const mostBytes = 1024 * 1024;
/** Milliseconds between signs of life, without which the other end counts as gone. */
const pulse = 30_000;

/** Codes of RFC 6455 section 7.4.1. */
const goingAway = 1001;
const failed = 1011;

const pathOf = (request: IncomingMessage): string => (request.url ?? "").split("?", 1)[0] ?? "";

export function createUpgrades({ tickets, stop, log }: UpgradeTools): Upgrades {
  const webSockets = new WebSocketServer({ noServer: true, maxPayload: mostBytes, perMessageDeflate: false });
  const alive = new WeakSet<WebSocket>();

  const heart = setInterval(() => {
    for (const one of webSockets.clients) {
      if (!alive.delete(one)) one.terminate();
      else one.ping();
    }
  }, pulse);
  heart.unref();

  async function bridge(near: WebSocket, path: string): Promise<void> {
    // What the client says meanwhile waits in here.
    const stream = createWebSocketStream(near);
    stream.on("error", () => near.terminate());
    alive.add(near);
    near.on("pong", () => alive.add(near));
    let far: FarSide;
    try {
      const open = tickets.take(path);
      if (open === undefined) throw new Error("the ticket was used by somebody else just now");
      far = await open();
    } catch (error) {
      log("warn", "The other side of a WebSocket could not be opened.", { error });
      near.close(failed, "The other side could not be opened.");
      return;
    }
    const part = (): void => {
      far.destroy();
      // Sends what is still to be sent, and says goodbye.
      stream.end();
    };
    far.on("error", part);
    far.on("close", part);
    stream.on("close", part);
    if (near.readyState !== near.OPEN) return part();
    stream.pipe(far).pipe(stream);
  }

  return {
    wants: (request) =>
      request.method === "GET" &&
      request.headers.upgrade?.toLowerCase() === "websocket" &&
      !stop.asked &&
      isIdle(connectionOf(request.socket)) &&
      tickets.has(pathOf(request)),
    attend(server) {
      server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
        socket.on("error", () => socket.destroy());
        webSockets.handleUpgrade(request, socket, head, (near) => {
          bridge(near, pathOf(request)).catch((error: unknown) => {
            log("error", "A WebSocket failed.", { error });
            near.terminate();
          });
        });
      });
    },
    close() {
      clearInterval(heart);
      for (const one of webSockets.clients) one.close(goingAway, "The service is stopping.");
    },
  };
}
