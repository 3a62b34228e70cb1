/**
 * DNS client for other name servers, by UDP and TCP (RFC 1035 section 4.2, RFC 5936). The servers are not trusted: every wait and size is
 * limited, a response must match the query, and failures are results, never exceptions.
 */
import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { type Message, readMessage, writeQuery } from "./model/wire.ts";

/** A name server to query. */
export interface DnsServer {
  /** Host name, for messages. */
  readonly name: string;
  /** IPv4 or IPv6. */
  readonly address: string;
  readonly port: number;
}

/** The question of a message, of class IN. */
export interface DnsQuestion {
  readonly id: number;
  /** ASCII, without final dot. */
  readonly name: string;
  readonly type: number;
}

/**
 * Sends a query by UDP from a new port, and by TCP if the response is truncated. Resolves to null if there is no response within `waitMs`
 * each, or before `signal` aborts.
 */
export async function sendQuery(
  server: DnsServer,
  query: DnsQuestion,
  waitMs: number,
  signal: AbortSignal,
): Promise<Message | null> {
  const short = await sendByUdp(server, query, waitMs, signal);
  if (!short?.isTruncated) return short;
  let full: Message | null = null;
  await exchange(server, query, waitMs, signal, (message) => {
    full = message;
    return false;
  });
  return full;
}

function sendByUdp(
  server: DnsServer,
  query: DnsQuestion,
  waitMs: number,
  signal: AbortSignal,
): Promise<Message | null> {
  if (signal.aborted) return Promise.resolve(null);
  return new Promise((resolve) => {
    const socket = createSocket(server.address.includes(":") ? "udp6" : "udp4");
    const end = (answer: Message | null): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      // An error may follow the response, and closing twice throws.
      socket.removeAllListeners().on("error", () => {});
      socket.close();
      resolve(answer);
    };
    const abort = () => end(null);
    const timer = setTimeout(abort, waitMs);
    signal.addEventListener("abort", abort);
    socket.on("error", abort);
    socket.on("message", (bytes) => {
      const message = readMessage(bytes);
      if (message !== null && isAnswerTo(message, query)) end(message);
    });
    socket.on("connect", () => socket.send(writeQuery(query.id, query.name, query.type)));
    // A connected socket receives only from its peer.
    socket.connect(server.port, server.address);
  });
}

/** Why an exchange failed; null: `take` ended it. */
export type ExchangeError = "unreachable" | "silent" | "broken" | null;

/**
 * Sends a query by TCP and passes each response message to `take` until it returns false. Ends with `silent` after `idleMs` without data,
 * and with `broken` at an invalid message or one that does not match the query.
 */
export function exchange(
  server: DnsServer,
  query: DnsQuestion,
  idleMs: number,
  signal: AbortSignal,
  take: (message: Message) => boolean,
): Promise<ExchangeError> {
  if (signal.aborted) return Promise.resolve("silent");
  return new Promise((resolve) => {
    const socket = connect({ host: server.address, port: server.port });
    let pending = Buffer.alloc(0);
    let isOver = false;
    const end = (error: ExchangeError): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      socket.destroy();
      resolve(error);
    };
    const abort = () => end("silent");
    let timer = setTimeout(abort, idleMs);
    signal.addEventListener("abort", abort);
    socket.on("error", () => end("unreachable"));
    socket.on("close", () => end("broken"));
    socket.on("connect", () => {
      const bytes = writeQuery(query.id, query.name, query.type);
      socket.write(Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 255), bytes]));
    });
    socket.on("data", (chunk: Buffer) => {
      clearTimeout(timer);
      timer = setTimeout(abort, idleMs);
      pending = Buffer.concat([pending, chunk]);
      while (!isOver && pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
        const message = readMessage(pending.subarray(2, 2 + pending.readUInt16BE(0)));
        pending = pending.subarray(2 + pending.readUInt16BE(0));
        if (message === null || !isAnswerTo(message, query)) end("broken");
        else if (!take(message)) end(null);
      }
    });
  });
}

/** Later messages of a transfer may leave the question out (RFC 5936 section 2.2.1). */
const isAnswerTo = ({ isAnswer, id, question }: Message, query: DnsQuestion): boolean =>
  isAnswer &&
  id === query.id &&
  (question === null || (question.type === query.type && question.name.toLowerCase() === query.name));
