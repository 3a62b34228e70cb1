/**
 * Who may import whom. The house stands on floors: mechanism below, meaning above, one roof. Type imports count, circles
 * do not exist, and no room grows past 400 lines.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "node:test";

const root = resolve(import.meta.dirname, "../..");
const files = globSync("{api,service,cli,console}/src/**/*.{ts,tsx}", { cwd: root }).sort();
const rooms = files.filter((file) => !/\.test\.tsx?$/.test(file));

interface Import {
  readonly from: string;
  /** A file of ours, or the name of a package. */
  readonly to: string;
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
  return [...found].map((match) => ({ from: file, to: resolveImport(file, match[1] ?? match[2] ?? match[3] ?? "") }));
};

const imports = rooms.flatMap(importsOf);
const features = ["account", "catalog", "network", "server", "dns", "webhook"];

const isNode = (to: string) => to.startsWith("node:");
const isOurs = (to: string) => /^(api|service|cli|console)\/src\//.test(to);
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
/** Shapes and one interface, no code. */
const ports = (to: string) => /^service\/src\/drivers\/[^/]+\/port\.ts$/.test(to);
const storeDb = under(`${s}/store/db.ts`, `${s}/store/schema.ts`);

/** Rooms of a feature that do no input or output; `node:module` only loads tables that are seldom needed. */
const pureRooms =
  /^(?:name|address|record|rules|served|text|pattern|wire|kind|data|difference|plan|image|zonefile\/.*|(?:vpn|firewall)\/(?!routes).*|batch|copy|filter|hostname|order|password|rebuild|resize|room|samples|show|state)\.ts$/;

/** Of Node, what neither reads nor writes anything. */
const pureNode = ["node:module", "node:buffer", "node:util", "node:net"];

/** Rooms of drivers that are as pure and know a truth that a feature must not say a second time. */
const truths = under(
  ...["verdict", "openings", "closed", "peerconfig", "peertext", "wireguardkey"].map(
    (room) => `${s}/drivers/router/${room}.ts`,
  ),
  ...["seedfiles", "password", "userdata", "cloudconfig"].map((room) => `${s}/drivers/machine/${room}.ts`),
);

/** Rooms of other features that a feature may enter. */
const below: Readonly<Record<string, readonly string[]>> = {
  server: [
    ...["table", "link", "plan", "image", "live", "keeper", "change"].map((room) => `${s}/network/${room}.ts`),
    ...["table", "rules", "show"].map((room) => `${s}/catalog/${room}.ts`),
  ],
};

interface Floor {
  readonly name: string;
  readonly rooms: RegExp;
  readonly may: (to: string, from: string) => boolean;
}

/** From the ground up; the first row that fits a room is its floor. */
const floors: readonly Floor[] = [
  { name: "the contract", rooms: /^api\/src\//, may: oneOf(apiFiles, packages("typebox")) },
  {
    name: "base",
    rooms: /^service\/src\/base\//,
    may: oneOf(base, under("api/src/errors.ts"), isNode, packages("pino")),
  },
  { name: "config", rooms: /^service\/src\/config\.ts$/, may: isNode },
  {
    name: "store",
    rooms: /^service\/src\/store\//,
    may: oneOf(under(`${s}/store`), base, isNode, packages("kysely", "pg")),
  },
  { name: "a port", rooms: /^service\/src\/drivers\/[^/]+\/port\.ts$/, may: () => false },
  {
    name: "the door to child processes",
    rooms: /^service\/src\/drivers\/(exec|starter)\.ts$/,
    may: oneOf(under(`${s}/drivers/starter.ts`), base, isNode),
  },
  {
    name: "a driver",
    rooms: /^service\/src\/drivers\/([^/]+)\//,
    may: (to, from) =>
      oneOf(under(dirname(from)), under(`${s}/drivers/exec.ts`), base, isNode, foreign)(to) &&
      !packages("kysely", "pg")(to),
  },
  {
    name: "the engine",
    rooms: /^service\/src\/engine\//,
    may: oneOf(under(`${s}/engine`, "api/src/work.ts"), storeDb, base, packages("kysely")),
  },
  {
    name: "http",
    rooms: /^service\/src\/http\//,
    may: oneOf(
      under(`${s}/http`),
      apiFiles,
      base,
      storeDb,
      under(`${s}/engine/event.ts`),
      isNode,
      packages("typebox", "kysely", "prom-client", "ws"),
    ),
  },
  {
    name: "a feature",
    rooms: new RegExp(`^service/src/(${features.join("|")})/`),
    may: (to, from) => {
      const [, , feature = ""] = from.split("/");
      const room = from.split("/").slice(3).join("/");
      const pure = pureRooms.test(room);
      const own = under(`${s}/${feature}`);
      const neighbours = under(...(below[feature] ?? []));
      const rules = under(`${s}/account/rules.ts`);
      const pureForeign = packages(...pureNode, "tr46", "ipaddr.js", "uqr");
      if (pure) return oneOf(own, rules, neighbours, apiFiles, base, ports, truths, pureForeign)(to);
      const shared = oneOf(
        own,
        apiFiles,
        base,
        storeDb,
        foreign,
        isNode,
        under(`${s}/account/rules.ts`, `${s}/account/table.ts`),
        ports,
        truths,
      );
      if (/^(claim|change)?table\.ts$/.test(room)) return oneOf(own, apiFiles, storeDb, packages("kysely"))(to);
      if (/^(flow\/|keeper|watch|shared|metrics|apply|backup|orphan|sampler|servers)/.test(room))
        return (
          oneOf(shared, neighbours, under(`${s}/engine`))(to) || /^service\/src\/drivers\/[^/]+\/port\.ts$/.test(to)
        );
      return oneOf(
        shared,
        neighbours,
        under(`${s}/http`, `${s}/engine/task.ts`, `${s}/engine/event.ts`, `${s}/engine/flow.ts`),
      )(to);
    },
  },
  {
    name: "the service",
    rooms: /^service\/src\/service\.ts$/,
    may: (to) => !/^service\/src\/drivers\/[^/]+\/(?!port\.ts)/.test(to) && !to.startsWith("service/src/main"),
  },
  { name: "the roof", rooms: /^service\/src\/main\.ts$/, may: () => true },
  { name: "what uses the API", rooms: /^(cli|console)\/src\//, may: (to) => !to.startsWith("service/") },
];

test("every room stands on a floor", () => {
  assert.ok(rooms.length > 20, `only ${rooms.length} rooms found`);
  const homeless = rooms.filter((room) => !floors.some((floor) => floor.rooms.test(room)));
  assert.deepEqual(homeless, []);
});

for (const floor of floors)
  test(`${floor.name} imports only what it may`, () => {
    const mine = imports.filter(({ from }) => floors.find((row) => row.rooms.test(from)) === floor);
    const wrong = mine.filter(({ from, to }) => !floor.may(to, from)).map(({ from, to }) => `${from} -> ${to}`);
    assert.deepEqual(wrong, []);
  });

test("every import of ours leads to a file", () => {
  const known = new Set(files);
  const lost = imports.filter(({ to }) => isOurs(to) && !known.has(to)).map(({ from, to }) => `${from} -> ${to}`);
  assert.deepEqual(lost, []);
});

test("no room imports itself by a detour", () => {
  const next = new Map<string, string[]>();
  for (const { from, to } of imports) if (isOurs(to)) next.set(from, [...(next.get(from) ?? []), to]);
  const done = new Set<string>();
  const circle = (room: string, path: readonly string[]): readonly string[] | null => {
    if (path.includes(room)) return [...path.slice(path.indexOf(room)), room];
    if (done.has(room)) return null;
    for (const to of next.get(room) ?? []) {
      const found = circle(to, [...path, room]);
      if (found) return found;
    }
    done.add(room);
    return null;
  };
  for (const room of rooms) assert.equal(circle(room, []), null);
});

test("only config reads the environment, only exec starts processes", () => {
  const reads = rooms.filter((room) => /\bprocess\.env\b/.test(readFileSync(join(root, room), "utf8")));
  assert.deepEqual(
    reads.filter((room) => !["service/src/config.ts", "service/src/main.ts"].includes(room)),
    [],
  );
  const spawns = imports.filter(({ to }) => to === "node:child_process").map(({ from }) => from);
  assert.deepEqual(
    spawns.filter((room) => !["service/src/drivers/exec.ts", "service/src/drivers/starter.ts"].includes(room)),
    [],
  );
});

/** Rooms that may keep something for the life of the process, and why. */
const keeping: Readonly<Record<string, string>> = {
  "service/src/drivers/starter.ts": "it is the main module of a process",
  "service/src/http/read/query.ts": "what a schema compiles to",
  "service/src/http/read/fields.ts": "what a schema compiles to",
  "service/src/http/read/json.ts": "a mark on an object, gone with it",
  "service/src/http/exchange.ts": "what belongs to a socket, gone with it",
};

/** Names of what a module changes for all its callers: variables, and collections that something is put into. */
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

test("what a module changes for all its callers is found", () => {
  assert.deepEqual(stateOf("let a = 1;\nexport let b: string;\nconst c = 1;\n"), ["a", "b"]);
  const kept =
    "const map = new Map<string, A>();\nconst none: ReadonlySet<string> = new Set();\nconst list: A[] = [];\n";
  assert.deepEqual(stateOf(`${kept}const o = {};\n`), []);
  assert.deepEqual(stateOf(`${kept}function f() {\n  map.set(a, b);\n  list.push(none.size);\n}\n`), ["map", "list"]);
  assert.deepEqual(stateOf("const o = { n: 0 };\nconst m = {};\n  o.n += 1;\n  m[key] ??= 1;\n"), ["o", "m"]);
  assert.deepEqual(stateOf("const o = { n: 0 };\n  if (o.n === 1 && o.n >= 0) f((x) => o.n);\n"), []);
});

test("no module keeps what its callers change", () => {
  const found = rooms
    .filter((room) => /^(?:api|service)\//.test(room))
    .map((room) => ({ room, names: stateOf(readFileSync(join(root, room), "utf8")) }))
    .filter(({ names }) => names.length > 0);
  const refused = found.filter(({ room }) => keeping[room] === undefined);
  assert.deepEqual(refused, [], "make it with a factory and pass it on");
  assert.ok(Object.keys(keeping).every((room) => rooms.includes(room)));
});

test("only one module raises the generation of a network", () => {
  const raises = rooms.filter(
    (room) =>
      /^service\/src\/(network|server)\//.test(room) &&
      /\b(?:generation|applied)\b[^;,\n]*\+ /.test(readFileSync(join(root, room), "utf8")),
  );
  assert.deepEqual(raises, ["service/src/network/change.ts"]);
});

test("outside the store, no decision depends on which database it is", () => {
  // Whether others write too is `store.processes`. Only the claim of tasks differs, in its SQL.
  const allowed = ["service/src/engine/lease.ts"];
  const asks = rooms.filter(
    (room) =>
      room.startsWith("service/src/") &&
      !room.startsWith("service/src/store/") &&
      /"(?:sqlite|postgres)"/.test(readFileSync(join(root, room), "utf8")),
  );
  assert.deepEqual(
    asks.filter((room) => !allowed.includes(room)),
    [],
  );
});

test("no room is longer than 400 lines", () => {
  const long = globSync("{api,service,cli,console,test,bench,scripts}/**/*.{ts,tsx}", {
    cwd: root,
    exclude: ["**/node_modules/**"],
  })
    .map((file) => ({ file, lines: readFileSync(join(root, file), "utf8").split("\n").length - 1 }))
    .filter(({ lines }) => lines > 400)
    .map(({ file, lines }) => `${file}: ${lines}`);
  assert.deepEqual(long, []);
});
