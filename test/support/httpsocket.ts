/** A raw HTTP client for tests: it writes bytes to a socket and parses the responses itself. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** A parsed response. */
export interface TestResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
  readonly version: string;
}

/** A connection to the server under test. */
export interface Line {
  readonly socket: Socket;
  send(text: string | Uint8Array): void;
  /** Resolves to the next complete response; with `head` to one without body. Rejects if the connection ends before. */
  receive(head?: "head"): Promise<TestResponse>;
  /** Resolves to all further input until the connection ends. */
  rest(): Promise<string>;
  /** Resolves to the unread input up to and including `text`, when it has arrived. */
  until(text: string): Promise<string>;
  close(): void;
}

/** Connects to a port of this host, from `localAddress`. */
export async function dial(port: number, localAddress = "127.0.0.1"): Promise<Line> {
  const socket = connect({ port, host: "127.0.0.1", localAddress, allowHalfOpen: true });
  let buffer = Buffer.alloc(0);
  let ended = false;
  let wake = (): void => {};
  socket.on("data", (chunk) => {
    buffer = Buffer.concat([buffer, chunk]);
    wake();
  });
  for (const event of ["end", "close", "error"])
    socket.on(event, () => {
      ended = true;
      wake();
    });
  await once(socket, "connect");

  async function when<T>(find: () => T | null): Promise<T> {
    for (;;) {
      const found = find();
      if (found !== null) return found;
      if (ended) throw new Error(`the connection ended after ${JSON.stringify(buffer.toString("latin1").slice(-300))}`);
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }

  return {
    socket,
    send: (text) => void socket.write(text),
    close: () => socket.destroy(),
    receive: (kind) =>
      when(() => {
        const end = buffer.indexOf("\r\n\r\n");
        if (end < 0) return null;
        const [first = "", ...lines] = buffer.toString("latin1", 0, end).split("\r\n");
        const headers = new Map(
          lines.map((line) => [
            line.slice(0, line.indexOf(":")).toLowerCase(),
            line.slice(line.indexOf(":") + 1).trim(),
          ]),
        );
        const [version = "", status = ""] = first.split(" ");
        const continues = status.startsWith("1");
        const length = kind === "head" || continues ? 0 : Number(headers.get("content-length"));
        if (!Number.isInteger(length)) throw new Error(`no Content-Length in ${first}`);
        if (buffer.length < end + 4 + length) return null;
        const body = buffer.toString("utf8", end + 4, end + 4 + length);
        buffer = buffer.subarray(end + 4 + length);
        return { status: Number(status), headers, body, version };
      }),
    async rest() {
      while (!ended) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return buffer.toString("utf8");
    },
    until: (text) =>
      when(() => {
        const at = buffer.indexOf(text);
        if (at < 0) return null;
        const before = buffer.toString("utf8", 0, at + Buffer.byteLength(text));
        buffer = buffer.subarray(at + Buffer.byteLength(text));
        return before;
      }),
  };
}

/** Sends `text` on a new connection. Resolves to all input until the server closes it. */
export async function sendAndClose(port: number, text: string | Uint8Array): Promise<string> {
  const line = await dial(port);
  line.send(text);
  return line.rest().finally(line.close);
}
