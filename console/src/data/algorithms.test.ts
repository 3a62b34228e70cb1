import assert from "node:assert/strict";
import { test } from "node:test";
import { algorithmsOf } from "./algorithms.ts";

test("algorithms have their usual names", () => {
  const rows = [
    ["AES_CBC_256/HMAC_SHA2_512_256/MODP_2048", "AES-256 · SHA-512 · MODP-2048"],
    ["AES_GCM_16_128/ECP_384", "AES-128-GCM · ECP-384"],
    ["3DES_CBC/HMAC_SHA1_96/CURVE_25519", "3DES · SHA-1 · Curve25519"],
    ["CHACHA20_POLY1305", "CHACHA20_POLY1305"],
  ];
  for (const [proposal = "", text] of rows) assert.equal(algorithmsOf(proposal), text);
});
