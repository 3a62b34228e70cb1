/**
 * Every value that a module exports is used by another file, so an `export` shows that others depend on it. The contract is a package:
 * its users are outside too. Types are not checked, since a function may return one that no other file names.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";

const root = resolve(import.meta.dirname, "../..");
const texts = new Map(
  globSync("{api,service,cli,console,test,bench,scripts}/**/*.{ts,tsx}", {
    cwd: root,
    exclude: ["**/node_modules/**", "*/dist/**"],
  }).map((file) => [file, readFileSync(join(root, file), "utf8")]),
);

/** Values that a generated program uses or defines. */
const generated = new Set([
  "scripts/testprocess.ts: runFiles",
  "scripts/build-cli.ts: operationNames",
  "scripts/build-cli.ts: contract",
]);

interface Uses {
  /** `file: name` of imported values. */
  readonly names: Set<string>;
  /** The texts that import a complete module, by its file. */
  readonly whole: Map<string, string[]>;
}

/** Returns what the files import of each other. */
function findUses(files: ReadonlyMap<string, string>): Uses {
  const names = new Set<string>();
  const whole = new Map<string, string[]>();
  for (const [file, text] of files)
    for (const match of text.matchAll(/\bfrom\s+"([^"]+)"|\bimport\(\s*"([^"]+)"/g)) {
      const path = match[1] ?? match[2] ?? "";
      if (!/^(?:\.|@brume\/api\/)/.test(path)) continue;
      const to = path.startsWith(".") ? join(file, "..", path) : path.replace("@brume/api", "api/src");
      const [, list] = /\{([^{}]*)\}\s*$/.exec(text.slice(0, match.index)) ?? [];
      if (match[1] !== undefined && list !== undefined)
        for (const [, name = ""] of list.matchAll(/(?:^|,)\s*(?:type\s+)?(\w+)/g)) names.add(`${to}: ${name}`);
      else whole.set(to, [...(whole.get(to) ?? []), text]);
    }
  return { names, whole };
}

/** Returns the exported values of the file that no other file uses. A page of the console is loaded as a complete module. */
function findUnused(file: string, text: string, { names, whole }: Uses): string[] {
  const exported = text.matchAll(/^export (?:async )?(?:const|let|class|function\*?) (\w+)/gm);
  const isUsed = (name: string): boolean =>
    names.has(`${file}: ${name}`) ||
    (whole.get(file) ?? []).some(
      (user) => file.startsWith("console/src/features/") || new RegExp(`\\b${name}\\b`).test(user),
    );
  return [...exported].flatMap(([, name = ""]) => (isUsed(name) ? [] : [`${file}: ${name}`]));
}

test("an export that no other file uses is found", () => {
  const files = new Map([
    [
      "cli/src/a.ts",
      "export const a = 1;\nexport async function b() {}\nexport function c() {}\nexport const d = 1;\n",
    ],
    ["cli/src/b/b.ts", 'import { type T, a as x } from "../a.ts";\nimport * as all from "../a.ts";\nall.b();\n'],
    ["cli/src/c.ts", 'const { c } = await import("./a.ts");\n'],
  ]);
  const uses = findUses(files);
  assert.deepEqual(
    [...files].flatMap(([file, text]) => findUnused(file, text, uses)),
    ["cli/src/a.ts: d"],
  );
});

test("every exported value is used by another file", () => {
  const uses = findUses(texts);
  const checked = [...texts].filter(([file]) => !/^api\/|\.test\.tsx?$/.test(file));
  assert.ok(checked.length > 20, `only ${checked.length} modules found`);
  assert.deepEqual(
    checked.flatMap(([file, text]) => findUnused(file, text, uses)).filter((one) => !generated.has(one)),
    [],
  );
});
