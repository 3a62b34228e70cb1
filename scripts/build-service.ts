/**
 * Bundles the service into `service/dist`. About 30 files start in half the time of its 1,650 modules. A program or thread of its own is a file
 * of its own; what several need is in a chunk. Paths to other files, such as migrations, are those of the sources. Source maps name the sources in stack traces.
 */
import { existsSync, globSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { build, type Plugin } from "esbuild";

const root = resolve(import.meta.dirname, "..");
const source = join(root, "service/src");
const folder = resolve(process.argv[2] ?? join(root, "service/dist"));
const draft = `${folder}.${process.pid}`;

/** A file that starts a program or a thread names it by an URL relative to itself. */
const program = /new URL\("(\.[./\w-]*)\.ts", import\.meta\.url\)/g;

/** All bundled files are in one folder, so that a chunk and a program have the same paths to others. */
const nameOf = (file: string): string => file.slice(0, -".ts".length).replaceAll("/", "-");

/** Names the bundled file instead of the source where a program or thread starts, and the place of the source elsewhere. */
const replaceLocations: Plugin = {
  name: "replace-locations",
  setup({ onLoad }) {
    onLoad({ filter: /service\/src\/.*\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8");
      if (!text.includes("import.meta.url")) return null;
      const urlOf = (target: string) => `new URL(${JSON.stringify(target)}, import.meta.url)`;
      const started = text.replace(program, (_, target: string) => {
        const file = relative(source, resolve(path, "..", `${target}.ts`));
        return urlOf(`./${nameOf(file)}.js`);
      });
      const parts = started.split(/(new URL\("\.\/[^"]*\.js", import\.meta\.url\))/);
      const located = parts.map((part, index) =>
        index % 2 === 1 ? part : part.replaceAll("import.meta.url", `${urlOf(relative(folder, path))}.href`),
      );
      return { contents: located.join(""), loader: "ts" };
    });
  },
};

/**
 * Imports `node:http` as a CommonJS module. An ES module reads all its exports, which loads its second client, undici: 30 ms of processor
 * time at each start, and 6 MB.
 */
const importHttpLazily: Plugin = {
  name: "import-http-lazily",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(node:)?http$/, namespace: "file" }, () => ({ path: "node:http", namespace: "lazy" }));
    onLoad({ filter: /./, namespace: "lazy" }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
    }));
  },
};

/** Omits the tracing interface, 51 modules. prom-client loads it for its default metrics, of which the service uses none. */
const omitTracing: Plugin = {
  name: "omit-tracing",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^@opentelemetry\/api$/ }, ({ path }) => ({ path, namespace: "omitted" }));
    onLoad({ filter: /./, namespace: "omitted" }, () => ({ contents: "module.exports = {};" }));
  },
};

/** Returns the names of all files that are started as a program or a thread. */
function findPrograms(): string[] {
  const files = globSync("**/*.ts", { cwd: source }).filter((file) => !file.endsWith(".test.ts"));
  const started = files.flatMap((file) =>
    [...readFileSync(join(source, file), "utf8").matchAll(program)].map(([, target = ""]) =>
      relative(source, resolve(source, file, "..", `${target}.ts`)),
    ),
  );
  return [...new Set(["main.ts", ...started])];
}

await build({
  entryPoints: Object.fromEntries(findPrograms().map((file) => [nameOf(file), join(source, file)])),
  outdir: draft,
  bundle: true,
  splitting: true,
  minifyWhitespace: true,
  format: "esm",
  platform: "node",
  target: "node24",
  sourcemap: "linked",
  sourcesContent: false,
  external: ["koffi", "pg-native"],
  banner: {
    js: 'import { createRequire as createBundleRequire } from "node:module"; const require = createBundleRequire(import.meta.url);',
  },
  inject: [join(root, "scripts/source-positions.ts")],
  plugins: [replaceLocations, importHttpLazily, omitTracing],
  logLevel: "warning",
});
if (existsSync(folder)) renameSync(folder, `${draft}.old`);
renameSync(draft, folder);
rmSync(`${draft}.old`, { recursive: true, force: true });
