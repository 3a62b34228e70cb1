/**
 * Import rules. Layers: infrastructure (base, store, drivers, engine, http), features, and the composition root. Type imports count.
 * There are no import circles, and no file has more than 400 lines.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "node:test";

const root = resolve(import.meta.dirname, "../..");
const files = globSync("{api,service,cli,console}/src/**/*.{ts,tsx}", { cwd: root }).sort();
const modules = files.filter((file) => !/\.test\.tsx?$/.test(file));

interface Import {
  readonly from: string;
  /** A file of ours, or the name of a package. */
  readonly to: string;
  /** `import type`. */
  readonly isType: boolean;
}

function resolveImport(file: string, specifier: string): string {
  if (specifier.startsWith("@brume/api/")) return `api/src/${specifier.slice("@brume/api/".length)}`;
  if (specifier.startsWith(".")) return relative(root, join(root, dirname(file), specifier));
  return specifier;
}

const importsOf = (file: string): Import[] => {
  const text = readFileSync(join(root, file), "utf8");
  const found = text.matchAll(
    /^(?:import|export)\b[^;]*?\bfrom\s+"([^"]+)"|^import\s+"([^"]+)"|\bimport\(\s*"([^"]+)"\s*\)/gm,
  );
  return [...found].map((match) => ({
    from: file,
    to: resolveImport(file, match[1] ?? match[2] ?? match[3] ?? ""),
    isType: /^(?:import|export) type\b/.test(match[0]),
  }));
};

const imports = modules.flatMap(importsOf);
const features = ["account", "catalog", "network", "server", "dns", "webhook"];

const isNode = (to: string) => to.startsWith("node:");
const isOurs = (to: string) => /^(api|service|cli|console)\/src\/.*\.tsx?$/.test(to);
const under =
  (...folders: string[]) =>
  (to: string) =>
    folders.some((folder) => to === folder || to.startsWith(`${folder}/`));
const oneOf =
  (...tests: ((to: string) => boolean)[]) =>
  (to: string) =>
    tests.some((accept) => accept(to));
const packages =
  (...names: string[]) =>
  (to: string) =>
    names.some((name) => to === name || to.startsWith(`${name}/`));
const foreign = (to: string) => !isOurs(to) && !isNode(to);

const s = "service/src";
const apiFiles = under("api/src");
const base = under(`${s}/base`);
const starters = under(...["children", "exec", "quickstart"].map((one) => `${s}/drivers/${one}.ts`));
/** Interfaces of drivers: types, no code. */
const interfaces = (to: string) => /^service\/src\/drivers\/[^/]+\/interface\.ts$/.test(to);
const docs = [`${s}/docs`, `${s}/http`];
const storeDb = under(...["db.ts", "term.ts", "text.ts", "schema.ts", "schema"].map((one) => `${s}/store/${one}`));

/** Pure modules, by folder: they do no input or output. `node:module` only loads tables that are seldom needed. */
const isModel = (file: string) => /^service\/src\/(?:\w+|drivers\/\w+)\/model\//.test(file) || isSeed(file);
const isSeed = under(`${s}/drivers/machine/seed`);
const driverModels = (to: string) => isModel(to) && to.startsWith(`${s}/drivers/`);

/** Modules of Node without input and output. */
const pureNode = ["node:module", "node:buffer", "node:crypto", "node:util", "node:net", "node:zlib"];

/** Modules of other features that a feature may import. */
const below: Readonly<Record<string, readonly string[]>> = {
  server: [
    ...["table", "linktable", "link", "model/plan", "model/networkspec", "statuscache", "portchanges"].map(
      (module) => `${s}/network/${module}.ts`,
    ),
    ...["reconciler", "change"].map((module) => `${s}/network/${module}.ts`),
    ...["table", "model/rules", "model/show"].map((module) => `${s}/catalog/${module}.ts`),
  ],
};

/** Texts of errors have a row for each code. */
const consoleTexts = under("console/src/texts", "api/src/errors.ts");
const consoleParts = (...names: string[]) => under(...names.map((name) => `console/src/${name}`));

const events = under(`${s}/engine/event.ts`, `${s}/engine/eventquery.ts`);
const accountRules = under(`${s}/account/model/rules.ts`);
/** Modules of a feature that run in the background and may import the whole engine. */
const background =
  /^(flow\/|reconciler|worker|drift|shared|metrics|apply|backup|orphan|sampler|servers|claimreconciler|uploadreconciler)/;
const supervisorParts = (to: string) => /^service\/src\/launch\/(plan|parent|confine|account|tlsfiles)\.ts$/.test(to);
const tlsParts = oneOf(under(`${s}/tls`, `${s}/engine/event.ts`), base, interfaces, storeDb, isNode);

interface Layer {
  readonly name: string;
  readonly modules: RegExp;
  readonly may: (to: string, from: string, isType: boolean) => boolean;
}

/** From the lowest layer up; the first row that matches a module is its layer. */
const layers: readonly Layer[] = [
  { name: "the contract", modules: /^api\/src\//, may: oneOf(apiFiles, packages("typebox")) },
  {
    name: "base",
    modules: /^service\/src\/base\//,
    may: oneOf(base, under("api/src/errors.ts"), isNode, packages("pino", "ipaddr.js", "koffi")),
  },
  {
    name: "config",
    modules: /^service\/src\/config(\.ts$|\/)/,
    may: oneOf(under(`${s}/config`), isNode, packages("smol-toml")),
  },
  {
    name: "store",
    modules: /^service\/src\/store\//,
    may: oneOf(under(`${s}/store`), base, isNode, packages("kysely", "pg")),
  },
  { name: "a driver interface", modules: /^service\/src\/drivers\/[^/]+\/interface\.ts$/, may: () => false },
  {
    name: "the modules that start processes",
    modules: /^service\/src\/drivers\/(exec|starter|children|quickstart|privateroot)\.ts$/,
    may: oneOf(starters, base, isNode, packages("koffi")),
  },
  {
    name: "a pure module of a driver",
    modules: /^service\/src\/drivers\/([^/]+)\/(model|seed)\//,
    may: (to, from) => {
      const driver = from.split("/").slice(0, 4).join("/");
      return oneOf(
        (one) => driverModels(one) && under(driver)(one),
        interfaces,
        base,
        packages(...pureNode, "yaml"),
      )(to);
    },
  },
  {
    name: "a driver",
    modules: /^service\/src\/drivers\/([^/]+)\//,
    may: (to, from) => {
      const driver = from.split("/").slice(0, 4).join("/");
      return (
        oneOf(under(driver), under(`${s}/drivers/exec.ts`, `${s}/drivers/privateroot.ts`), base, isNode, foreign)(to) &&
        !packages("kysely", "pg")(to)
      );
    },
  },
  {
    name: "the engine",
    modules: /^service\/src\/engine\//,
    may: oneOf(under(`${s}/engine`, "api/src/work.ts"), storeDb, base, packages("kysely")),
  },
  {
    name: "http",
    modules: /^service\/src\/http\//,
    may: oneOf(
      under(`${s}/http`),
      apiFiles,
      base,
      storeDb,
      events,
      isNode,
      packages("typebox", "kysely", "prom-client", "ws"),
    ),
  },
  {
    name: "the host agent",
    modules: /^service\/src\/agent\//,
    may: oneOf(
      under(`${s}/agent`),
      apiFiles,
      base,
      interfaces,
      driverModels,
      under(`${s}/drivers/machine/qemu/name.ts`),
      isNode,
      packages("typebox", "koffi"),
    ),
  },
  {
    name: "a pure module of a feature",
    modules: new RegExp(`^service/src/(${features.join("|")})/model/`),
    may: (to, from, isType) => {
      const [, , feature = ""] = from.split("/");
      // Types of the feature's other modules are no code.
      const ownModules = isType ? under(`${s}/${feature}`) : under(`${s}/${feature}/model`);
      const neighbours = under(...(below[feature] ?? []));
      const pureForeign = packages(...pureNode, "tr46", "ipaddr.js", "uqr", "tldts");
      return oneOf(ownModules, accountRules, neighbours, apiFiles, base, interfaces, driverModels, pureForeign)(to);
    },
  },
  {
    name: "a table of a feature",
    modules: new RegExp(`^service/src/(${features.join("|")})/(address|claim|change|link|orphan|sum)?table\\.ts$`),
    may: (to, from) =>
      oneOf(under(dirname(from)), apiFiles, storeDb, under(`${s}/engine/event.ts`), packages("kysely"))(to),
  },
  {
    name: "a feature",
    modules: new RegExp(`^service/src/(${features.join("|")})/`),
    may: (to, from) => {
      const [, , feature = ""] = from.split("/");
      const module = from.split("/").slice(3).join("/");
      const neighbours = under(...(below[feature] ?? []));
      const shared = oneOf(
        under(`${s}/${feature}`, `${s}/account/table.ts`),
        accountRules,
        apiFiles,
        base,
        storeDb,
        foreign,
        isNode,
        interfaces,
        driverModels,
      );
      if (background.test(module)) return oneOf(shared, neighbours, under(`${s}/engine`))(to);
      return oneOf(shared, neighbours, events, under(`${s}/http`, `${s}/engine/task.ts`, `${s}/engine/flow.ts`))(to);
    },
  },
  { name: "TLS of the API", modules: /^service\/src\/tls\//, may: tlsParts },
  { name: "docs", modules: /^service\/src\/docs\//, may: oneOf((to) => !isOurs(to), apiFiles, under(...docs)) },
  {
    name: "the service",
    modules: /^service\/src\/(service|health)\.ts$/,
    may: (to) => !/^service\/src\/drivers\/[^/]+\/(?!interface\.ts)/.test(to) && !to.startsWith("service/src/main"),
  },
  {
    name: "the program of the supervisor",
    modules: /^service\/src\/launch\/(supervisor|plan|parent|confine|account|tlsfiles)\.ts$/,
    // It is small, and root for as long as the service runs.
    may: (to, _, isType) => oneOf(supervisorParts, under(`${s}/drivers/children.ts`), isNode)(to) || isType,
  },
  {
    name: "the composition root",
    modules: /^service\/src\/(main|start|starttext|host|nameserver|release|launch\/.+)\.ts$/,
    may: () => true,
  },
  {
    name: "a pure module of the command line",
    modules: /^cli\/src\/model\//,
    may: oneOf(under("cli/src/model"), apiFiles, packages("node:util", "yaml")),
  },
  { name: "texts of the console", modules: /^console\/src\/texts\//, may: oneOf(consoleTexts, foreign) },
  { name: "a component", modules: /^console\/src\/ui\//, may: oneOf(consoleParts("ui", "texts"), foreign) },
  {
    name: "the data of the console",
    modules: /^console\/src\/data\//,
    may: oneOf(consoleParts("data", "ui", "texts"), under("cli/src/model"), apiFiles, foreign),
  },
  {
    name: "a feature of the console",
    modules: /^console\/src\/(features\/\w+|shell)\//,
    may: (to, from) => oneOf(under(dirname(from)), consoleParts("data", "ui", "texts"), apiFiles, foreign)(to),
  },
  { name: "what uses the API", modules: /^(cli|console)\/src\//, may: (to) => !to.startsWith("service/") },
];

test("every module belongs to a layer", () => {
  assert.ok(modules.length > 20, `only ${modules.length} modules found`);
  const unknown = modules.filter((module) => !layers.some((layer) => layer.modules.test(module)));
  assert.deepEqual(unknown, []);
});

for (const layer of layers)
  test(`${layer.name} imports only what its layer allows`, () => {
    const ofLayer = imports.filter(({ from }) => layers.find((row) => row.modules.test(from)) === layer);
    const forbidden = ofLayer
      .filter(({ from, to, isType }) => !layer.may(to, from, isType))
      .map(({ from, to }) => `${from} -> ${to}`);
    assert.deepEqual(forbidden, []);
  });

test("every import of an own module resolves", () => {
  const known = new Set(files);
  const missing = imports.filter(({ to }) => isOurs(to) && !known.has(to)).map(({ from, to }) => `${from} -> ${to}`);
  assert.deepEqual(missing, []);
});

test("there is no import circle", () => {
  const next = new Map<string, string[]>();
  for (const { from, to } of imports) if (isOurs(to)) next.set(from, [...(next.get(from) ?? []), to]);
  const done = new Set<string>();
  const circle = (module: string, path: readonly string[]): readonly string[] | null => {
    if (path.includes(module)) return [...path.slice(path.indexOf(module)), module];
    if (done.has(module)) return null;
    for (const to of next.get(module) ?? []) {
      const found = circle(to, [...path, module]);
      if (found) return found;
    }
    done.add(module);
    return null;
  };
  for (const module of modules) assert.equal(circle(module, []), null);
});

test("only config reads the environment, only exec starts processes", () => {
  const reads = modules.filter((module) => /\bprocess\.env\b/.test(readFileSync(join(root, module), "utf8")));
  assert.deepEqual(
    reads.filter(
      (module) =>
        ![
          "service/src/config.ts",
          "service/src/main.ts",
          "service/src/launch/supervisor.ts",
          "cli/src/main.ts",
        ].includes(module),
    ),
    [],
  );
  const spawns = imports.filter(({ to }) => to === "node:child_process").map(({ from }) => from);
  assert.deepEqual(
    spawns.filter(
      (module) => !/^(service\/src\/(drivers\/(exec|children)|launch\/supervisor)|cli\/src\/main)\.ts$/.test(module),
    ),
    [],
  );
});

/** Modules that may have state for the life of the process, and why. */
const stateful: Readonly<Record<string, string>> = {
  "service/src/launch/supervisor.ts": "it is the main module of a process",
  "service/src/http/read/query.ts": "what a schema compiles to",
  "service/src/http/read/fields.ts": "what a schema compiles to",
  "service/src/http/read/json.ts": "a mark on an object, removed with it",
  "service/src/http/exchange.ts": "state of a socket, removed with it",
};

/** Returns the names of module-level state: variables, and collections that the module changes. */
function stateOf(text: string): string[] {
  const variables = [...text.matchAll(/^(?:export )?(?:let|var) (\w+)/gm)].map(([, name = ""]) => name);
  const constants = [...text.matchAll(/^(?:export )?const (\w+)(?:: [^\n]*?)? = (?:new \w+[(<]|\[|\{)/gm)];
  const written = constants.filter(([, name]) =>
    new RegExp(
      `\\b${name}(?:\\.(?:set|add|delete|clear|push|pop|shift|unshift|splice|sort|reverse|fill)\\(|(?:\\.\\w+|\\[[^\\]\\n]+\\])+ ?(?:[-+*|&?]{0,2}=(?![=>])|\\+\\+|--))`,
    ).test(text),
  );
  return [...variables, ...written.map(([, name = ""]) => name)];
}

test("module-level state is found", () => {
  assert.deepEqual(stateOf("let a = 1;\nexport let b: string;\nconst c = 1;\n"), ["a", "b"]);
  const kept =
    "const map = new Map<string, A>();\nconst none: ReadonlySet<string> = new Set();\nconst list: A[] = [];\n";
  assert.deepEqual(stateOf(`${kept}const o = {};\n`), []);
  assert.deepEqual(stateOf(`${kept}function f() {\n  map.set(a, b);\n  list.push(none.size);\n}\n`), ["map", "list"]);
  assert.deepEqual(stateOf("const o = { n: 0 };\nconst m = {};\n  o.n += 1;\n  m[key] ??= 1;\n"), ["o", "m"]);
  assert.deepEqual(stateOf("const o = { n: 0 };\n  if (o.n === 1 && o.n >= 0) f((x) => o.n);\n"), []);
});

test("no module has state of its own", () => {
  const found = modules
    .filter((module) => /^(?:api|cli|service)\//.test(module))
    .map((module) => ({ module, names: stateOf(readFileSync(join(root, module), "utf8")) }))
    .filter(({ names }) => names.length > 0);
  const refused = found.filter(({ module }) => stateful[module] === undefined);
  assert.deepEqual(refused, [], "create the state in a factory and pass it on");
  assert.ok(Object.keys(stateful).every((module) => modules.includes(module)));
});

test("only one module raises the generation of a network", () => {
  const raises = modules.filter(
    (module) =>
      /^service\/src\/(network|server)\//.test(module) &&
      /\b(?:generation|applied)\b[^;,\n]*\+ /.test(readFileSync(join(root, module), "utf8")),
  );
  assert.deepEqual(raises, ["service/src/network/change.ts"]);
});

test("outside of the store, no decision depends on the kind of database", () => {
  // Whether others write too is `store.processes`. Only the claim of tasks differs, in its SQL.
  const allowed = ["service/src/engine/lease.ts"];
  const depends = modules.filter(
    (module) =>
      module.startsWith("service/src/") &&
      !module.startsWith("service/src/store/") &&
      /"(?:sqlite|postgres)"/.test(readFileSync(join(root, module), "utf8")),
  );
  assert.deepEqual(
    depends.filter((module) => !allowed.includes(module)),
    [],
  );
});

test("no module is longer than 400 lines", () => {
  const long = globSync("{api,service,cli,console,test,bench,scripts}/**/*.{ts,tsx}", {
    cwd: root,
    exclude: ["**/node_modules/**", "*/dist/**"],
  })
    .map((file) => ({ file, lines: readFileSync(join(root, file), "utf8").split("\n").length - 1 }))
    .filter(({ lines }) => lines > 400)
    .map(({ file, lines }) => `${file}: ${lines}`);
  assert.deepEqual(long, []);
});
