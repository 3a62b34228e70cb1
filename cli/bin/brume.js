#!/usr/bin/env node
// The cache of compiled modules saves a third of the start. Node 20 does not have it.
import { existsSync } from "node:fs";
import module from "node:module";

if (existsSync(new URL("../dist/brume.js", import.meta.url))) {
  module.enableCompileCache?.();
  await import("../dist/brume.js");
} else {
  process.stderr.write("error: the command is not built yet.\nremedy: Run npm start once.\n");
  process.exitCode = 1;
}
