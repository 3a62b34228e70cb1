/**
 * Builds the web console into `console/dist`: `node scripts/build-console.ts [--dev]`. Chunks by esbuild, names with a hash of the content,
 * brotli and gzip beside each file. `index.html` is replaced last, and files of earlier builds are removed after it: a service that serves
 * the folder never sees a page without its files. `sizes.json` lists the chunks for the test of their budget.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build, type Metafile, type Plugin } from "esbuild";

const root = resolve(import.meta.dirname, "..");
const folder = join(root, "console/dist");
const assets = join(folder, "assets");

/** Keywords of schemas that only the service needs. */
const unused = new Set(["answer", "errors", "x-also", "x-shown", "x-skip", "x-says"]);

const parse = (value: unknown): string =>
  `JSON.parse(${JSON.stringify(JSON.stringify(value, (key, each: unknown) => (unused.has(key) ? undefined : each)))})`;

/** A schema of TypeBox is an object with this key. */
const isSchema = (value: unknown): boolean => typeof value === "object" && value !== null && "~kind" in value;

/** Returns the plain data that a module of the contract exports, as the text of a module. */
async function dataOf(path: string): Promise<string> {
  const exported = (await import(path)) as Readonly<Record<string, unknown>>;
  return Object.entries(exported)
    .filter(([, value]) => typeof value !== "function" && !isSchema(value))
    .map(([name, value]) => `export const ${name} = ${parse(value)};`)
    .join("\n");
}

/** Replaces modules of the contract by their values, so that no chunk contains the schema library. */
const inlineValues: Plugin = {
  name: "inline-values",
  setup({ onLoad }) {
    const modules =
      /api\/src\/(contract|routes|action|claim|serverinput|session|account|catalog|event|dns|webhook|common|firewall|vpn)\.ts$/;
    onLoad({ filter: modules }, async ({ path }) => ({ contents: await dataOf(path), loader: "js" }));
  },
};

/**
 * The terminal creates style elements, which the policy of the page forbids. It gets an element that writes into a constructed style sheet
 * instead (`console/src/ui/terminalbox.tsx`).
 */
const constructedStyles: Plugin = {
  name: "constructed-styles",
  setup({ onLoad }) {
    onLoad({ filter: /@xterm\/xterm\/lib\/xterm\.mjs$/ }, ({ path }) => {
      const parts = readFileSync(path, "utf8").split('createElement("style")');
      if (parts.length !== 4) throw new Error(`${path} creates ${parts.length - 1} style elements instead of 3`);
      return { contents: parts.join('createElement("constructed-style")'), loader: "js" };
    });
  },
};

/** Returns the URL of the chunk of an entry, and of its style sheet. */
function linksOf({ outputs }: Metafile, entry: string) {
  const [script, output] = Object.entries(outputs).find(([, one]) => one.entryPoint === entry) ?? [];
  if (script === undefined) throw new Error(`${entry} has no chunk`);
  return { script: basename(script), style: output?.cssBundle === undefined ? null : basename(output.cssBundle) };
}

/** Returns the sizes in bytes after gzip: of the first load (the entry and all that it imports statically), and of each chunk. */
function sizesOf({ outputs }: Metafile, entry: string) {
  const size = (path: string) => gzipSync(readFileSync(join(root, path)), { level: 9 }).length;
  const first = new Set<string>();
  const add = (path: string): void => {
    if (first.has(path)) return;
    first.add(path);
    const { imports = [], cssBundle } = outputs[path] ?? {};
    if (cssBundle !== undefined) first.add(cssBundle);
    for (const { path: next, kind } of imports) if (kind === "import-statement") add(next);
  };
  add(Object.entries(outputs).find(([, one]) => one.entryPoint === entry)?.[0] ?? "");
  const code = Object.keys(outputs).filter((path) => /\.(js|css)$/.test(path));
  const chunks = Object.fromEntries(code.map((path) => [basename(path), size(path)]));
  return { first: [...first].reduce((sum, path) => sum + (chunks[basename(path)] ?? 0), 0), chunks };
}

/** The script of the pages at `/docs`. */
const docsEntry = "console/docs/main.ts";

/** Builds once. `isDev`: readable code, and a page that reloads itself after each build. */
export async function buildConsole(isDev: boolean): Promise<void> {
  mkdirSync(assets, { recursive: true });
  const entry = isDev ? "console/src/dev.tsx" : "console/src/main.tsx";
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [entry, "console/src/theme.ts", docsEntry],
    outdir: assets,
    bundle: true,
    splitting: true,
    format: "esm",
    target: "es2023",
    jsx: "automatic",
    minify: !isDev,
    sourcemap: isDev ? "linked" : false,
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    loader: { ".woff2": "file", ".svg": "file" },
    publicPath: "/console/assets",
    define: { "process.env.NODE_ENV": isDev ? '"development"' : '"production"' },
    plugins: [inlineValues, constructedStyles],
    metafile: true,
    legalComments: "none",
    logLevel: "warning",
  });
  const made = new Set(Object.keys(metafile.outputs).map((path) => basename(path)));
  for (const name of made) {
    if (!/\.(js|css|svg)$/.test(name)) continue;
    const content = readFileSync(join(assets, name));
    writeFileSync(join(assets, `${name}.gz`), gzipSync(content, { level: 9 }));
    const options = { params: { [constants.BROTLI_PARAM_QUALITY]: isDev ? 3 : 10 } };
    writeFileSync(join(assets, `${name}.br`), brotliCompressSync(content, options));
  }
  writeFileSync(join(folder, "sizes.json"), JSON.stringify(sizesOf(metafile, entry), null, 1));
  const { script, style } = linksOf(metafile, entry);
  const theme = linksOf(metafile, "console/src/theme.ts").script;
  const icon = [...made].find((name) => name.startsWith("mark-")) ?? "";
  const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="Web console of a Brume installation">
<title>Brume</title>
<link rel="icon" href="/console/assets/${icon}" type="image/svg+xml">
<script src="/console/assets/${theme}"></script>
<link rel="stylesheet" href="/console/assets/${style}">
<script type="module" src="/console/assets/${script}"></script>
</head>
<body><div id="root"></div><noscript>The console needs JavaScript. The API reference at /docs does not.</noscript></body>
</html>
`;
  // The set-up replaces a build for development.
  const mark = join(folder, "dev");
  if (isDev) writeFileSync(mark, "");
  else rmSync(mark, { force: true });
  const docs = linksOf(metafile, docsEntry);
  const addresses = { script: docs.script, style: docs.style, theme, icon };
  const list = Object.fromEntries(Object.entries(addresses).map(([name, file]) => [name, `/console/assets/${file}`]));
  writeFileSync(join(folder, "docs.part"), JSON.stringify(list));
  renameSync(join(folder, "docs.part"), join(folder, "docs.json"));
  const part = join(folder, "index.part");
  writeFileSync(part, page);
  renameSync(part, join(folder, "index.html"));
  for (const name of readdirSync(assets)) if (!made.has(name.replace(/\.(br|gz)$/, ""))) rmSync(join(assets, name));
}

if (import.meta.main) await buildConsole(process.argv.includes("--dev"));
