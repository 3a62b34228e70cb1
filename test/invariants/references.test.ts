/**
 * Every reference to a document resolves: the file exists, and has the heading that the anchor names. Links in documents are Markdown
 * links; comments write `docs/spec.md#record`, and `docs/spec.md#server, #server-states` for several. Numbered references ("section 4" of no named
 * standard, `law 3`) are rejected, since they name documents that are not in the repository.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "node:test";
import { quotas } from "@brume/api/account.ts";
import { contract } from "@brume/api/contract.ts";
import { errorCodes, fieldCodes } from "@brume/api/errors.ts";
import { eventTypes } from "@brume/api/event.ts";
import { type Operation, scopes } from "@brume/api/operation.ts";
import { taskErrors } from "@brume/api/work.ts";

const root = resolve(import.meta.dirname, "../..");
const self = relative(root, import.meta.filename);

/** Files of the repository, also those that are not committed yet. */
const listFiles = (): string[] =>
  execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: root, encoding: "utf8" })
    .split("\n")
    .filter((file) => /^[^.]/.test(file) && file !== "LICENSE" && file !== "package-lock.json" && file !== self)
    .filter((file) => !/\.(png|svg|gz|pem)$/.test(file) && existsSync(join(root, file)));

/** Anchors as GitHub makes them: lower case, no punctuation, hyphens for blanks, and a number behind a repeated one. */
function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, title = ""] of markdown.replace(/^```[^]*?^```/gm, "").matchAll(/^#{1,6} (.+)$/gm)) {
    const anchor = title
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-");
    for (let count = 0; ; count++) {
      const candidate = count === 0 ? anchor : `${anchor}-${count}`;
      if (anchors.has(candidate)) continue;
      anchors.add(candidate);
      break;
    }
  }
  return anchors;
}

interface Reference {
  readonly line: number;
  /** From the root of the repository. */
  readonly path: string;
  /** Heading; "" is the complete file. */
  readonly anchor: string;
}

const lineOf = (text: string, index: number): number => text.slice(0, index).split("\n").length;

/** References of one file by both forms. Blanks and `*` of comments within a list of anchors do not count. */
function referencesIn(file: string, text: string): Reference[] {
  const found: Reference[] = [];
  const add = (index: number, path: string, anchor = "") =>
    found.push({ line: lineOf(text, index), path: relative(root, resolve(root, path)), anchor });
  if (file.endsWith(".md"))
    for (const { index, 1: target = "" } of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [path = "", anchor] = target.split("#");
      add(index, path === "" ? file : join(dirname(file), path), anchor);
    }
  for (const { index, 1: path = "", 2: anchors = "" } of text.matchAll(
    /(?<![\w/.-]|\]\()(docs\/[\w/-]+\.md)((?:#[\w-]+(?:(?:,|,? and|;)[\s*]+(?=#))?)*)/g,
  )) {
    const names = [...anchors.matchAll(/#([\w-]+)/g)];
    if (names.length === 0) add(index, path);
    for (const [, anchor = ""] of names) add(index, path, anchor);
  }
  return found;
}

/** One sentence per reference that leads nowhere. `look` returns the anchors of a document, null where there is none. */
function brokenIn(file: string, text: string, look: (path: string) => ReadonlySet<string> | null): string[] {
  return referencesIn(file, text).flatMap(({ line, path, anchor }) => {
    const anchors = look(path);
    if (anchors === null) return [`${file}:${line}: there is no ${path}`];
    if (anchor === "" || !path.endsWith(".md") || anchors.has(anchor)) return [];
    return [`${file}:${line}: ${path} has no heading for #${anchor}`];
  });
}

/** What precedes the number of a section of a standard: its name, or another section of it. */
const standard =
  /(?:RFC \d+|UTS ?#?\d+|UAX #\d+|UEFI [\d.]+|WHATWG [A-Za-z]+|OpenAPI Specification [\d.]+|FAT specification [^;]*;[^;]*|publicsuffix\.org\)?)[^.()]{0,60}$/;

/** References by number to documents outside of the repository. */
function numberedIn(file: string, text: string): string[] {
  const flat = text.replace(/\n\s*(?:\*|\/\/|#)?\s*/g, (match) => " ".repeat(match.length));
  const patterns = [
    /\bapi sections?\b/gi,
    /\blaws? \d+\b/gi,
    /\b(?:api|design|hosts)\.md\b|\bengines\.md \d/g,
    /\bsections? \d+/gi,
    /\brules? \d+\.\d+/gi,
  ];
  return patterns.flatMap((pattern) =>
    [...flat.matchAll(pattern)]
      .filter(
        ({ 0: words, index }) =>
          !/^section/i.test(words) || !standard.test(flat.slice(Math.max(0, index - 100), index)),
      )
      .map(({ 0: words, index }) => `${file}:${lineOf(text, index)}: "${words}" names no document of the repository`),
  );
}

const read = (file: string): string => readFileSync(join(root, file), "utf8");

test("references name an existing document and heading", () => {
  const texts = listFiles().map((file) => ({ file, text: read(file) }));
  assert.ok(texts.length > 300, "the repository was listed");
  assert.ok(
    texts.reduce((sum, { file, text }) => sum + referencesIn(file, text).length, 0) > 200,
    "references were found",
  );
  const known = new Map<string, ReadonlySet<string> | null>();
  const searchIn = (path: string) => {
    if (!existsSync(join(root, path))) return null;
    if (!known.has(path)) known.set(path, path.endsWith(".md") ? anchorsOf(read(path)) : new Set());
    return known.get(path) ?? null;
  };
  assert.deepEqual(
    texts.flatMap(({ file, text }) => brokenIn(file, text, searchIn)),
    [],
  );
});

/** Documents that describe the code as it is; decisions and the list of changes describe it as it was. */
const isCurrent = (file: string): boolean => /^(?:docs\/[\w-]+|README|CONTRIBUTING|api\/README)\.md$/.test(file);

test("decisions are numbered without a gap, in file name and title", () => {
  const decisions = listFiles().filter((file) => file.startsWith("docs/decisions/"));
  const numbers = decisions.map((file) => Number(/\/(\d{4})-/.exec(file)?.[1])).sort((a, b) => a - b);
  assert.deepEqual(
    numbers,
    numbers.map((_, index) => index),
  );
  for (const file of decisions.filter((name) => !name.includes("/0000-")))
    assert.match(readFileSync(join(root, file), "utf8"), new RegExp(`^# ${Number(file.slice(15, 19))}\\. `), file);
});

test("source files that documents name exist", () => {
  const named = listFiles()
    .filter(isCurrent)
    .flatMap((file) =>
      [...read(file).matchAll(/`((?:api|cli|service|test|scripts|guest|bench)\/[\w./-]+)`/g)].map(([, path = ""]) => ({
        file,
        path,
      })),
    );
  assert.ok(named.length > 20, "names of files were found");
  assert.deepEqual(
    named.filter(({ path }) => !existsSync(join(root, path))).map(({ file, path }) => `${file}: there is no ${path}`),
    [],
  );
});

test("modules that documents name by the end of their path exist", () => {
  const files = listFiles();
  const named = files
    .filter(isCurrent)
    .flatMap((file) =>
      [...read(file).matchAll(/`(?:\.\.\/)?((?:[\w-]+\/)*[\w-]+\.ts)`/g)].map(([, path = ""]) => ({ file, path })),
    );
  assert.ok(named.length > 50, "names of modules were found");
  const missing = named.filter(({ path }) => !files.some((one) => one === path || one.endsWith(`/${path}`)));
  assert.deepEqual(
    missing.map(({ file, path }) => `${file}: there is no ${path}`),
    [],
  );
});

test("commands and settings that documents name exist", () => {
  const { scripts } = JSON.parse(read("package.json")) as { readonly scripts: Readonly<Record<string, string>> };
  const code = listFiles()
    .filter((file) => /^(?:service|cli|scripts|test|bench)\//.test(file))
    .map(read)
    .join("\n");
  const missing = listFiles()
    .filter(isCurrent)
    .flatMap((file) => {
      const text = read(file);
      const commands = [...text.matchAll(/\bnpm run ([\w:-]+)/g)].map(([, name = ""]) => name);
      const settings = [...text.matchAll(/\bBRUME_[A-Z0-9_]*[A-Z0-9]\b/g)].map(([name]) => name);
      return [
        ...commands.filter((name) => scripts[name] === undefined).map((name) => `${file}: there is no npm run ${name}`),
        ...settings.filter((name) => !code.includes(`"${name}"`)).map((name) => `${file}: there is no ${name}`),
      ];
    });
  assert.deepEqual([...new Set(missing)], []);
});

test("no reference by number to a document outside of the repository", () => {
  const found = listFiles().flatMap((file) => numberedIn(file, read(file)));
  assert.deepEqual(found, []);
});

test("broken and numbered references are found", () => {
  const documents: Readonly<Record<string, string>> = {
    "docs/a.md": "# One thing\n\n```\n# not a heading\n```\n\n## Two: `things`\n\n## One thing\n",
  };
  const searchIn = (path: string) => {
    const text = documents[path];
    return text === undefined ? null : anchorsOf(text);
  };
  const good = [
    ["x.ts", "/** Rules (docs/a.md#one-thing, #two-things;\n * #one-thing-1). See docs/a.md. */"],
    ["docs/b.md", "[a](a.md#two-things), [top](https://example.com/x.md#y), `docs/a.md#one-thing`"],
    ["docs/a.md", "[here](#one-thing)"],
  ] as const;
  for (const [file, text] of good) assert.deepEqual(brokenIn(file, text, searchIn), [], text);
  const bad = [
    ["x.ts", "// (docs/a.md#one-thing, #gone)"],
    ["x.ts", "\n// docs/gone.md#one-thing"],
    ["x.ts", "// docs/a.md#not-a-heading"],
    ["docs/b.md", "[a](a.md#gone)"],
    ["docs/b.md", "[a](gone.md)"],
    ["README.md", "[a](a.md)"],
  ] as const;
  for (const [file, text] of bad) assert.equal(brokenIn(file, text, searchIn).length, 1, text);
  assert.deepEqual(brokenIn("x.ts", "\n// docs/gone.md", searchIn), ["x.ts:2: there is no docs/gone.md"]);

  for (const text of [
    "(RFC 1035 section 4.2)",
    "RFC 9110, section 10.2.3",
    "RFC 1034 sections 3.6.2 and 4.2",
    "a flaw 3",
  ])
    assert.deepEqual(numberedIn("x.ts", text), [], text);
  for (const text of [
    "api sections 1.1 and 2",
    "Law 22",
    "(api\n * section 4)",
    "as section 4.3 says",
    "engines.md 4",
    "(rule 1.4.10)",
  ])
    assert.ok(numberedIn("x.ts", text).length > 0, text);
});

/** Names of fields, and words of enumerations, anywhere in a schema. */
function wordsIn(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { properties = {}, enum: words = [] } = schema as { properties?: object; enum?: readonly unknown[] };
  return [...Object.keys(properties), ...words.map(String), ...Object.values(schema).flatMap(wordsIn)];
}

test("the specification has every operation, field, word, code, event and quota of the contract", () => {
  const text = read("docs/spec.md");
  const words = new Set([...text.split(/[^\w.@-]+/), ...scopes]);
  const schemas = Object.values(contract).flatMap(({ body, query, answer }: Operation) => [body, query, answer]);
  const lines = new Set(text.split("\n"));
  const missing = [
    ...Object.values(contract)
      .map(({ method, path }) => `${method} ${path}`)
      .filter((operation) => !text.includes(`\`${operation}\``) && !lines.has(`#### ${operation}`)),
    ...new Set(schemas.flatMap(wordsIn).filter((word) => word !== "" && !words.has(word))),
    ...Object.entries(errorCodes)
      .map(([code, { status, message }]) => `| \`${code}\` | ${status} | ${message} | `)
      .filter((row) => !text.includes(`\n${row}`)),
    ...[...scopes, ...fieldCodes, ...Object.keys(taskErrors), ...eventTypes].filter(
      (word) => !text.includes(`\`${word}\``),
    ),
    ...Object.entries(quotas)
      .map(([name, quota]) => `\`${name}\` ${quota.default}`)
      .filter((quota) => !text.includes(quota)),
  ];
  assert.deepEqual(missing, []);
});
