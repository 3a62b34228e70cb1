/** Text as HTML: escaping, `code` in backticks, and tables. Every other module of the pages uses it. */

/** Address in the examples of the pages. The service replaces it by its own address, as the reader has called it. */
export const exampleOrigin = "http://brume.invalid";

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
/** Escapes text between tags and inside the quotes of an attribute. */
export const escape = (text: unknown): string => String(text).replaceAll(/[&<>"]/g, (sign) => entities[sign] ?? sign);
/** Renders text with `code` in backticks. */
export const prose = (text: unknown): string => escape(text).replaceAll(/`([^`]*)`/g, "<code>$1</code>");
/** Renders a word of the API. */
export const code = (text: unknown): string => `<code>${escape(text)}</code>`;

/** Renders a table that scrolls on narrow screens. Cells are HTML; no rows: nothing. */
export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  rows.length === 0
    ? ""
    : `<div class="wide" tabindex="0"><table><thead><tr>${head.map((cell) => `<th scope="col">${cell}</th>`).join("")}</tr></thead><tbody>${rows
        .map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join("")}</tr>`)
        .join("")}</tbody></table></div>`;

/** Renders a heading with an anchor and a link to itself. */
export const heading = (level: number, id: string, title: string): string =>
  `<h${level} id="${escape(id)}">${title} <a class="self" href="#${escape(id)}" aria-label="Link to this section">#</a></h${level}>`;

/** Returns the text of HTML that this module has made. */
export const textOf = (html: string): string =>
  html
    .replaceAll(/<a class="self"[^]*?<\/a>/g, "")
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&amp;", "&")
    .replaceAll(/\s+/g, " ")
    .trim();
