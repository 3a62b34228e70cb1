import assert from "node:assert/strict";
import { test } from "node:test";
import { isAlive, noteHandshake } from "./status.ts";

const hour = 3_600_000;

test("the age of a handshake does not follow a clock that is set", () => {
  const first = noteHandshake(undefined, null, 10 * hour, 0);
  assert.equal(isAlive(first, 0), false);
  // The time is in whole seconds, so it may be before the last reading.
  const shaken = noteHandshake(first, 10 * hour + 4000, 10 * hour + 5000, 5000);
  assert.equal(shaken.at, 4000);
  for (const set of [-9 * hour, 9 * hour]) {
    const again = noteHandshake(shaken, 10 * hour + 4000, 10 * hour + 10_000 + set, 10_000);
    assert.equal(isAlive(again, 184_000), true);
    assert.equal(isAlive(again, 184_001), false);
    // A new one under the new clock, and one from just before it was set.
    const later = noteHandshake(again, 10 * hour + 12_000 + set, 10 * hour + 15_000 + set, 15_000);
    assert.equal(later.at, 12_000);
    const crossing = noteHandshake(again, 10 * hour + 12_000, 10 * hour + 15_000 + set, 15_000);
    assert.ok(crossing.at >= 10_000 && crossing.at <= 15_000);
  }
});

test("the first observation uses the clock, and no handshake is in the future", () => {
  assert.equal(isAlive(noteHandshake(undefined, 9 * hour, 10 * hour, 0), 0), false);
  assert.equal(isAlive(noteHandshake(undefined, 10 * hour - 1000, 10 * hour, 0), 0), true);
  const ahead = noteHandshake(undefined, 11 * hour, 10 * hour, 0);
  assert.equal(isAlive(ahead, 180_000), true);
  assert.equal(isAlive(ahead, 180_001), false);
});

test("a peer that was created again has no handshake", () => {
  const before = noteHandshake(undefined, 10 * hour, 10 * hour, 0);
  assert.equal(isAlive(noteHandshake(before, null, 10 * hour, 1000), 1000), false);
});
