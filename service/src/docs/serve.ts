/**
 * Serves the pages at `/docs`. Each page is made once. Its examples contain the address by which a reader calls the service, so a response is
 * compressed and kept for each address, as long as there is space. Browsers keep a page and request it with its ETag.
 */
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { OpenApi } from "@brume/api/components.ts";
import { originOf } from "../http/exchange.ts";
import { accepts } from "../http/head.ts";
import { type Docs, type Pages, pageHeaders } from "../http/pages.ts";
import type { Reply } from "../http/reply.ts";
import { exampleOrigin } from "./html.ts";
import type { Site } from "./site.ts";

const pack = { br: promisify(brotliCompress), gzip: promisify(gzip) };

/** Most bytes of all responses in memory. A client can choose the address in its `Host` header, and needs no token. */
const mostBytes = 4 * 1024 * 1024;

const types: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  json: "application/json; charset=utf-8",
  png: "image/png",
  svg: "image/svg+xml",
  webp: "image/webp",
};

/** A response. */
interface Kept {
  readonly type: string;
  readonly content: Buffer;
  readonly coding: "br" | "gzip" | null;
  readonly etag: string;
}

const headers = [...pageHeaders({ "Cache-Control": "no-cache", Vary: "Accept-Encoding" })];

function reply({ type, content, coding, etag }: Kept, known: string | undefined): Reply {
  const more = [...headers, "ETag", etag, ...(coding === null ? [] : ["Content-Encoding", coding])];
  if (known?.split(",").some((one) => one.trim().replace(/^W\//, "") === etag))
    return { status: 304, type, body: "", length: content.length, isPage: true, headers: more };
  return {
    status: 200,
    type,
    body: "",
    isPage: true,
    headers: more,
    file: {
      bytes: content.length,
      async send(response) {
        response.end(content);
      },
      async close() {},
    },
  };
}

/** Folder of the repository, or of the installed package. */
const root = fileURLToPath(new URL("../../..", import.meta.url));

/**
 * Serves the documents and the reference of the API that `describe` returns. The site is opened at the first request, because no other
 * request needs its libraries. A path below `/docs` that the site does not have is for the API.
 */
export function createDocs(describe: () => OpenApi, consoleFolder: string | undefined): Docs {
  const open = async (): Promise<Site> => {
    const { openSite } = await import("./site.ts");
    return openSite({ root, consoleFolder, api: describe() });
  };
  return serveSite(open, createKeptResponses(mostBytes));
}

/** The responses in memory. */
export interface KeptResponses {
  readonly bytes: number;
  find(key: string): Kept | undefined;
  /** Keeps a response, and drops the oldest ones if there is no space. */
  keep(key: string, response: Kept): void;
}

/** Creates an empty store of responses that together have at most `most` bytes. */
export function createKeptResponses(most: number): KeptResponses {
  const responses = new Map<string, Kept>();
  let bytes = 0;
  const sizeOf = (key: string, { content }: Kept): number => key.length + content.length;
  return {
    get bytes() {
      return bytes;
    },
    find: (key) => responses.get(key),
    keep(key, response) {
      const size = sizeOf(key, response);
      if (size > most || responses.has(key)) return;
      for (const [oldest, dropped] of responses) {
        if (bytes + size <= most) break;
        responses.delete(oldest);
        bytes -= sizeOf(oldest, dropped);
      }
      responses.set(key, response);
      bytes += size;
    },
  };
}

/** Serves a site, which `open` opens at the first request. */
export function serveSite(open: () => Promise<Site>, kept: KeptResponses): Docs {
  /** Texts of pages and of the search, with the address of the examples. */
  const texts = new Map<string, Promise<string | null>>();
  const making = new Map<string, Promise<Kept | null>>();
  let site: Promise<Site> | null = null;

  function textOf(path: string, { render, search }: Site): Promise<string | null> {
    const known = texts.get(path);
    if (known !== undefined) return known;
    const made =
      path === "/docs/search.json" ? search().then((all) => JSON.stringify(all)) : Promise.resolve(render(path));
    texts.set(path, made);
    // What does not exist or failed is not kept.
    made.then((text) => text === null && texts.delete(path)).catch(() => texts.delete(path));
    return made;
  }

  async function find(path: string, origin: string): Promise<{ type: string; content: Buffer } | null> {
    site ??= open();
    const opened = await site;
    const found = opened.file(path);
    if (found !== null) return { type: found.path.slice(found.path.lastIndexOf(".") + 1), content: found.content };
    const text = await textOf(path, opened);
    if (text === null) return null;
    const type = path.endsWith(".json") ? "json" : "html";
    return { type, content: Buffer.from(text.replaceAll(exampleOrigin, origin)) };
  }

  async function make(path: string, coding: "br" | "gzip" | null, origin: string): Promise<Kept | null> {
    const found = await find(path, origin);
    if (found === null) return null;
    const etag = `"${createHash("sha256").update(found.content).digest("base64url").slice(0, 16)}-${coding ?? "plain"}"`;
    const options = { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } };
    const content =
      coding === null
        ? found.content
        : await (coding === "br" ? pack.br(found.content, options) : pack.gzip(found.content));
    return { type: types[found.type] ?? "text/plain; charset=utf-8", content, coding, etag };
  }

  const pages: Pages = ({ request, head }) => {
    const { url = "", method } = request;
    if ((method !== "GET" && method !== "HEAD") || head.contentLength !== undefined) return null;
    const asked = url.split("?", 1)[0] ?? "";
    if (asked !== "/docs" && !asked.startsWith("/docs/")) return null;
    const path = asked.length > 5 && asked.endsWith("/") ? asked.slice(0, -1) : asked;
    const encodings = request.headers["accept-encoding"] ?? "";
    const isPacked = !/\.(?:png|webp)$/.test(path);
    const coding = isPacked ? ((["br", "gzip"] as const).find((one) => accepts(encodings, one)) ?? null) : null;
    const origin = originOf(request);
    const key = `${origin} ${coding} ${path}`;
    const known = request.headers["if-none-match"];
    const found = kept.find(key);
    if (found !== undefined) return reply(found, known);
    let made = making.get(key);
    if (made === undefined) {
      made = make(path, coding, origin).finally(() => making.delete(key));
      making.set(key, made);
    }
    return made.then((one) => {
      if (one !== null) kept.keep(key, one);
      return one && reply(one, known);
    });
  };

  return { pages, home: async (origin) => (await find("/docs", origin))?.content.toString() ?? "" };
}
