/**
 * Limits the number of connections, in total and per client network, so that no client uses up the file descriptors. Connections without
 * a complete request count separately, so they never displace a running request, an event stream or a WebSocket. A new connection is
 * always accepted: at the limit it closes the longest idle connection of the network that has the most.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { networkOf } from "../base/address.ts";
import { createPlaces, type PlaceLimits } from "../base/places.ts";

/** Limits of the number of connections. */
export interface ConnectionLimits {
  /** Connections that wait for a request or the rest of its head. */
  readonly waiting: PlaceLimits;
  /** Connections with a running request, event stream or WebSocket. */
  readonly serving: PlaceLimits;
}

/** Counts the connections of a server and closes those beyond the limits. */
export interface ConnectionTracker {
  /** Starts to count the connections of `server`. */
  attach(server: Server): void;
  /** Records that a request was received and its response sent at once. */
  touch(socket: Socket): void;
  /** Records the start of a request. */
  startRequest(socket: Socket): void;
  /** Records the end of a request. */
  endRequest(socket: Socket): void;
}

/** Key of a connection: the same for a TCP socket and for the TLS socket on it. */
const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/** Creates the tracker of the connections of one server. */
export function createConnectionTracker(limits: ConnectionLimits): ConnectionTracker {
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
    attach(server) {
      server.on("connection", (socket: Socket) => {
        // A socket without an address is closed already.
        if (socket.remoteAddress === undefined) return;
        const name = nameOf(socket);
        sockets.set(name, socket);
        enter(waiting, name, socket.remoteAddress);
        socket.once("close", () => {
          // The client may have a new connection with the same port.
          if (sockets.get(name) !== socket) return;
          sockets.delete(name);
          waiting.leave(name);
          serving.leave(name);
        });
      });
    },
    touch: (socket) => waiting.touch(nameOf(socket)),
    startRequest: (socket) => move(waiting, serving, socket),
    endRequest: (socket) => move(serving, waiting, socket),
  };
}
