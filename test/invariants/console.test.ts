/** Rules of the console that the compiler cannot check: requests, colours and sizes in one place, used texts, and the size of its chunks. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import type { OperationName } from "@brume/api/contract.ts";

const root = resolve(import.meta.dirname, "../..");
const sources = globSync("console/src/**/*.{ts,tsx}", { cwd: root })
  .sort()
  .map((file) => ({ file, text: readFileSync(join(root, file), "utf8") }));
const outside = (...folders: string[]) =>
  sources.filter(({ file }) => !folders.some((folder) => file.startsWith(`console/src/${folder}`)));

test("only the data layer sends requests", () => {
  const sending = outside("data/", "dev.tsx").filter(({ text }) => /\bfetch\(|XMLHttpRequest|EventSource/.test(text));
  assert.deepEqual(
    sending.map(({ file }) => file),
    [],
  );
});

test("colours, sizes and styles are only in the components", () => {
  const styled = outside("ui/").filter(({ file, text }) => {
    const code = text.replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, "");
    return (
      /#[0-9a-f]{3,8}\b(?!-)|\brgba?\(|\bhsla?\(/i.test(code.replaceAll(/"#[a-z-]+"/g, "")) ||
      (/\.css"/.test(code) && file !== "console/src/main.tsx") ||
      /style=\{\{/.test(code)
    );
  });
  assert.deepEqual(
    styled.map(({ file }) => file),
    [],
  );
  const styles = globSync("console/src/ui/*.css", { cwd: root }).filter((file) => !file.endsWith("tokens.css"));
  for (const file of styles) {
    const text = readFileSync(join(root, file), "utf8").replaceAll(/url\([^)]*\)/g, "");
    assert.doesNotMatch(text, /#[0-9a-f]{3,8}\b|\brgba?\(/i, `${file}: colours are in tokens.css`);
  }
});

test("components contain no texts", () => {
  const spoken = outside("texts/")
    .filter(({ file }) => file.endsWith(".tsx"))
    .flatMap(({ file, text }) => {
      const code = text.replaceAll(/\/\*[^]*?\*\//g, "");
      const between = [...code.matchAll(/>\s*([A-Za-z][a-z]+(?: [A-Za-z]+)*)\s*<\//g)].map(([, words = ""]) => words);
      const attributes = [...code.matchAll(/ (?:aria-label|title|label|hint)="([^"]+)"/g)].map(
        ([, words = ""]) => words,
      );
      // Names of products, languages and keys are the same in every language.
      return [...between, ...attributes]
        .filter(
          (words) =>
            !["Brume", "English", "Ctrl", "Ctrl K", "ID", "Promise", "SHA-256", "HTTP", "Ctrl+Alt+Del"].includes(words),
        )
        .map((words) => `${file}: ${words}`);
    });
  assert.deepEqual(spoken, []);
});

test("the commands of empty pages exist", () => {
  const reference = readFileSync(join(root, "docs/cli.md"), "utf8");
  const commands = sources.flatMap(({ text }) =>
    [...text.matchAll(/command="(brume [^"]*)"/g)].map(([, command = ""]) => command),
  );
  assert.ok(commands.length > 3);
  const unknown = commands.filter((command) => {
    const [, words = ""] = /^(brume [a-z-]+ [a-z-]+) /.exec(command) ?? [];
    const flags = command.match(/ --[a-z0-9-]+/g) ?? [];
    return !reference.includes(`### ${words}\n`) || !flags.every((flag) => reference.includes(`\`${flag.trim()}`));
  });
  assert.deepEqual(unknown, []);
});

test("fields that a form takes from the contract have a label in every language", async () => {
  const { bodyFields } = await import("../../console/src/data/equivalent.ts");
  const languages = await Promise.all(
    ["en", "ru"].map(
      async (language) => (await import(`../../console/src/texts/${language}/fields.ts`)) as { fields: object },
    ),
  );
  const unnamed = outside("data/schemafields.tsx").flatMap(({ file, text }) => {
    if (!/\b(?:useOther|Other|Schema)Fields\b/.test(text)) return [];
    const forms = [...text.matchAll(/(?:\boperation=|useOtherFields\()"(\w+)"(?:\s+list="(\w+)")?/g)];
    if (forms.length === 0) return [`${file}: no operation`];
    const placed = [...text.matchAll(/\bplaced\b[^;[]*\[([^\]]*)\]/g)].map(([, names]) => names).join();
    return forms.flatMap(([, operation = "", list]) =>
      Object.entries(bodyFields(operation as OperationName, list))
        .filter(([name, schema]) => !placed.includes(`"${name}"`) && schema["x-ignored"] !== true)
        .filter(([name]) => !languages.every(({ fields }) => name in fields))
        .map(([name]) => `${file}: ${name}`),
    );
  });
  assert.deepEqual(unnamed, []);
});

test("every text is used", async () => {
  const { en } = (await import("../../console/src/texts/en.ts")) as { en: object };
  const code = outside("texts/")
    .map(({ text }) => text)
    .join("\n");
  const unused: string[] = [];
  const walk = (value: object, path: string): void => {
    for (const [key, text] of Object.entries(value)) {
      const isUsed = new RegExp(`\\.${key}\\b|"${key}"|\\b${key}[,:} ]`).test(code);
      if (typeof text === "object" && text !== null) {
        // A table that is read by a computed key is used as a whole.
        if (new RegExp(`\\.${key}(?:\\?)?\\[|\\b${key}\\[|= (?:\\w+\\.)*${key};`).test(code)) continue;
        walk(text as object, `${path}${key}.`);
      } else if (!isUsed) unused.push(path + key);
    }
  };
  walk(en, "");
  assert.deepEqual(unused, []);
});

const inList = "the list, which events keep current, contains the object";
const changeset = "the records of a domain are changed together, as a changeset";
/** Operations that no source of the console names, with the reason. */
const unnamed: Readonly<Record<string, string>> = {
  readAction: inList,
  readImage: inList,
  readSshKey: inList,
  readToken: inList,
  readOrphan: inList,
  readClaim: inList,
  readRecord: "the domain contains its records",
  deleteRecord: changeset,
  writeImageContent: "`uploadImage` of the client sends the content",
  readBalance: "always 0; only clients of other clouds read it",
  readHealth: "the page of the host links to /healthz",
  readDocs: "the menu links to /docs",
};

test("every operation has a place in the console, or a reason to have none", async () => {
  const { operationNames } = await import("@brume/api/contract.ts");
  const code = outside("texts/")
    .map(({ text }) => text)
    .join("\n");
  const missing = operationNames.filter(
    (name) =>
      !new RegExp(`\\b${name}\\b`).test(code) &&
      unnamed[name] === undefined &&
      !/^(?:create|update)Record[A-Z]+$/.test(name),
  );
  assert.deepEqual(missing, []);
});

/** Bytes after gzip. */
const firstLoad = 220_000;
const largestChunk = 100_000;

test("the first load and each chunk are within their size", () => {
  const { first, chunks } = JSON.parse(readFileSync(join(root, "console/dist/sizes.json"), "utf8")) as {
    first: number;
    chunks: Readonly<Record<string, number>>;
  };
  assert.ok(first > 50_000 && first <= firstLoad, `first load: ${first}`);
  const large = Object.entries(chunks).filter(([, size]) => size > largestChunk);
  assert.deepEqual(large, []);
});

/** Requests that a page waits for one after the other, or that share few connections. */
const mostScripts = 6;

test("a page names the scripts of its first load, and needs few more", () => {
  const folder = join(root, "console/dist/assets");
  const needsOf = (name: string): string[] =>
    [...readFileSync(join(folder, name), "utf8").matchAll(/(?:from|import)\s*"[./a-z]*\/([\w-]+\.js)"/g)].map(
      ([, needed = ""]) => needed,
    );
  const index = readFileSync(join(root, "console/dist/index.html"), "utf8");
  const named = new Set([...index.matchAll(/\/assets\/([\w-]+\.js)"/g)].map(([, name = ""]) => name));
  assert.ok(named.size > 2 && named.size <= mostScripts, [...named].join());
  assert.deepEqual(
    [...named].flatMap(needsOf).filter((name) => !named.has(name)),
    [],
  );
  const pages = [...named].flatMap((name) =>
    [...readFileSync(join(folder, name), "utf8").matchAll(/import\("[./a-z]*\/([\w-]+\.js)"\)/g)].map(
      ([, page = ""]) => page,
    ),
  );
  assert.ok(pages.length > 12);
  for (const page of pages) {
    const more = new Set([page]);
    for (const name of more) for (const needed of needsOf(name)) if (!named.has(needed)) more.add(needed);
    assert.ok(more.size <= mostScripts, [...more].join());
  }
});
