/** The frame of all pages: header with search, menu with the sections of the current page, and the page itself. No inline script or style. */

import { escape, textOf } from "./html.ts";
import type { ReferencePage as Page } from "./reference.ts";

/** Addresses of the script and the style sheet; null: the console is not built, and pages are plain. */
export interface Assets {
  readonly script: string;
  readonly style: string;
  readonly theme: string;
  readonly icon: string;
}

/** A title with links to pages. */
export interface MenuGroup {
  readonly title: string;
  readonly pages: readonly Pick<Page, "url" | "title">[];
}

/** A section of a page: anchor and title as text. */
export interface Section {
  readonly level: number;
  readonly id: string;
  readonly title: string;
}

/** Lists the headings of a page that have an anchor. */
function listSections(html: string): Section[] {
  return [...html.matchAll(/<h([1-4]) id="([^"]*)">([^]*?)<\/h\1>/g)].map(([, level, id = "", title = ""]) => ({
    level: Number(level),
    id,
    title: textOf(title),
  }));
}

/** Most entries of the current page in the menu; a page with more shows only its main sections. */
const mostSections = 60;

function renderSections(html: string): string {
  const all = listSections(html).filter(({ level }) => level === 2 || level === 3);
  const shown = all.length > mostSections ? all.filter(({ level }) => level === 2) : all;
  if (shown.length === 0) return "";
  const items = shown.map(
    ({ level, id, title }) => `<li class="level${level}"><a href="#${escape(id)}">${escape(title)}</a></li>`,
  );
  return `<ul class="sections">${items.join("")}</ul>`;
}

/** Returns the HTML document of a page. */
export function renderFrame(page: Page, menu: readonly MenuGroup[], assets: Assets | null, version: string): string {
  const groups = menu.map(({ title, pages }) => {
    const items = pages.map(({ url, title: name }) =>
      url === page.url
        ? `<li class="current"><a href="${url}" aria-current="page">${escape(name)}</a>${renderSections(page.html)}</li>`
        : `<li><a href="${url}">${escape(name)}</a></li>`,
    );
    return `<h2>${escape(title)}</h2><ul>${items.join("\n")}</ul>`;
  });
  const links =
    assets === null
      ? ""
      : `<link rel="icon" href="${assets.icon}" type="image/svg+xml">
<script src="${assets.theme}"></script>
<link rel="stylesheet" href="${assets.style}">
<script type="module" src="${assets.script}"></script>`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${page.url === "/docs" ? "Brume documentation" : `${escape(page.title)} – Brume`}</title>
${links}</head>
<body><a class="skip" href="#main">Skip to the content</a>
<header><button type="button" class="menu" hidden aria-expanded="false" aria-controls="menu">Menu</button>
<a class="brand" href="/docs">Brume <small>${escape(version)}</small></a>
<search hidden><input type="search" placeholder="Search" aria-label="Search the documents and the API" autocomplete="off" role="combobox" aria-expanded="false" aria-controls="found" aria-autocomplete="list"><ul id="found" role="listbox" aria-label="Results" hidden></ul></search>
<nav aria-label="Parts"><a href="/docs/api">API</a><a href="/console/">Console</a></nav></header>
<div class="frame"><nav id="menu" aria-label="Contents">${groups.join("\n")}</nav>
<main id="main" tabindex="-1">${page.html}</main></div></body></html>
`;
}
