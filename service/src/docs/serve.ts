/**
 * Serves the pages at `/docs`. Each response is compressed once and kept in memory, for each address by which readers call the service,
 * because examples contain this address. Browsers keep a page and request it with its ETag.
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

/** Most responses in memory. A client can choose the address in its `Host` header. */
const most = 300;

const types: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  json: "application/json; charset=utf-8",
  png: "image/png",
  svg: "image/svg+xml",
  webp: "image/webp",
};

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
  const kept = new Map<string, Promise<Kept | null>>();
  let site: Promise<Site> | null = null;

  async function find(path: string, origin: string): Promise<{ type: string; content: Buffer } | null> {
    site ??= open();
    const { render, file, search } = await site;
    if (path === "/docs/search.json")
      return { type: "json", content: Buffer.from(JSON.stringify(await search()).replaceAll(exampleOrigin, origin)) };
    const found = file(path);
    if (found !== null) return { type: found.path.slice(found.path.lastIndexOf(".") + 1), content: found.content };
    const page = render(path);
    return page === null ? null : { type: "html", content: Buffer.from(page.replaceAll(exampleOrigin, origin)) };
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
    let made = kept.get(key);
    if (made === undefined) {
      made = make(path, coding, origin);
      if (kept.size >= most) kept.clear();
      kept.set(key, made);
      // What does not exist or failed is not kept.
      void made.then((one) => one === null && kept.delete(key)).catch(() => kept.delete(key));
    }
    return made.then((one) => one && reply(one, request.headers["if-none-match"]));
  };

  return { pages, home: async (origin) => (await find("/docs", origin))?.content.toString() ?? "" };
}
