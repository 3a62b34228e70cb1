#!/usr/bin/env node
// The cache of compiled code saves a third of the start. Node 20 does not have it.
const { existsSync } = require("node:fs");
const { enableCompileCache } = require("node:module");
const { join } = require("node:path");

const program = join(__dirname, "../dist/brume.cjs");
if (existsSync(program)) {
  enableCompileCache?.();
  require(program);
} else {
  process.stderr.write("error: the command is not built yet.\nremedy: Run npm start once.\n");
  process.exitCode = 1;
}
