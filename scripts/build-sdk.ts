/**
 * Compiles `api/src` to `api/dist`, the content of the npm package: JavaScript, declarations and source maps. `npm pack` runs it. The
 * table of routes is replaced by its value, so that a bundle with the client contains neither the contract nor the schema library.
 * `npm run check` checks the types.
 */
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const api = resolve(import.meta.dirname, "../api");
const dist = join(api, "dist");
rmSync(dist, { recursive: true, force: true });
execFileSync(
  process.execPath,
  [join(api, "../node_modules/typescript/bin/tsc"), "-p", join(api, "tsconfig.dist.json")],
  {
    stdio: "inherit",
  },
);
const { routes } = (await import(join(dist, "routes.js"))) as { routes: unknown };
writeFileSync(join(dist, "routes.js"), `export const routes = ${JSON.stringify(routes, null, 1)};\n`);
rmSync(join(dist, "routes.js.map"));
