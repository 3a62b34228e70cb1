/**
 * DNS over UDP. At a hundred thousand packets a second the socket costs more than the response, so this module avoids overhead: Node
 * delivers the first datagram, and all that wait behind it share one system call; numeric addresses are not resolved, and the clock is not
 * read for every packet.
 */
import { type BindOptions, createSocket, type Socket } from "node:dgram";
import { isVersion6 } from "../../../base/address.ts";
import { clientAt } from "../answer/ratelimit.ts";
import type { Responder } from "../answer/responder.ts";
import type { Latency } from "../builtin/latency.ts";
import { type Batch, DATAGRAM, type Mmsg, PLACES, SOCKET_BUFFER } from "./mmsg.ts";
import { createOverload, type Overload } from "./overload.ts";

/** Maximum bytes that wait for the kernel; beyond it responses are dropped. */
const QUEUE_LIMIT = 4 << 20;
/** How long datagrams may keep other events of the thread waiting. */
const SLICE_MS = 2;

/** Creates a socket of the address's family, not bound. */
export function openUdp(host: string): Socket {
  return createSocket({
    type: isVersion6(host) ? "udp6" : "udp4",
    recvBufferSize: SOCKET_BUFFER,
    sendBufferSize: SOCKET_BUFFER,
    // The default lookup of dgram takes as long as a complete response.
    lookup: (address, _options, done) => done(null, address, 0),
  });
}

/** Binds to an address, or uses a descriptor that is bound. On failure it closes the socket and rejects with the system's error. */
export function bindUdp(socket: Socket, at: BindOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (error: Error): void => {
      socket.close();
      reject(error);
    };
    socket.once("error", refuse);
    socket.bind(at, () => {
      socket.off("error", refuse);
      resolve();
    });
  });
}

/** A socket that is served. */
export interface Served {
  readonly socket: Socket;
  /** Receives the datagrams after the one that Node delivered; null: Node delivers all. */
  readonly batch: Batch | null;
}

/** Binds a socket for the service. `mmsg` null: Node receives all datagrams. Rejects with the system's error. */
export async function listenUdp(mmsg: Mmsg | null, host: string, port: number): Promise<Served> {
  // Only the system knows the number of a zone (RFC 4007).
  const fast = mmsg === null || host.includes("%") ? null : { mmsg, fd: mmsg.bind(host, port) };
  const socket = openUdp(host);
  await bindUdp(socket, fast === null ? { address: host, port } : { fd: fast.fd, exclusive: true });
  return { socket, batch: fast && fast.mmsg.batch(fast.fd) };
}

/** Responds to every packet with `responder`; durations go to `latency`. */
export function serveUdp(
  { socket, batch }: Served,
  responder: Pick<Responder, "udp">,
  latency: Latency,
  overload = createOverload(),
): void {
  let clogged = false;
  let buffer = Buffer.alloc(DATAGRAM);
  /** The socket is not read until other events were handled. */
  let isPaused = false;
  let isClosed = false;
  socket.once("close", () => {
    isClosed = true;
  });
  /** Reads all that wait. It continues by itself after a pause: an overload must end also if no other datagram comes. */
  const readAll = (): void => {
    if (batch === null || isPaused || isClosed || answerAll(batch, responder, overload)) return;
    isPaused = true;
    setImmediate(() => {
      isPaused = false;
      readAll();
    });
  };
  socket.on("message", (packet, { address, port }) => {
    const started = latency.due() ? performance.now() : 0;
    // No socket has port 0: such a packet is forged, and dgram throws on it.
    if (port !== 0 && !(clogged && socket.getSendQueueSize() > QUEUE_LIMIT)) {
      packet.copy(buffer);
      const size = responder.udp(buffer, packet.length, clientAt(address, port), overload.isActive);
      const message = buffer.subarray(0, size);
      // Bytes that the kernel does not accept now are sent later, from the memory of the message.
      if (size > 0) socket.send(clogged ? Buffer.from(message) : message, port, address);
      const isClogged = socket.getSendQueueCount() > 0;
      if (isClogged && !clogged) buffer = Buffer.alloc(DATAGRAM);
      clogged = isClogged;
    }
    readAll();
    if (started === 0) return;
    const ended = performance.now();
    latency.add((ended - started) * 1000, ended);
  });
}

/** Responds to all that wait, for `SLICE_MS` at most. Returns whether the socket is empty. */
function answerAll(batch: Batch, responder: Pick<Responder, "udp">, overload: Overload): boolean {
  let until = 0;
  for (;;) {
    const came = batch.receive();
    const isEmpty = came < PLACES;
    const now = isEmpty ? 0 : performance.now();
    overload.received(came, isEmpty, now, batch.queued);
    for (let place = 0; place < came; place++) {
      const client = batch.client(place);
      if (overload.isActive && overload.drops(client.flow())) continue;
      const size = responder.udp(batch.packet(place), batch.size(place), client, overload.isActive);
      if (size > 0) batch.put(place, size);
      else if (overload.isActive) overload.drop();
    }
    if (came > 0) batch.send();
    if (isEmpty) return true;
    if (until === 0) until = now + SLICE_MS;
    else if (now > until) return false;
  }
}
