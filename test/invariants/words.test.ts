/**
 * Documents use plain words. CONTRIBUTING.md#words has the table of words that are not written; this test reads the table and looks for
 * each of them in the prose of every document. Strings and docstrings of the contract and of the command line, texts of the console,
 * messages of the service, and all comments and titles of tests are checked too. Names in code are not.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { type Passage, readComments, readMarkdown, readMessages, readTexts, tokenize } from "./wordsources.ts";

const root = resolve(import.meta.dirname, "../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");

/** The section that lists the words, and so contains them. */
const section = "Words";

interface Source {
  readonly files: string;
  readonly read: (text: string, file: string) => Passage[];
}

const sources = {
  documents: {
    files: "{README,CONTRIBUTING,CHANGELOG,api/README,docs/**/*}.md",
    read: (text, file) => readMarkdown(text, file === "CONTRIBUTING.md" ? section : undefined),
  },
  contract: { files: "api/src/**/!(*.test).ts", read: readTexts },
  "the command line": { files: "cli/src/**/!(*.test).ts", read: readTexts },
  "texts of the console": { files: "console/src/texts/**/!(*.test).ts", read: readTexts },
  messages: { files: "service/src/**/!(*.test).ts", read: readMessages },
  comments: { files: "{api,service,cli,test,scripts,bench}/**/*.ts", read: readComments },
} satisfies Record<string, Source>;

const checked = Object.keys(sources) as (keyof typeof sources)[];

interface Exception {
  readonly file: string;
  /** The exact text around the word. */
  readonly phrase: string;
  readonly reason: string;
}

const exceptions: readonly Exception[] = [
  {
    file: "api/src/errors.ts",
    phrase: "A CNAME record cannot stand beside other records.",
    reason: "a message of the interface that clients may compare",
  },
  {
    file: "api/src/errors.ts",
    phrase: "A CNAME record cannot stand at the top of a domain.",
    reason: "a message of the interface that clients may compare",
  },
  {
    file: "docs/spec.md",
    phrase: "A CNAME record cannot stand beside other records.",
    reason: "a message of the interface that clients may compare",
  },
  {
    file: "docs/spec.md",
    phrase: "A CNAME record cannot stand at the top of a domain.",
    reason: "a message of the interface that clients may compare",
  },
];

/** First column of the table of words: entries with commas between them. */
function readBanned(text: string): string[] {
  const [, table = ""] = /^\| do not write \| write \|\n\|[-|]+\|\n((?:\|.*\n)+)/m.exec(text) ?? [];
  return table
    .split("\n")
    .filter((row) => row !== "")
    .flatMap((row) => (row.split("|")[1] ?? "").split(","))
    .map((entry) => entry.trim());
}

/** Whole words in any letter case, with any blanks and line ends between them. */
const patternOf = (entry: string): RegExp =>
  new RegExp(`(?<![\\w-])${entry.replaceAll(/[.*+?^$()[\]{}|\\]/g, "\\$&").replaceAll(" ", "\\s+")}(?![\\w-])`, "gi");

const banned = readBanned(read("CONTRIBUTING.md"));
const patterns = [
  ...banned.map((entry) => ({ entry, pattern: patternOf(entry) })),
  // Legal only in names of identifiers and files of today, which a rename changes.
  { entry: "the old word for reconciler", pattern: /\bkeepe[r]s?\b/gi },
  {
    entry: "machine for a host or a VM",
    pattern: /(?<![\w/-]|virtual |state )machines?(?!\s(?:ids?|drivers?|protocol)\b|[\w-])/gi,
  },
];

/** Matches wherever one of the patterns does: most passages contain no banned word. */
const anyBanned = new RegExp(patterns.map(({ pattern }) => pattern.source).join("|"), "i");

/** Returns one sentence for each banned word in a text. */
function findWords({ read: extract }: Source, file: string, text: string): string[] {
  const allowed = exceptions.filter((exception) => exception.file === file);
  return extract(text, file).flatMap(({ line, text: passage }) => {
    const rest = allowed.reduce((left, { phrase }) => left.replaceAll(phrase, ""), passage);
    if (!anyBanned.test(rest)) return [];
    return patterns.flatMap(({ entry, pattern }) =>
      [...rest.matchAll(pattern)].map(({ 0: word, index }) => {
        const at = line + rest.slice(0, index).split("\n").length - 1;
        return `${file}:${at}: "${word.replaceAll(/\s+/g, " ")}" (${entry})`;
      }),
    );
  });
}

for (const name of checked)
  test(`${name} use plain words`, () => {
    const source = sources[name];
    const files = globSync(source.files, { cwd: root, exclude: (path) => path.includes("node_modules") }).sort();
    assert.ok(files.length > 10, `only ${files.length} files found`);
    assert.deepEqual(
      files.flatMap((file) => findWords(source, file, read(file))),
      [],
    );
  });

test("every exception is used", () => {
  const unused = exceptions.filter(({ file, phrase }) => !read(file).includes(phrase));
  assert.deepEqual(unused, []);
});

test("the table of words is read", () => {
  assert.ok(banned.length > 40, `only ${banned.length} entries found`);
  assert.equal(new Set(banned).size, banned.length, "no entry twice");
  assert.deepEqual(
    banned.filter((entry) => !/^[a-z'’ -]+$/i.test(entry)),
    [],
  );
});

test("banned words are found in documents, and only in their prose", () => {
  const found = (text: string) => findWords(sources.documents, "x.md", text).length;
  const good = [
    "A flaw in the lawn.",
    "`wish`",
    "```\nwish\n```",
    "[a](wish.md)",
    "machine-readable, virtual machines",
    "the machine id",
  ];
  for (const text of good) assert.equal(found(text), 0, text);
  for (const entry of banned) {
    assert.ok(found(`It ${entry} here.`) > 0, entry);
    assert.ok(found(`- It\n  ${entry.toUpperCase().replaceAll(" ", "\n  ")} here.`) > 0, entry);
  }
  assert.deepEqual(findWords(sources.documents, "x.md", "One.\n\nTwo `a`\nwish.\n"), ['x.md:4: "wish" (wish)']);
  assert.equal(found("## Words\n\nwish\n"), 1, "the section is left out of one file only");
  assert.equal(findWords(sources.documents, "CONTRIBUTING.md", "## Words\n\nwish\n\n## Style\n\nwish\n").length, 1);
});

test("banned words are found in strings of code", () => {
  const contract = (code: string) => findWords(sources.contract, "x.ts", code).length;
  assert.equal(contract('const a = { summary: "The old wish" };'), 1);
  assert.equal(contract("const a = `The ${b(`old wish`)} wish`;"), 2);
  assert.equal(contract("/** The old\n * wish. */\nconst wish = 1;"), 1);
  assert.equal(contract('// The old wish\nconst wish = import("the/wish.ts");'), 0);
  assert.equal(contract('const a = /"/; const b = "the old wish"; const c = 1 / 2; const d = "/";'), 1);
  const comments = (code: string) => findWords(sources.comments, "x.ts", code).length;
  assert.equal(comments("// The old wish\nconst wish = 1; /* The old wish, `wish` */"), 2);
  assert.equal(comments('test("the old wish", () => { f("the old wish", `the old wish`); });'), 1);
  assert.equal(comments("describe(`the old wish of ${a}`, () => {});"), 1);
  const messages = (code: string) => findWords(sources.messages, "x.ts", code).length;
  assert.equal(messages('log("info", `The old wish of ${id}`, { id });'), 1);
  assert.equal(messages('throw new ApiError("internal", "The old wish");'), 1);
  assert.equal(messages('const a = "The old wish"; /** The old wish. */'), 0);
  assert.equal(messages("const detail = `${a} is the old wish.`;"), 1);
  assert.equal(messages('throw new Error(a(["The old wish"].join()));'), 1);
  const { length } = globSync("service/src/**/*.ts", { cwd: root }).flatMap((file) => readMessages(read(file)));
  assert.ok(length > 200, `only ${length} messages found in the service`);
  assert.deepEqual(
    tokenize('a(`b ${c({ d: "e" })} f`, "g")').map(({ text, calls }) => [text, calls]),
    [
      ["e", ["a", "c"]],
      ["b … f", ["a"]],
      ["g", ["a"]],
    ],
  );
});
