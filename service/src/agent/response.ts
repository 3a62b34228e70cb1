/**
 * Reads responses of HTTP/1.1 from a connection to the agent: those that `node:http` writes, with a length or in chunks. `node:http` as the
 * client costs twice as much as the rest of a call, so the client reads responses itself.
 */
import { StringDecoder } from "node:string_decoder";

/** A response. */
export interface Reply {
  readonly status: number;
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body; of a response of lines, the last one that is complete. */
  readonly text: string;
}

/** Reads one response. */
export interface ResponseReader {
  /** Takes the next bytes. Returns the bytes after the end of the response, null if it has not ended. Throws if it is not HTTP. */
  take(bytes: Buffer): Buffer | null;
  /** The response so far: without a body before its end. */
  readonly reply: Reply;
  /** Whether the connection can be used again. */
  readonly keeps: boolean;
}

/** Largest head, and largest line before a chunk, in bytes. */
const mostHead = 16_384;
const blank = Buffer.from("\r\n\r\n");
const none = Buffer.alloc(0);

/** Creates the reader of one response. With `onLine` its body is read as lines. */
export function createResponseReader(onLine?: (line: string) => void): ResponseReader {
  let reply: Reply = { status: 0, headers: {}, text: "" };
  let keeps = true;
  /** Bytes that are not complete: of the head, of the body, or of a line before a chunk. */
  let waiting: Buffer = none;
  let part: "head" | "body" | "size" | "chunk" | "end" | "trailer" = "head";
  /** Bytes until the end of the body or chunk. */
  let open = 0;
  const parts: Buffer[] = [];
  let text = "";
  let last = "";
  const decoder = new StringDecoder("utf8");

  function takeHead(bytes: Buffer): Buffer | null {
    const end = bytes.indexOf(blank);
    if (end < 0) {
      if (bytes.length > mostHead) throw new Error("the head of the response is too large");
      waiting = bytes;
      return null;
    }
    const [first = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n");
    const [, status] = /^HTTP\/1\.1 ([1-5]\d\d)( |$)/.exec(first) ?? [];
    if (status === undefined) throw new Error("the response is not HTTP");
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const colon = line.indexOf(":");
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    reply = { status: Number(status), headers, text: "" };
    keeps = headers["connection"] !== "close";
    const rest = bytes.subarray(end + blank.length);
    if (status === "101") return rest;
    if (headers["transfer-encoding"] === "chunked") part = "size";
    else {
      part = "body";
      open = Number(headers["content-length"]);
      if (!Number.isSafeInteger(open)) throw new Error("the response has no length");
    }
    return next(rest);
  }
  function takeText(more: string): void {
    text += more;
    if (onLine === undefined) return;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      last = text.slice(0, end);
      text = text.slice(end + 1);
      onLine(last);
    }
  }
  function finish(): void {
    reply = { ...reply, text: text === "" ? last : text };
  }
  function takeBody(bytes: Buffer): Buffer | null {
    const own = bytes.subarray(0, open);
    open -= own.length;
    parts.push(own);
    if (open > 0) return null;
    takeText((parts.length === 1 ? own : Buffer.concat(parts)).toString("utf8"));
    finish();
    return bytes.subarray(own.length);
  }
  /** Returns the line at the beginning and the bytes after it, null if it is not complete. */
  function takeLine(bytes: Buffer): { readonly line: string; readonly rest: Buffer } | null {
    const end = bytes.indexOf("\r\n");
    if (end >= 0) return { line: bytes.toString("latin1", 0, end), rest: bytes.subarray(end + 2) };
    if (bytes.length > mostHead) throw new Error("a line of the response is too long");
    waiting = bytes;
    return null;
  }
  function next(bytes: Buffer): Buffer | null {
    for (let rest = bytes; ; ) {
      if (part === "body") return takeBody(rest);
      if (part === "chunk") {
        const own = rest.subarray(0, open);
        open -= own.length;
        takeText(decoder.write(own));
        if (open > 0) return null;
        rest = rest.subarray(own.length);
        part = "end";
      }
      const found = takeLine(rest);
      if (found === null) return null;
      rest = found.rest;
      if (part === "size") {
        if (!/^[0-9a-f]{1,8}$/i.test(found.line)) throw new Error("a chunk of the response has no size");
        open = Number.parseInt(found.line, 16);
        part = open === 0 ? "trailer" : "chunk";
      } else if (part === "end") part = "size";
      else if (found.line === "") {
        finish();
        return rest;
      }
    }
  }
  return {
    take(bytes) {
      const all = waiting.length === 0 ? bytes : Buffer.concat([waiting, bytes]);
      waiting = none;
      return part === "head" ? takeHead(all) : next(all);
    },
    get reply() {
      return reply;
    },
    get keeps() {
      return keeps;
    },
  };
}
