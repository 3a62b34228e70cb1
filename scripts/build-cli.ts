/**
 * Bundles the command line into `cli/dist`, or into the given folder, so that it starts quickly on any Node from 20.3 on. It is one file in the
 * form of CommonJS, which Node loads in half the time of modules; a part runs when it is used. The contract is replaced by its value: the
 * bundle contains each operation as JSON, and no schema library.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { contract } from "@brume/api/contract.ts";
import type { Operation } from "@brume/api/operation.ts";
import { routes } from "@brume/api/routes.ts";
import { build, type Plugin } from "esbuild";
import { cloudSchema, recordForms, sharedBandwidth } from "../cli/src/model/cloud/shape.ts";
import type { Schema } from "../cli/src/model/schema.ts";
import { renderManual } from "../cli/src/reference.ts";
import { allCommands } from "../cli/src/run.ts";

const root = resolve(import.meta.dirname, "..");
const folder = resolve(process.argv[2] ?? join(root, "cli/dist"));

/** Keywords that only the service needs. */
const unused = new Set([
  "pattern",
  "x-pattern-description",
  "x-also",
  "x-shown",
  "x-secret",
  "maxLength",
  "minLength",
  "maxItems",
  "minItems",
  "errors",
]);

/** What the command reads of a response: the title of the object, and whether it can be any value. */
function shortenAnswer({ answer }: Operation): unknown {
  const { title, description, items } = (answer ?? {}) as Schema;
  if (answer === null) return null;
  if (items !== undefined) return { items: { title: items.title } };
  return title === undefined && Object.keys(answer).every((key) => key === "description") ? { description } : { title };
}

/** Each operation as JSON. A command parses only those that it needs. */
const texts = Object.entries<Operation>(contract).map(([name, operation]) => {
  const value = { ...operation, answer: shortenAnswer(operation) };
  return [name, JSON.stringify(value, (key, one: unknown) => (unused.has(key) ? undefined : one))] as const;
});

const inlineContract: Plugin = {
  name: "inline-contract",
  setup({ onLoad }) {
    onLoad({ filter: /api\/src\/contract\.ts$/ }, () => ({
      contents: `const texts = ${JSON.stringify(Object.fromEntries(texts))};
export const operationNames = Object.keys(texts);
export const contract = {};
for (const name of operationNames)
  Object.defineProperty(contract, name, {
    enumerable: true,
    configurable: true,
    get() {
      const value = JSON.parse(texts[name]);
      Object.defineProperty(contract, name, { value, enumerable: true });
      return value;
    },
  });`,
      loader: "js",
    }));
    onLoad({ filter: /api\/src\/routes\.ts$/ }, () => ({
      contents: `export const routes = ${JSON.stringify(routes)};`,
      loader: "js",
    }));
    onLoad({ filter: /model\/cloud\/shape\.ts$/ }, () => ({
      contents: Object.entries({ cloudSchema, recordForms, sharedBandwidth })
        .map(([name, value]) => `export const ${name} = JSON.parse(${JSON.stringify(JSON.stringify(value))});`)
        .join("\n"),
      loader: "js",
    }));
  },
};

rmSync(folder, { recursive: true, force: true });
await build({
  entryPoints: { brume: join(root, "cli/src/main.ts") },
  outdir: folder,
  bundle: true,
  minifySyntax: true,
  minifyWhitespace: true,
  format: "cjs",
  platform: "node",
  target: "node20.3",
  outExtension: { ".js": ".cjs" },
  define: { "import.meta.url": "bundleUrl" },
  banner: { js: 'const bundleUrl = require("node:url").pathToFileURL(__filename).href;' },
  // Its build for browsers is the one with ECMAScript modules.
  alias: { yaml: join(root, "node_modules/yaml/browser/dist/index.js") },
  plugins: [inlineContract],
  logLevel: "warning",
});
const { version } = JSON.parse(readFileSync(join(root, "cli/package.json"), "utf8")) as { version: string };
writeFileSync(join(folder, "brume.1"), renderManual(allCommands(), version));
