/**
 * strongSwan's control protocol VICI (src/libcharon/plugins/vici/README.md of strongSwan) on a Unix socket: a codec for its messages and a
 * connection. Responses have no number and arrive in the order of requests, with events between them. If one response is late, the
 * connection is closed, because later responses could not be assigned to requests.
 */
import { connect } from "node:net";
import { createSerialQueue } from "../../../base/serialqueue.ts";

/** A section with values: text, lists of text, sections. Numbers and booleans are text too (`10s`, `yes`). */
export interface Message {
  readonly [key: string]: string | readonly string[] | Message | undefined;
}

const element = { sectionStart: 1, sectionEnd: 2, keyValue: 3, listStart: 4, listItem: 5, listEnd: 6 } as const;

function encodeName(name: string): Buffer {
  const bytes = Buffer.from(name, "utf8");
  if (bytes.length > 0xff) throw new RangeError(`VICI: a name of ${bytes.length} bytes`);
  return Buffer.concat([Buffer.of(bytes.length), bytes]);
}

function encodeValue(value: string): Buffer {
  const bytes = Buffer.from(value, "utf8");
  if (bytes.length > 0xffff) throw new RangeError(`VICI: a value of ${bytes.length} bytes`);
  return Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 0xff), bytes]);
}

/** Encodes a message; undefined keys are omitted. Throws a RangeError for a name over 255 or a value over 65535 bytes. */
export function encode(message: Message): Buffer {
  const parts: Buffer[] = [];
  for (const [name, value] of Object.entries(message)) {
    if (value === undefined) continue;
    if (typeof value === "string") parts.push(Buffer.of(element.keyValue), encodeName(name), encodeValue(value));
    else if (isList(value)) {
      parts.push(Buffer.of(element.listStart), encodeName(name));
      for (const item of value) parts.push(Buffer.of(element.listItem), encodeValue(item));
      parts.push(Buffer.of(element.listEnd));
    } else parts.push(Buffer.of(element.sectionStart), encodeName(name), encode(value), Buffer.of(element.sectionEnd));
  }
  return Buffer.concat(parts);
}

const isList = (value: readonly string[] | Message): value is readonly string[] => Array.isArray(value);

type Section = Record<string, string | string[] | Message>;
const createSection = (): Section => Object.create(null) as Section;

/** Decodes a message. Throws for malformed bytes. Sections have no prototype, because their keys may be any text. */
export function decode(bytes: Buffer): Message {
  let at = 0;
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw new Error("VICI: a message ends too early");
    at += length;
    return bytes.subarray(at - length, at);
  };
  const name = (): string => take(take(1).readUInt8()).toString("utf8");
  const value = (): string => take(take(2).readUInt16BE()).toString("utf8");

  const root = createSection();
  const above: Section[] = [];
  let section = root;
  let list: string[] | null = null;
  while (at < bytes.length) {
    const type = take(1).readUInt8();
    if (list !== null) {
      if (type === element.listItem) list.push(value());
      else if (type === element.listEnd) list = null;
      else throw new Error(`VICI: element ${type} in a list`);
    } else if (type === element.keyValue) section[name()] = value();
    else if (type === element.listStart) section[name()] = list = [];
    else if (type === element.sectionStart) {
      above.push(section);
      section = section[name()] = createSection();
    } else if (type === element.sectionEnd && above.length > 0) section = above.pop() ?? root;
    else throw new Error(`VICI: element ${type} in a section`);
  }
  if (list !== null || above.length > 0) throw new Error("VICI: a message ends inside a section");
  return root;
}

/** Returns the text of a key, "" if there is none. */
export function text(message: Message | undefined, key: string): string {
  const found = message?.[key];
  return typeof found === "string" ? found : "";
}

/** Returns the list of a key, [] if there is none. */
export function texts(message: Message | undefined, key: string): readonly string[] {
  const found = message?.[key];
  return Array.isArray(found) ? (found as readonly string[]) : [];
}

/** Returns the direct subsections with their names. */
export function sections(message: Message | undefined): readonly (readonly [string, Message])[] {
  return Object.entries(message ?? {}).filter(
    (entry): entry is [string, Message] => typeof entry[1] === "object" && !Array.isArray(entry[1]),
  );
}

const packet = {
  request: 0,
  response: 1,
  unknownCommand: 2,
  register: 3,
  unregister: 4,
  confirm: 5,
  unknownEvent: 6,
  event: 7,
} as const;

/** Largest packet in bytes; strongSwan refuses larger ones too. */
const largestPacket = 512 * 1024;

/** A connection to charon. */
export interface Vici {
  /**
   * Sends a command. Rejects when charon reports failure (with its message), does not know the command, or does not respond within `limit`
   * milliseconds.
   */
  call(command: string, message?: Message, limit?: number): Promise<Message>;
  /** Sends a command that returns events; resolves to all events before its response. */
  stream(command: string, event: string, message?: Message, limit?: number): Promise<readonly Message[]>;
  /** Subscribes to an event. The listener must not throw. */
  listen(event: string, listener: (message: Message) => void): Promise<void>;
  /** Registers a listener for the end of the connection, also after `close`; called once. */
  onClose(listener: () => void): void;
  close(): void;
}

/** Connects to `path` within `limit` milliseconds. Rejects with ECONNREFUSED when no process listens on the socket. */
export function connectVici(path: string, limit = 3000): Promise<Vici> {
  const socket = connect(path);
  const waiting: { readonly settle: (type: number, body: Buffer) => void; readonly fail: (error: Error) => void }[] =
    [];
  const listeners = new Map<string, Set<(message: Message) => void>>();
  const closers: (() => void)[] = [];
  let received: Buffer = Buffer.alloc(0);
  let closed = false;

  const handle = (bytes: Buffer): void => {
    const type = bytes.readUInt8();
    if (type !== packet.event) {
      // Removed only afterwards: a malformed response ends the connection, and rejects this request.
      waiting[0]?.settle(type, bytes.subarray(1));
      waiting.shift();
      return;
    }
    const end = 2 + bytes.readUInt8(1);
    const message = decode(bytes.subarray(end));
    for (const listener of listeners.get(bytes.toString("latin1", 2, end)) ?? []) listener(message);
  };

  const send = (type: number, what: string, body: Buffer, limit: number): Promise<Message> =>
    new Promise((resolve, reject) => {
      if (closed) throw new Error(`VICI ${what}: the connection is closed`);
      const timer = setTimeout(
        () => socket.destroy(new Error(`VICI ${what}: no response within ${limit} ms`)),
        limit,
      ).unref();
      waiting.push({
        settle(type, body) {
          clearTimeout(timer);
          if (type === packet.confirm) resolve({});
          else if (type === packet.response) resolve(decode(body));
          else reject(new Error(`VICI: charon does not know ${what}`));
        },
        fail(error) {
          clearTimeout(timer);
          reject(new Error(`VICI ${what}: ${error.message}`, { cause: error }));
        },
      });
      const payload = Buffer.concat([Buffer.of(type), encodeName(what), body]);
      const length = Buffer.alloc(4);
      length.writeUInt32BE(payload.length);
      socket.write(Buffer.concat([length, payload]));
    });

  /** One command at a time, so that the events of a stream belong to it. */
  const { run: inTurn } = createSerialQueue();

  const request = async (command: string, message: Message, limit: number): Promise<Message> => {
    const response = await send(packet.request, command, encode(message), limit);
    if (response["success"] === "no") throw new Error(`VICI ${command}: ${text(response, "errmsg")}`);
    return response;
  };

  const vici: Vici = {
    call: (command, message = {}, limit = 5000) => inTurn(() => request(command, message, limit)),
    stream: (command, event, message = {}, limit = 5000) =>
      inTurn(async () => {
        const seen: Message[] = [];
        const set = listeners.get(event) ?? new Set();
        const listener = (message: Message): void => void seen.push(message);
        listeners.set(event, set.add(listener));
        try {
          await send(packet.register, event, Buffer.alloc(0), limit);
          await request(command, message, limit);
          await send(packet.unregister, event, Buffer.alloc(0), limit);
          return seen;
        } finally {
          set.delete(listener);
        }
      }),
    async listen(event, listener) {
      const set = listeners.get(event) ?? new Set();
      listeners.set(event, set.add(listener));
      await inTurn(() => send(packet.register, event, Buffer.alloc(0), 5000));
    },
    onClose(listener) {
      if (closed) listener();
      else closers.push(listener);
    },
    close() {
      socket.destroy();
    },
  };

  return new Promise((resolve, reject) => {
    let failure = new Error("the connection is closed");
    const timer = setTimeout(() => socket.destroy(new Error(`VICI: no connection within ${limit} ms`)), limit);
    socket.on("connect", () => {
      clearTimeout(timer);
      resolve(vici);
    });
    socket.on("error", (error) => {
      failure = error;
    });
    socket.on("close", () => {
      clearTimeout(timer);
      closed = true;
      reject(failure);
      for (const { fail } of waiting.splice(0)) fail(failure);
      for (const closer of closers.splice(0)) closer();
    });
    socket.on("data", (chunk: Buffer) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      try {
        while (received.length >= 4) {
          const end = 4 + received.readUInt32BE();
          if (end === 4 || end > largestPacket) throw new Error(`VICI: a packet of ${end - 4} bytes`);
          if (received.length < end) return;
          const bytes = received.subarray(4, end);
          received = received.subarray(end);
          handle(bytes);
        }
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
  });
}
