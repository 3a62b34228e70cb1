/**
 * Exports of the contract, the driver interfaces, the store, the engine and `http/handler` have a docstring: other modules use them
 * without reading their code. No docstring only repeats the name of what it describes.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";

const root = resolve(import.meta.dirname, "../..");
const modulesIn = (pattern: string): string[] =>
  globSync(pattern, { cwd: root, exclude: ["**/node_modules/**", "**/dist/**", "**/*.test.ts"] }).sort();

interface Declaration {
  readonly line: number;
  readonly name: string;
  /** The text of the comment directly above; null: there is none. */
  readonly docstring: string | null;
}

/** Returns the declarations at the start of a line: all exports, and everything else that has a docstring. */
function readDeclarations(text: string): (Declaration & { readonly isExport: boolean })[] {
  const found = text.matchAll(
    /(?:^[ \t]*\/\*\*((?:(?!\*\/)[^])*)\*\/\n)?^[ \t]*(export )?(?:abstract |async )*(?:const|let|function\*?|interface|type|class) (\w+)/gm,
  );
  return [...found].map((match) => ({
    line: text.slice(0, match.index).split("\n").length,
    name: match[3] ?? "",
    docstring: match[1] ?? null,
    isExport: match[2] !== undefined,
  }));
}

/** Words that state nothing about what they describe. */
const empty = new Set(
  "a an the of for to in is are as by with and or its it this that each one all at be which returns creates".split(" "),
);
const stemOf = (word: string): string =>
  word
    .replace(/ies$/, "y")
    .replace(/(?:es|s|ed|ing)$/, "")
    .replace(/e$/, "");
const stemsOf = (text: string): string[] =>
  text
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "" && !empty.has(word))
    .map(stemOf);

/** Returns whether all words of the docstring are in the name. */
function repeats({ name, docstring }: Declaration): boolean {
  const known = new Set(stemsOf(name));
  return docstring !== null && stemsOf(docstring).every((word) => known.has(word));
}

const listOf = (files: readonly string[], isWrong: (one: ReturnType<typeof readDeclarations>[number]) => boolean) =>
  files.flatMap((file) =>
    readDeclarations(readFileSync(join(root, file), "utf8"))
      .filter(isWrong)
      .map(({ line, name }) => `${file}:${line}: ${name}`),
  );

test("exports that other layers use have a docstring", () => {
  const files = modulesIn(
    "{api/src/**,service/src/{store,engine}/**,service/src/drivers/*/interface,service/src/http/handler}.ts",
  );
  assert.ok(files.length > 60, `only ${files.length} modules found`);
  assert.deepEqual(
    listOf(files, ({ isExport, docstring }) => isExport && docstring === null),
    [],
  );
});

test("no docstring repeats the name", () => {
  assert.deepEqual(listOf(modulesIn("{api,service,cli}/**/*.ts"), repeats), []);
});

test("docstrings are read and compared", () => {
  const text = "/** The options of a caller. */\nexport interface CallerOptions {}\n\nexport const none = 1;\n";
  const [first, second] = readDeclarations(text);
  assert.deepEqual(
    [first?.name, first?.docstring, first && repeats(first)],
    ["CallerOptions", " The options of a caller. ", true],
  );
  assert.deepEqual([second?.name, second?.docstring, second?.line], ["none", null, 4]);
  const [good] = readDeclarations("/**\n * Calls with a deadline.\n */\nexport function* call() {}\n");
  assert.ok(good !== undefined && !repeats(good));
});
