/**
 * The table of contents of the pages at `/docs`: groups, the documents in each, and their addresses. A new document needs a line here, except
 * in folders, whose documents are sorted by file name. A test fails for documents in `docs/` that no page shows.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** A document of the repository, and its address on the site. */
export interface DocumentEntry {
  /** Path in the repository, such as `docs/guide.md`. */
  readonly file: string;
  /** Such as `/docs/guide`. */
  readonly url: string;
}

/** A part of the menu. */
export interface ContentsGroup {
  readonly title: string;
  readonly documents: readonly DocumentEntry[];
}

const designTitle = "Design";
/** Documents by name in `docs/`, and a folder below it with further ones. Names without a document are skipped. */
const groups: readonly (readonly [title: string, files: readonly string[], folder?: string])[] = [
  ["Start", ["start", "guide", "console", "faq"], "tutorials"],
  ["How-tos", ["certificates", "images", "cloud-file", "agent"], "how-to"],
  ["Operate", ["operate", "troubleshooting", "security", "sizing", "upgrade", "compatibility"], "operate"],
  ["Command line", ["cli"]],
  [designTitle, ["spec", "architecture", "engines"]],
  ["Decisions", [], "decisions"],
];

/** Documents beside `docs/` that its documents refer to. */
const outside: readonly DocumentEntry[] = [
  { file: "CHANGELOG.md", url: "/docs/changelog" },
  { file: "CONTRIBUTING.md", url: "/docs/contributing" },
];

/** The group of the pages that are rendered from the contract, and the group that follows it. */
export const reference = { title: "API reference", before: "Command line" } as const;

/** Lists the documents that exist in the repository at `root`, by group in the order of the menu. */
export function listContents(root: string): ContentsGroup[] {
  return groups.map(([title, files, folder]) => {
    const named = files.map((name) => ({ file: `docs/${name}.md`, url: `/docs/${name}` }));
    const path = folder === undefined ? "" : join(root, "docs", folder);
    const below =
      folder === undefined || !existsSync(path) ? [] : readdirSync(path).filter((name) => /^[\w-]+\.md$/.test(name));
    return {
      title,
      documents: [
        ...named.filter(({ file }) => existsSync(join(root, file))),
        ...below
          .sort()
          .map((name) => ({ file: `docs/${folder}/${name}`, url: `/docs/${folder}/${name.slice(0, -3)}` })),
        ...(title === designTitle ? outside.filter(({ file }) => existsSync(join(root, file))) : []),
      ],
    };
  });
}
