import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { test } from "node:test";
import { createContext, runInContext } from "node:vm";
import { verifySignature } from "./signature.ts";

/** Made with `printf '1795165200.{"ID":1}' | openssl dgst -sha256 -hmac secret`. */
const known = {
  body: '{"ID":1}',
  signature: "t=1795165200,v1=61e993e2bac5ea499984d346cd10dcf8efa8a6563dc8ba3eb63ec9f2add99498",
  secret: "secret",
  now: 1_795_165_200_000,
};

test("a delivery is genuine only with its body, secret and time", async () => {
  assert.equal(await verifySignature(known), true);
  assert.equal(await verifySignature({ ...known, body: new TextEncoder().encode(known.body) }), true);
  assert.equal(await verifySignature({ ...known, now: known.now + 299_000 }), true);
  for (const change of [
    { body: '{"ID":2}' },
    { secret: "Secret" },
    { now: known.now + 301_000 },
    { now: known.now - 301_000 },
    { signature: known.signature.replace("t=1795165200", "t=1795165201") },
    { signature: known.signature.replace("v1=", "v0=") },
    { signature: `${known.signature},v1=00` },
    { signature: "" },
    { signature: null },
    { signature: undefined },
  ])
    assert.equal(await verifySignature({ ...known, ...change }), false, JSON.stringify(change));
});

test("it needs only WebCrypto and the standard library of JavaScript", async () => {
  const source = stripTypeScriptTypes(readFileSync(new URL("signature.ts", import.meta.url), "utf8"));
  assert.doesNotMatch(source, /\bimport\b/);
  const context = createContext({ crypto: globalThis.crypto, TextEncoder, Uint8Array });
  runInContext(source.replaceAll(/^export /gm, ""), context);
  const check = context as unknown as { verifySignature: typeof verifySignature };
  assert.equal(await check.verifySignature(known), true);
  assert.equal(await check.verifySignature({ ...known, secret: "Secret" }), false);
});
