import assert from "node:assert/strict";
import { test } from "node:test";
import { createPlaces } from "./places.ts";

test("a network with all its places replaces its idlest connection", () => {
  const places = createPlaces<string>({ total: 10, perNetwork: 2 });
  assert.equal(places.enter("a1", 1), null);
  assert.equal(places.enter("b1", 2), null);
  assert.equal(places.enter("a2", 1), null);
  places.touch("a1");
  assert.equal(places.enter("a3", 1), "a2");
  assert.deepEqual([...places.all()].sort(), ["a1", "a3", "b1"]);
});

test("when all places are in use, the largest network loses its idlest connection", () => {
  const places = createPlaces<string>({ total: 4, perNetwork: 4 });
  for (const item of ["a1", "b1", "b2", "c1"]) assert.equal(places.enter(item, item.charCodeAt(0)), null);
  places.touch("b1");
  assert.equal(places.enter("d1", 4), "b2");
  // Now all have one each: the idlest of all.
  assert.equal(places.enter("e1", 5), "a1");
  places.leave("c1");
  assert.equal(places.enter("f1", 6), null);
});

test("a connection that left has no place, and leaving twice changes nothing", () => {
  const places = createPlaces<string>({ total: 4, perNetwork: 4 });
  places.enter("a", 1);
  places.leave("a");
  places.leave("a");
  places.touch("a");
  assert.deepEqual([...places.all()], []);
});

test("three of four places in use count as crowded", () => {
  const places = createPlaces<number>({ total: 4, perNetwork: 4 });
  places.enter(1, 1);
  places.enter(2, 1);
  assert.equal(places.isCrowded(), false);
  places.enter(3, 1);
  assert.equal(places.isCrowded(), true);
});
