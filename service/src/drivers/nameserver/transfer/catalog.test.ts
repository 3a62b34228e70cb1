import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { createZones } from "../builtin/zones.ts";
import { createCatalog } from "./catalog.ts";

const start = 1_800_000_000_000;
const day = 86_400_000;

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "Date"], now: start }));
afterEach(() => mock.timers.reset());

/** A loaded catalog, and its serials in seconds after the start. `step`: milliseconds by which the clock is set. */
function open() {
  const serials: number[] = [];
  const state = { step: 0 };
  const catalog = createCatalog("catalog.invalid", createZones(1), { now: () => Date.now() + state.step }, () =>
    serials.push(catalog.serial() - start / 1000),
  );
  catalog.load();
  return { catalog, serials, state };
}

function pass(ms: number): void {
  for (let passed = 0; passed < ms; passed += 10) mock.timers.tick(10);
}

test("the serial is the second of the change, once a second", () => {
  const { catalog, serials } = open();
  pass(10_000);
  for (let change = 0; change < 30; change++) {
    catalog.touch();
    pass(100);
  }
  assert.deepEqual(serials, [1, 10, 11, 12]);
  catalog.close();
});

for (const days of [10, 400])
  test(`changes are announced within seconds after the clock was set back by ${days} days`, () => {
    const { catalog, serials, state } = open();
    state.step = -days * day;
    catalog.touch();
    pass(3000);
    catalog.touch();
    pass(3000);
    assert.deepEqual(serials, [1, 2, 3]);
    catalog.close();
  });

test("after a restart with a clock that was set back, it continues above the serial of a secondary", () => {
  const { catalog, serials } = open();
  catalog.exceed(start / 1000 + 50);
  pass(3000);
  assert.deepEqual(serials, [1, 51]);
  catalog.exceed(start / 1000 + 20);
  catalog.exceed(2 ** 32 - 1);
  pass(3000);
  assert.deepEqual(serials, [1, 51]);
  catalog.close();
});
