/**
 * Serves the built web console: `/` sends browsers to `/console/`, and all pages below it are `index.html`, whose script reads the address.
 * The files are in memory, compressed as they were built. Names of all files but `index.html` contain a hash of their content, so browsers
 * keep them for ever. A request that is for no page or file is null: an API client gets the same response as without the console.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import type { Exchange } from "./exchange.ts";
import { accepts } from "./head.ts";
import type { Reply } from "./reply.ts";

/** Returns the response for a browser; null: the request is for the API. */
export type Pages = (exchange: Pick<Exchange, "request" | "head">) => Reply | Promise<Reply | null> | null;

/** The pages at `/docs`. */
export interface Docs {
  readonly pages: Pages;
  /** Renders the first page with examples for this address of the service. */
  home(origin: string): Promise<string>;
}

const types: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  woff2: "font/woff2",
};

/** No inline script or style, no other host, no frame. WebSockets of the same host are part of `connect-src 'self'`. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
].join("; ");

/** Returns the headers of a page, alternating names and values. */
export const pageHeaders = (more: Readonly<Record<string, string>>): string[] =>
  Object.entries({
    "Content-Security-Policy": policy,
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    ...more,
  }).flat();
const consoleHeaders = pageHeaders({ "Cache-Control": "no-store", Vary: "Accept, Accept-Encoding" });
const fileHeaders = Object.entries({
  "Cache-Control": "public, max-age=31536000, immutable",
  Vary: "Accept-Encoding",
  "Cross-Origin-Resource-Policy": "same-origin",
}).flat();

/** Compressed forms in the order of preference: coding and suffix of the built file. */
const codings = [
  ["br", ".br"],
  ["gzip", ".gz"],
] as const;

interface Built {
  /** Time of the last change of `index.html`. */
  readonly time: number;
  readonly files: ReadonlyMap<string, Buffer>;
}

function readBuilt(folder: string, time: number): Built {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    statSync(join(folder, name)).isFile(),
  );
  return { time, files: new Map(names.map((name) => [name, readFileSync(join(folder, name))])) };
}

const timeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/** Serves the files of `folder`, which `scripts/build-console.ts` creates. Without them every request is for the API. */
export function createPages(folder: string): Pages {
  const index = join(folder, "index.html");
  let built: Built | null = null;

  /** Reads the files again after a build, which replaces `index.html` last. */
  const current = (): Built | null => {
    const time = timeOf(index);
    if (time === 0) return null;
    if (built?.time !== time) built = readBuilt(folder, time);
    return built;
  };

  function file({ files }: Built, name: string, encodings: string, headers: readonly string[]): Reply | null {
    const type = types[name.slice(name.lastIndexOf(".") + 1)];
    const plain = files.get(name);
    if (type === undefined || plain === undefined) return null;
    for (const [coding, suffix] of codings) {
      const packed = files.get(name + suffix);
      if (packed !== undefined && accepts(encodings, coding))
        return bytes(type, packed, [...headers, "Content-Encoding", coding]);
    }
    return bytes(type, plain, headers);
  }

  return ({ request, head }) => {
    const { url = "", method } = request;
    if ((method !== "GET" && method !== "HEAD") || head.contentLength !== undefined) return null;
    const path = url.split("?", 1)[0] ?? "";
    const isRoot = path === "/";
    if (!isRoot && path !== "/console" && !path.startsWith("/console/")) return null;
    const encodings = request.headers["accept-encoding"] ?? "";
    if (path.startsWith("/console/assets/")) {
      const files = built ?? current();
      return files && file(files, path.slice("/console/".length), encodings, fileHeaders);
    }
    if (!accepts(head.accept, "text/html")) return null;
    const files = current();
    if (files === null) return null;
    if (isRoot) return { ...bytes(null, Buffer.alloc(0), [...consoleHeaders, "Location", "/console/"]), status: 302 };
    return file(files, "index.html", encodings, [...consoleHeaders, "ETag", `"console-${files.time}"`]);
  };
}

const bytes = (type: string | null, buffer: Buffer, headers: readonly string[]): Reply => ({
  status: 200,
  type,
  body: "",
  isPage: true,
  headers,
  file: {
    bytes: buffer.length,
    async send(response: ServerResponse) {
      response.end(buffer);
    },
    async close() {},
  },
});
