/**
 * All pages of `/docs`: the documents of the repository, the reference from the contract, the page of errors, and the texts for the search.
 * A page is rendered at its first request. This module loads the Markdown library, so the service imports it at the first request, too.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { OpenApi } from "@brume/api/components.ts";
import { listContents, reference as referenceGroup } from "./contents.ts";
import { type Assets, type MenuGroup, renderFrame } from "./frame.ts";
import { escape, heading, prose, textOf } from "./html.ts";
import { createMarkdown, type FindUrl, sectionOf } from "./markdown.ts";
import { type ReferencePage, renderReference, renderShared } from "./reference.ts";

/** A page without its frame. */
export type Page = ReferencePage;

/** A section for the search: address, title, title of its page, and text. */
export interface SearchEntry {
  readonly u: string;
  readonly t: string;
  readonly p: string;
  readonly x: string;
}

/** The pages and files below `/docs`. */
export interface Site {
  /** Addresses of all pages. */
  readonly urls: readonly string[];
  /** Returns the HTML of a page; null: there is no such page. */
  render(url: string): string | null;
  /** Returns a picture or another file of the documents: its content and path in the repository. */
  file(url: string): { readonly path: string; readonly content: Buffer } | null;
  /** Collects the sections of all pages. */
  search(): Promise<SearchEntry[]>;
}

/** What a site is made from. */
export interface SiteOptions {
  /** Folder of the repository. */
  readonly root: string;
  /** Folder of the built console, with the script and the style of the pages. */
  readonly consoleFolder?: string | undefined;
  readonly api: OpenApi;
}

/** Files beside documents that documents link to. */
const filePatterns = [
  "docs/**/*.{png,svg,webp,json}",
  "examples/**/*.{yaml,yml,json,tf,toml,ini,cfg,conf,rules,sh,md,png}",
];

function readAssets(folder: string | undefined): Assets | null {
  if (folder === undefined || !existsSync(join(folder, "docs.json"))) return null;
  return JSON.parse(readFileSync(join(folder, "docs.json"), "utf8")) as Assets;
}

/** Splits a page into the sections that the search finds: headings, and rows of tables that have an anchor. */
function* sectionsOf({ url, title, html }: Page): Generator<SearchEntry> {
  // The specification has the same rows as the page of errors.
  const isRow = (match: RegExpExecArray): boolean => match[4] !== undefined;
  const starts = [...html.matchAll(/<h([1-4])(?: id="([^"]*)")?>([^]*?)<\/h\1>|<tr id="(\w+)">/g)].filter(
    (match) => url === "/docs/errors" || !isRow(match),
  );
  for (const [index, match] of starts.entries()) {
    const { 2: id, 3: name = "", 4: row } = match;
    const part = html.slice(match.index, starts[index + 1]?.index);
    const anchor = row ?? id;
    const text = textOf(row === undefined ? part.slice(match[0].length) : part.slice(0, part.indexOf("</tr>")));
    const entry = { p: title, x: text.slice(0, 1500) };
    yield { u: anchor === undefined ? url : `${url}#${anchor}`, t: row ?? textOf(name), ...entry };
  }
}

/** Lists the pages and prepares them; renders none. */
export function openSite({ root, consoleFolder, api }: SiteOptions): Site {
  const contents = listContents(root);
  const documents = contents.flatMap(({ documents: all }) => all);
  const files = new Map(
    filePatterns
      .flatMap((pattern) => globSync(pattern, { cwd: root }))
      .filter((path) => !path.includes("node_modules"))
      .map((path) => [`/docs/files/${path}`, path]),
  );
  const urlByFile = new Map([
    ...documents.map(({ file, url }) => [file, url] as const),
    ["README.md", "/docs"] as const,
    ["docs/api-basics.md", "/docs/api"] as const,
    ...[...files].map(([url, path]) => [path, url] as const),
  ]);
  const find: FindUrl = (path) => urlByFile.get(path) ?? null;
  const renderMarkdown = createMarkdown();
  const read = (file: string): string => readFileSync(join(root, file), "utf8");
  const hasSpec = existsSync(join(root, "docs/spec.md"));
  const explain = (section: string): string =>
    hasSpec ? renderMarkdown(sectionOf(read("docs/spec.md"), section), "docs/spec.md", find, true).html : "";

  const pages = new Map<string, Page>();
  const makers = new Map<string, () => Page>(
    documents.map(({ file, url }) => [url, () => ({ url, ...renderMarkdown(read(file), file, find) })]),
  );
  const reference = renderReference(api, explain);
  for (const page of reference) makers.set(page.url, () => page);
  if (existsSync(join(root, "docs/api-basics.md")))
    makers.set("/docs/api", () => {
      const { title, html } = renderMarkdown(read("docs/api-basics.md"), "docs/api-basics.md", find);
      return { url: "/docs/api", title, html };
    });
  makers.set("/docs/errors", () => ({
    url: "/docs/errors",
    title: "Errors",
    html: `<h1>Errors</h1>${explain("Errors")}${heading(2, "shared-errors", "Errors of every operation")}${renderShared(api)}`,
  }));
  const titleOf = (file: string): string => (/^# (.+)$/m.exec(read(file))?.[1] ?? file).replaceAll("`", "");
  const referencePages = [
    ...(makers.has("/docs/api") ? [{ url: "/docs/api", title: titleOf("docs/api-basics.md") }] : []),
    ...reference.map(({ url, title }) => ({ url, title })),
    { url: "/docs/errors", title: "Errors" },
  ];
  const menu: MenuGroup[] = contents
    .filter(({ documents: all }) => all.length > 0)
    .map(({ title, documents: all }) => ({
      title,
      pages: all.map(({ file, url }) => ({ url, title: titleOf(file) })),
    }));
  const place = menu.findIndex(({ title }) => title === referenceGroup.before);
  menu.splice(place === -1 ? menu.length : place, 0, { title: referenceGroup.title, pages: referencePages });
  makers.set("/docs", () => ({ url: "/docs", title: "Brume", html: renderHome() }));

  /** The first paragraph of a document, as a summary. */
  const summaryOf = (file: string): string => {
    const [, paragraph = ""] = /^# .+\n+((?:(?!#|\||-|```).+\n)+)/m.exec(read(file)) ?? [];
    const plain = paragraph
      .replaceAll("\n", " ")
      .replace(/^\*\*[^*]+\*\*[:.] /, "")
      .replaceAll("**", "");
    const [sentence = ""] = /^[^]*?[.:](?=\s|$)/.exec(plain) ?? [];
    return prose(sentence.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1"));
  };
  /** Lists the codes of errors: their `type` leads here, and the script of the page opens the row of the code. */
  function listCodes(): string {
    const { html = "" } = pageOf("/docs/errors") ?? {};
    const codes = [...html.matchAll(/<tr id="(\w+)">/g)].map(([, code = ""]) => code);
    return codes.map((code) => `<a id="${code}" href="/docs/errors#${code}"><code>${code}</code></a>`).join(" ");
  }
  function renderHome(): string {
    const summaries = new Map<string, string>([
      ...documents.map(({ file, url }) => [url, summaryOf(file)] as const),
      ...api.tags.map(({ name, description }) => [`/docs/api/${name.toLowerCase()}`, prose(description)] as const),
      ["/docs/errors", "Every code with its cause and what to do."],
      ["/docs/api", "Tokens, paging, idempotency, waiting and errors."],
    ]);
    const parts = menu.map(({ title, pages: all }) => {
      const items = all.map(
        ({ url, title: name }) => `<li><a href="${url}">${escape(name)}</a><p>${summaries.get(url) ?? ""}</p></li>`,
      );
      return `<h2>${escape(title)}</h2><ul class="tiles">${items.join("")}</ul>`;
    });
    return `<h1>Brume documentation</h1>
<p>Brume turns one Linux host into a small private cloud: virtual servers, authoritative DNS, and public networks with firewall and VPN, behind one HTTP API.</p>
<p>Programs read the API from <a href="/openapi.json">/openapi.json</a>.</p>${parts.join("\n")}
<h2>Error codes</h2><p class="codes">${listCodes()}</p>`;
  }

  function pageOf(url: string): Page | null {
    const made = pages.get(url) ?? makers.get(url)?.() ?? null;
    if (made !== null) pages.set(url, made);
    return made;
  }

  return {
    urls: [...makers.keys()],
    render(url) {
      const page = pageOf(url);
      return page && renderFrame(page, menu, readAssets(consoleFolder), api.info.version);
    },
    file(url) {
      const path = files.get(url);
      return path === undefined ? null : { path, content: readFileSync(join(root, path)) };
    },
    async search() {
      const entries: SearchEntry[] = [];
      for (const url of makers.keys()) {
        const page = pageOf(url);
        if (page !== null && url !== "/docs") entries.push(...sectionsOf(page));
        // Other requests run between two pages.
        await nextTurn();
      }
      return entries;
    },
  };
}
