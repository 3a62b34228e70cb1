/**
 * Bundles the command line into `cli/dist`, or into the given folder, so that it starts quickly on any Node from 20.3 on. The contract is replaced by its value:
 * the bundle contains the table of operations as JSON, and no schema library.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { contract } from "@brume/api/contract.ts";
import { build, type Plugin } from "esbuild";
import { cloudSchema, recordForms, sharedBandwidth } from "../cli/src/model/cloud/shape.ts";
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
const table = JSON.stringify(contract, (key, value: unknown) => (unused.has(key) ? undefined : value));

const inlineContract: Plugin = {
  name: "inline-contract",
  setup({ onLoad }) {
    onLoad({ filter: /api\/src\/contract\.ts$/ }, () => ({
      contents: `export const contract = JSON.parse(${JSON.stringify(table)});\nexport const operationNames = Object.keys(contract);`,
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
  splitting: true,
  minifySyntax: true,
  minifyWhitespace: true,
  format: "esm",
  platform: "node",
  target: "node20.3",
  // Some packages are CommonJS and call `require`.
  banner: {
    js: 'import { createRequire as createBundleRequire } from "node:module"; const require = createBundleRequire(import.meta.url);',
  },
  // Its build for browsers is the one with ECMAScript modules.
  alias: { yaml: join(root, "node_modules/yaml/browser/dist/index.js") },
  plugins: [inlineContract],
  logLevel: "warning",
});
const { version } = JSON.parse(readFileSync(join(root, "cli/package.json"), "utf8")) as { version: string };
writeFileSync(join(folder, "brume.1"), renderManual(allCommands(), version));
