import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultKeep } from "./config/retention.ts";
import { ConfigError } from "./config/value.ts";
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

test("each pool shows whether it was configured", () => {
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

test("retention is set by the name of the table", () => {
  assert.deepEqual(loadConfig({}).keep, defaultKeep);
  const { audit, task, event } = loadConfig({ BRUME_KEEP: "audit:730/5000000,task:30/20000" }).keep;
  assert.deepEqual(
    [audit, task],
    [
      { days: 730, count: 5_000_000 },
      { days: 30, count: 20_000 },
    ],
  );
  assert.deepEqual(event, defaultKeep.event);
  for (const BRUME_KEEP of [
    "audit",
    "audit:0/1",
    "audit:1/0",
    "audit:1",
    "nothing:1/1",
    "constructor:1/1",
    "audit:-1/5",
  ])
    assert.throws(() => loadConfig({ BRUME_KEEP }), /^ConfigError: BRUME_KEEP must be NAME:DAYS/, BRUME_KEEP);
});

const transferOf = (environment: Record<string, string>) => loadConfig(environment).dns.transfer;
const key = "hmac-sha256:Transfer.:c2VjcmV0";

test("a transfer key is for all zones, or for those that it names", () => {
  const all = { name: "transfer", algorithm: "hmac-sha256", secret: "c2VjcmV0", only: null };
  const list = `${key},hmac-sha512:two:b3RoZXI=:Example.com.+project/7+_x.example.org`;
  assert.deepEqual(transferOf({ BRUME_DNS_TRANSFER_KEYS: list }).keys, [
    all,
    {
      name: "two",
      algorithm: "hmac-sha512",
      secret: "b3RoZXI=",
      only: { zones: ["example.com", "_x.example.org"], groups: [7] },
    },
  ]);
  for (const scope of [":", ":a b", ":project/0", ":project/x", ":a..b", ":example.com:b", ":example.com+"])
    assert.throws(() => transferOf({ BRUME_DNS_TRANSFER_KEYS: key + scope }), ConfigError, scope);
});

test("a secondary is an address with an optional port and key", () => {
  const BRUME_DNS_NOTIFY = "192.0.2.1, transfer@192.0.2.2:5353, TRANSFER.@[2001:db8::1]:53";
  assert.deepEqual(transferOf({ BRUME_DNS_TRANSFER_KEYS: key, BRUME_DNS_NOTIFY }).notify, [
    { host: "192.0.2.1", port: 53 },
    { host: "192.0.2.2", port: 5353, key: "transfer" },
    { host: "2001:db8::1", port: 53, key: "transfer" },
  ]);
  for (const value of ["unknown@192.0.2.1", "@192.0.2.1", "transfer@", "somewhere"])
    assert.throws(
      () => transferOf({ BRUME_DNS_TRANSFER_KEYS: key, BRUME_DNS_NOTIFY: value }),
      (error: unknown) => error instanceof ConfigError && error.message.startsWith("BRUME_DNS_NOTIFY"),
      value,
    );
});

test("a catalog zone exists if its name is configured", () => {
  assert.equal(transferOf({}).catalog, null);
  assert.equal(transferOf({ BRUME_DNS_CATALOG: "Catalog.Brume.Invalid." }).catalog, "catalog.brume.invalid");
  assert.throws(
    () => loadConfig({ BRUME_KEY: "c0ffee" }),
    /^ConfigError: BRUME_KEY must be 64 lower-case hexadecimal characters\. Its value is secret and not shown here\.$/,
  );
  assert.throws(() => transferOf({ BRUME_DNS_CATALOG: "a b" }), /BRUME_DNS_CATALOG must be/);
});

test("the simulated host has the capacity of its setting", () => {
  const hostOf = (BRUME_SIMULATED_HOST?: string) => loadConfig({ BRUME_SIMULATED_HOST }).simulatedHost;
  assert.deepEqual(hostOf(), { cores: 64, memory: 1_048_576, disk: 65_536 });
  assert.deepEqual(hostOf("4096/16384/1000000"), { cores: 4096, memory: 16_777_216, disk: 1_000_000 });
  for (const bad of ["64", "64/1024", "0/1024/65536", "64/1024/65536/1", "64/1 TB/65536"])
    assert.throws(() => hostOf(bad), {
      message: /^BRUME_SIMULATED_HOST must be CORES\/RAM\/DISK with RAM and disk in GB/,
    });
});
