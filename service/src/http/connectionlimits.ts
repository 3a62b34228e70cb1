/**
 * Places of connections, so that those who open many do not use up the descriptors of files and keep others out. Connections that
 * wait for a request, or for the rest of its head, have places of their own: idle ones never take the place of a request under way,
 * an event stream or a WebSocket. Newcomers always get in, for the idlest of the network that has most.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { networkOf } from "../base/address.ts";
import { createPlaces, type PlaceLimits } from "../base/places.ts";

export interface CrowdLimits {
  /** Connections without a request. */
  readonly waiting: PlaceLimits;
  /** Connections with one: also event streams and WebSockets. */
  readonly serving: PlaceLimits;
}

export interface Crowd {
  attend(server: Server): void;
  /** A whole request came and is answered. */
  touch(socket: Socket): void;
  /** A request runs from now on. */
  hold(socket: Socket): void;
  /** It has ended. */
  release(socket: Socket): void;
}

/** The same for a socket and for TLS on it. */
const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

export function createCrowd(limits: CrowdLimits): Crowd {
  const sockets = new Map<string, Socket>();
  const waiting = createPlaces<string>(limits.waiting);
  const serving = createPlaces<string>(limits.serving);

  const enter = (places: typeof waiting, name: string, address: string): void => {
    const victim = places.enter(name, networkOf(address));
    if (victim !== null) sockets.get(victim)?.destroy();
  };
  const move = (from: typeof waiting, to: typeof waiting, socket: Socket): void => {
    const name = nameOf(socket);
    if (!sockets.has(name)) return;
    from.leave(name);
    enter(to, name, socket.remoteAddress ?? "");
  };

  return {
    attend(server) {
      server.on("connection", (socket: Socket) => {
        // Without an address it has gone again already.
        if (socket.remoteAddress === undefined) return;
        const name = nameOf(socket);
        sockets.set(name, socket);
        enter(waiting, name, socket.remoteAddress);
        socket.once("close", () => {
          // The far end may have a new connection of the same name.
          if (sockets.get(name) !== socket) return;
          sockets.delete(name);
          waiting.leave(name);
          serving.leave(name);
        });
      });
    },
    touch: (socket) => waiting.touch(nameOf(socket)),
    hold: (socket) => move(waiting, serving, socket),
    release: (socket) => move(serving, waiting, socket),
  };
}
