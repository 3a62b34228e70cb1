import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "./config.ts";

const sharedOf = (environment: Readonly<Record<string, string>>) => loadConfig(environment).network.sharedPools;

test("each location has a shared network without a setting, outside of the public pools", () => {
  assert.deepEqual(sharedOf({}), ["10.63.0.0/16"]);
  assert.deepEqual(sharedOf({ BRUME_LOCATIONS: "a,b" }), ["10.63.0.0/16", "10.65.0.0/16"]);
  assert.deepEqual(sharedOf({ BRUME_LOCATIONS: "a,b,c", BRUME_PUBLIC_POOL: "10.65.128.0/20,192.0.2.0/24" }), [
    "10.63.0.0/16",
    "10.64.0.0/16",
    "10.66.0.0/16",
  ]);
  assert.equal(new Set(sharedOf({ BRUME_LOCATIONS: "a,b,c", BRUME_PUBLIC_POOL: "10.0.0.0/8" })).size, 3);
  assert.throws(() => sharedOf({ BRUME_LOCATIONS: "a,b", BRUME_SHARED_POOL: "10.63.0.0/16" }), {
    message: /^BRUME_SHARED_POOL must be one block for each of the 2 locations/,
  });
});

test("pools say whether they were chosen", () => {
  const { pools } = loadConfig({ BRUME_PUBLIC_POOL: "192.0.2.0/24" }).network;
  assert.deepEqual(
    pools.map(({ setting, isChosen }) => [setting, isChosen]),
    [
      ["BRUME_PUBLIC_POOL", true],
      ["BRUME_SHARED_POOL", false],
      ["BRUME_PUBLIC_POOL6", true],
    ],
  );
});
