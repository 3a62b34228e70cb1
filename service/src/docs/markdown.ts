/**
 * Renders the documents of the repository with markdown-it. Headings get the anchors that GitHub gives them, so that a link works in the
 * repository and on the site. Links to other documents lead to their pages; a file that the site does not have becomes text.
 */
import { posix } from "node:path";
import MarkdownIt from "markdown-it";
import { escape, exampleOrigin } from "./html.ts";

/** A rendered document. */
export interface Rendered {
  readonly title: string;
  readonly html: string;
}

/** Where the links of a document lead: from a path in the repository, such as `docs/guide.md`, to an address; null: the site does not have it. */
export type FindUrl = (path: string) => string | null;

/** Returns the anchor that GitHub gives to a heading: lower case, no punctuation, hyphens for blanks. */
const slugOf = (title: string): string =>
  title
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");

interface Place {
  readonly file: string;
  readonly find: FindUrl;
  /** Only a part of the document is rendered, on another page: links to its own headings lead to its page. */
  readonly isPart: boolean;
  /** Open links, true for those that became text. */
  readonly dropped: boolean[];
}

/** Resolves the target of a link in a document; null: the site does not have it. */
function resolveLink(href: string, { file, find, isPart }: Place): string | null {
  if (/^[a-z][a-z0-9+.-]*:/i.test(href) || href.startsWith("/") || (href.startsWith("#") && !isPart)) return href;
  const [path = "", anchor] = href.split("#");
  const url = find(path === "" ? file : posix.normalize(posix.join(posix.dirname(file), path)));
  return url === null ? null : url + (anchor === undefined ? "" : `#${anchor}`);
}

const placeOf = (env: object | undefined): Place => (env as { readonly place: Place }).place;

/** Creates the renderer of documents. */
export function createMarkdown() {
  const markdown = new MarkdownIt({ html: false, linkify: false });
  const { rules } = markdown.renderer;

  markdown.core.ruler.push("anchors", (state) => {
    const used = new Map<string, number>();
    for (const [index, token] of state.tokens.entries()) {
      if (token.type !== "heading_open") continue;
      const title = (state.tokens[index + 1]?.children ?? []).map(({ content }) => content).join("");
      const slug = slugOf(title);
      const count = used.get(slug) ?? 0;
      used.set(slug, count + 1);
      token.attrSet("id", count === 0 ? slug : `${slug}-${count}`);
    }
    // Rows that begin with a word in `code`, in tables of codes, have this word as their anchor.
    for (const [index, token] of state.tokens.entries()) {
      if (token.type !== "tr_open" || state.tokens[index + 1]?.type !== "td_open") continue;
      const [first, ...more] = state.tokens[index + 2]?.children ?? [];
      const word = first?.type === "code_inline" && more.length === 0 ? first.content : "";
      if (/^[a-z]+(?:_[a-z]+)+$|^(?:internal|crashed|superseded)$/.test(word) && !used.has(word)) {
        token.attrSet("id", word);
        used.set(word, 1);
      }
    }
  });
  rules["heading_close"] = (tokens, index) => {
    const id = tokens[index - 2]?.attrGet("id") ?? "";
    return ` <a class="self" href="#${escape(id)}" aria-label="Link to this section">#</a></${tokens[index]?.tag}>\n`;
  };
  rules["table_open"] = () => '<div class="wide" tabindex="0"><table>\n';
  rules["table_close"] = () => "</table></div>\n";
  rules["fence"] = (tokens, index) => {
    const { content = "" } = tokens[index] ?? {};
    const text = /^\s*(?:\$ )?curl\b/m.test(content)
      ? content.replaceAll(/http:\/\/(?:127\.0\.0\.1|localhost):8080/g, exampleOrigin)
      : content;
    return `<pre tabindex="0"><code>${escape(text)}</code></pre>\n`;
  };
  rules["code_block"] = rules["fence"];
  rules["link_open"] = (tokens, index, options, env, renderer) => {
    const place = placeOf(env);
    const token = tokens[index];
    const href = resolveLink(String(token?.attrGet("href") ?? ""), place);
    place.dropped.push(href === null);
    if (href === null || token === undefined) return "";
    token.attrSet("href", href);
    return renderer.renderToken(tokens, index, options);
  };
  rules["link_close"] = (_tokens, _index, _options, env) => (placeOf(env).dropped.pop() === true ? "" : "</a>");
  rules["image"] = (tokens, index, _options, env) => {
    const token = tokens[index];
    const source = resolveLink(String(token?.attrGet("src") ?? ""), placeOf(env));
    return source === null ? "" : `<img src="${escape(source)}" alt="${escape(token?.content ?? "")}" loading="lazy">`;
  };

  /** Renders a document, or with `isPart` a section of it for another page. `file` is the path of the document in the repository. */
  return (text: string, file: string, find: FindUrl, isPart = false): Rendered => {
    const place: Place = { file, find, isPart, dropped: [] };
    const html = markdown.render(text, { place });
    const title = /^# (.+)$/m.exec(text)?.[1] ?? file;
    return { title: title.replaceAll("`", ""), html };
  };
}

/** Returns the part of a document below a heading, up to the next heading of the same or a higher level. */
export function sectionOf(text: string, title: string): string {
  const lines = text.split("\n");
  const start = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, "") === title);
  if (start === -1) throw new Error(`there is no section ${title}`);
  const level = /^#+/.exec(lines[start] ?? "")?.[0].length ?? 0;
  const end = lines.findIndex((line, index) => index > start && new RegExp(`^#{1,${level}} `).test(line));
  return lines
    .slice(start + 1, end === -1 ? undefined : end)
    .join("\n")
    .trim();
}
