/**
 * Questions to other name servers, by UDP and TCP (RFC 1035 section 4.2, RFC 5936). The other side is a stranger: every wait and
 * every size has an end, an answer counts only if it is to our question, and trouble is a result, never an exception.
 */
import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { type Message, readMessage, writeQuery } from "./model/wire.ts";

export interface Server {
  /** As people know it, for sentences. */
  readonly name: string;
  /** IPv4 or IPv6. */
  readonly address: string;
  readonly port: number;
}

export interface Query {
  readonly id: number;
  /** ASCII, without final dot. */
  readonly name: string;
  readonly type: number;
}

/** The answer by UDP from a fresh port, by TCP if that was cut short; null if none comes within `waitMs` each or before `signal`. */
export async function ask(server: Server, query: Query, waitMs: number, signal: AbortSignal): Promise<Message | null> {
  const short = await askByUdp(server, query, waitMs, signal);
  if (!short?.isTruncated) return short;
  let full: Message | null = null;
  await exchange(server, query, waitMs, signal, (message) => {
    full = message;
    return false;
  });
  return full;
}

function askByUdp(server: Server, query: Query, waitMs: number, signal: AbortSignal): Promise<Message | null> {
  if (signal.aborted) return Promise.resolve(null);
  return new Promise((resolve) => {
    const socket = createSocket(server.address.includes(":") ? "udp6" : "udp4");
    const end = (answer: Message | null): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
      // Closing twice throws: an error may follow the answer.
      socket.removeAllListeners().on("error", () => {});
      socket.close();
      resolve(answer);
    };
    const giveUp = () => end(null);
    const timer = setTimeout(giveUp, waitMs);
    signal.addEventListener("abort", giveUp);
    socket.on("error", giveUp);
    socket.on("message", (bytes) => {
      const message = readMessage(bytes);
      if (message !== null && isAnswerTo(message, query)) end(message);
    });
    socket.on("connect", () => socket.send(writeQuery(query.id, query.name, query.type)));
    // A connected socket hears its peer only.
    socket.connect(server.port, server.address);
  });
}

/** What is wrong with a conversation; null: it was ended by who took the messages. */
export type ExchangeError = "unreachable" | "silent" | "broken" | null;

/**
 * Asks by TCP and hands over message after message until `take` says that it has enough (false). `idleMs` without a byte ends it.
 * A message that is not to the question, or cannot be read, breaks it.
 */
export function exchange(
  server: Server,
  query: Query,
  idleMs: number,
  signal: AbortSignal,
  take: (message: Message) => boolean,
): Promise<ExchangeError> {
  if (signal.aborted) return Promise.resolve("silent");
  return new Promise((resolve) => {
    const socket = connect({ host: server.address, port: server.port });
    let pending = Buffer.alloc(0);
    let isOver = false;
    const end = (trouble: ExchangeError): void => {
      if (isOver) return;
      isOver = true;
      signal.removeEventListener("abort", giveUp);
      socket.destroy();
      resolve(trouble);
    };
    const giveUp = () => end("silent");
    signal.addEventListener("abort", giveUp);
    socket.setTimeout(idleMs, giveUp);
    socket.on("error", () => end("unreachable"));
    socket.on("close", () => end("broken"));
    socket.on("connect", () => {
      const bytes = writeQuery(query.id, query.name, query.type);
      socket.write(Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 255), bytes]));
    });
    socket.on("data", (chunk: Buffer) => {
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
const isAnswerTo = ({ isAnswer, id, question }: Message, query: Query): boolean =>
  isAnswer &&
  id === query.id &&
  (question === null || (question.type === query.type && question.name.toLowerCase() === query.name));
