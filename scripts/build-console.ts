/**
 * Builds the web console into `console/dist`: `node scripts/build-console.ts [--dev]`. Chunks by esbuild, names with a hash of the content,
 * brotli and gzip beside each file. `index.html` is replaced last, and files of earlier builds are removed after it: a service that serves
 * the folder never sees a page without its files. `sizes.json` lists the chunks for the test of their budget.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build, type Metafile, type Plugin } from "esbuild";
import { createFonts } from "./console-fonts.ts";

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

/** Preact draws what is written for React (docs/decisions/0022-preact-draws-the-console.md). */
const renderer = {
  react: "preact/compat",
  "react/jsx-runtime": "preact/jsx-runtime",
  "react-dom": "preact/compat",
  "react-dom/client": "preact/compat/client",
};

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

/** Modules that several pages use and the first load does not need. A page loads them in one chunk, not in one each. */
const common = [
  "console/src/data/bandwidthfield.tsx",
  "console/src/data/confirmrequest.tsx",
  "console/src/data/eventview.ts",
  "console/src/data/formdialog.tsx",
  "console/src/data/image.ts",
  "console/src/data/linkserver.tsx",
  "console/src/data/objectlist.tsx",
  "console/src/data/rates.ts",
  "console/src/data/schemafields.tsx",
  "console/src/data/serverview.ts",
  "console/src/data/started.ts",
  "console/src/data/touched.ts",
  "console/src/data/undo.ts",
  "console/src/data/whynot.ts",
  "console/src/features/servers/password.tsx",
  "console/src/ui/rowbutton.tsx",
  "console/src/ui/tabs.tsx",
  "console/src/ui/timecolumn.tsx",
].map((path) => join(root, path));

/** Imports all that the first load needs. */
const main = join(root, "console/src/main.tsx");

/**
 * Bundles the modules of the first load into one chunk, and those of `common` into another. esbuild places a module by the set of entries that need it,
 * which makes dozens of chunks of some hundred bytes. So each module that is loaded later needs the whole first load, which is loaded by then.
 */
const groupedChunks: Plugin = {
  name: "grouped-chunks",
  setup({ onLoad, onResolve, resolve: find }) {
    onResolve({ filter: /.*/ }, async ({ kind, path, pluginData, ...from }) => {
      if (kind !== "dynamic-import" || pluginData === "found") return undefined;
      const found = await find(path, {
        kind,
        importer: from.importer,
        resolveDir: from.resolveDir,
        pluginData: "found",
      });
      return found.errors.length > 0 ? found : { path: found.path, namespace: "later" };
    });
    onLoad({ filter: /.*/, namespace: "later" }, ({ path }) => ({
      contents: [
        ...[main, ...(path.includes("/console/src/features/") ? common : [])].map((each) => `import "${each}";`),
        `export * from "${path}";`,
      ].join("\n"),
      resolveDir: root,
    }));
  },
};

/** Returns the chunk that contains a module. */
function chunkOf({ outputs }: Metafile, module: string): string {
  const [path] = Object.entries(outputs).find(([name, { inputs }]) => name.endsWith(".js") && module in inputs) ?? [];
  if (path === undefined) throw new Error(`${module} has no chunk`);
  return path;
}

/** Returns the chunks that a chunk needs, itself included. */
function needsOf({ outputs }: Metafile, chunk: string, found = new Set<string>()): Set<string> {
  if (found.has(chunk)) return found;
  found.add(chunk);
  for (const { path, kind } of outputs[chunk]?.imports ?? [])
    if (kind === "import-statement") needsOf({ outputs, inputs: {} }, path, found);
  return found;
}

/** Returns the style sheet of an entry. */
function styleOf({ outputs }: Metafile, entry: string): string {
  const style = Object.values(outputs).find(({ entryPoint }) => entryPoint === entry)?.cssBundle;
  if (style === undefined) throw new Error(`${entry} has no style sheet`);
  return style;
}

/** Returns the sizes of chunks in bytes after gzip. */
const sizesOf = (paths: Iterable<string>): Readonly<Record<string, number>> =>
  Object.fromEntries(
    [...paths]
      .filter((path) => /\.(js|css)$/.test(path))
      .map((path) => [basename(path), gzipSync(readFileSync(join(root, path)), { level: 9 }).length]),
  );

/** The frame of a page, which is visible until the script has drawn its own (`useDrawn` in `ui/page.tsx`). */
const placeholder = (icon: string): string =>
  `<div class="frame placeholder" aria-hidden="true"><div class="nav"><div class="brand"><img src="${icon}" alt="" class="mark" width="26" height="26"><span class="label">Brume</span></div></div><div><div class="top"></div><div class="main stack">${'<div class="skeleton"></div>'.repeat(6)}</div></div></div>`;

/** The script of the pages at `/docs`. */
const docsEntry = "console/docs/main.ts";

/** Builds once. `isDev`: readable code, and a page that reloads itself after each build. */
export async function buildConsole(isDev: boolean): Promise<void> {
  mkdirSync(assets, { recursive: true });
  const [first, libraries] = ["console/src/first.ts", "console/src/libraries.ts"];
  const [themeEntry, languagesEntry] = ["console/src/theme.ts", "console/src/languages.ts"];
  const fonts = createFonts();
  const bundle = (entryPoints: readonly string[], plugins: readonly Plugin[]) =>
    build({
      absWorkingDir: root,
      entryPoints: [...entryPoints],
      outdir: assets,
      bundle: true,
      splitting: true,
      format: "esm",
      target: "es2023",
      jsx: "automatic",
      alias: renderer,
      minify: !isDev,
      sourcemap: isDev ? "linked" : false,
      entryNames: "[name]-[hash]",
      chunkNames: "[name]-[hash]",
      assetNames: "[name]-[hash]",
      loader: { ".woff2": "file", ".svg": "file" },
      publicPath: "/console/assets",
      define: { "process.env.NODE_ENV": isDev ? '"development"' : '"production"' },
      plugins: [...plugins, ...(isDev ? [] : [fonts]), inlineValues, constructedStyles],
      metafile: true,
      legalComments: "none",
      logLevel: "warning",
    });
  const entry = isDev ? "console/src/dev.tsx" : "console/src/main.tsx";
  const [{ metafile }, docs] = await Promise.all([
    bundle([entry, first, libraries], [groupedChunks]),
    bundle([docsEntry, themeEntry, languagesEntry], []),
  ]);
  const outputs = { ...metafile.outputs, ...docs.metafile.outputs };
  const made = new Set(Object.keys(outputs).map((path) => basename(path)));
  for (const name of made) {
    if (!/\.(js|css|svg)$/.test(name)) continue;
    const content = readFileSync(join(assets, name));
    writeFileSync(join(assets, `${name}.gz`), gzipSync(content, { level: 9 }));
    const options = { params: { [constants.BROTLI_PARAM_QUALITY]: isDev ? 3 : 10 } };
    writeFileSync(join(assets, `${name}.br`), brotliCompressSync(content, options));
  }
  const [script, firstScript] = [chunkOf(metafile, entry), chunkOf(metafile, first)];
  const style = styleOf(metafile, entry);
  const needed = new Set([...needsOf(metafile, firstScript), ...needsOf(metafile, script)]);
  const languages = chunkOf(docs.metafile, languagesEntry);
  const firstSizes = sizesOf([...needed, style, languages]);
  const sizes = {
    first: Object.values(firstSizes).reduce((sum, size) => sum + size, 0),
    chunks: sizesOf(Object.keys(outputs)),
  };
  writeFileSync(join(folder, "sizes.json"), JSON.stringify(sizes, null, 1));
  const url = (path: string): string => `/console/assets/${basename(path)}`;
  const theme = url(chunkOf(docs.metafile, themeEntry));
  const icon = url([...made].find((name) => name.startsWith("mark-")) ?? "");
  // Each is evaluated in a task of its own, what others need first.
  const scripts = [firstScript, ...[...needed].filter((path) => path !== firstScript && path !== script), script];
  // The style sheet comes first, with which the browser draws the frame.
  const priority = (path: string): string => (path === firstScript ? "" : ' fetchpriority="low"');
  const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="Web console of a Brume installation">
<title>Brume</title>
<link rel="icon" href="${icon}" type="image/svg+xml">
<script src="${theme}"></script>
<link rel="stylesheet" href="${url(style)}">
<script type="module" src="${url(languages)}" async fetchpriority="low"></script>
${scripts.map((path) => `<script type="module" src="${url(path)}"${priority(path)}></script>\n`).join("")}</head>
<body><noscript>The console needs JavaScript. The API reference at /docs does not.</noscript><div id="root"></div>${placeholder(icon)}</body>
</html>
`;
  // The set-up replaces a build for development.
  const mark = join(folder, "dev");
  if (isDev) writeFileSync(mark, "");
  else rmSync(mark, { force: true });
  const list = {
    script: url(chunkOf(docs.metafile, docsEntry)),
    style: url(styleOf(docs.metafile, docsEntry)),
    theme,
    icon,
  };
  writeFileSync(join(folder, "docs.part"), JSON.stringify(list));
  renameSync(join(folder, "docs.part"), join(folder, "docs.json"));
  const part = join(folder, "index.part");
  writeFileSync(part, page);
  renameSync(part, join(folder, "index.html"));
  for (const name of readdirSync(assets)) if (!made.has(name.replace(/\.(br|gz)$/, ""))) rmSync(join(assets, name));
}

if (import.meta.main) await buildConsole(process.argv.includes("--dev"));
