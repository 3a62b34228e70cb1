import assert from "node:assert/strict";
import { test } from "node:test";
import { exec } from "../../exec.ts";
import { permitsPrivateRoots } from "./confine.ts";

test("a host that refuses a private root does not permit one", async () => {
  const run = (argv: readonly string[]) =>
    argv.includes("setpriv") && argv.includes("unshare") ? Promise.reject(new Error("refused")) : Promise.resolve("");
  assert.equal(await permitsPrivateRoots({ ...exec, run }), false);
  assert.equal(await permitsPrivateRoots({ ...exec, run: () => Promise.resolve("") }), true);
});
