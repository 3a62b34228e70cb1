import assert from "node:assert/strict";
import { test } from "node:test";
import { createHostLookup } from "./hostlookup.ts";

/** A resolver whose responses the test gives. */
function scene(limit?: number) {
  const open: PromiseWithResolvers<string>[] = [];
  const lookup = createHostLookup(() => {
    const one = Promise.withResolvers<string>();
    open.push(one);
    return one.promise;
  }, limit);
  return { open, lookup };
}

test("a name whose servers do not respond is rejected, and its late address serves the next attempt", async () => {
  const { open, lookup } = scene(10);
  await assert.rejects(lookup("a.example"), /no name server responded within 0.01 s/);
  await assert.rejects(lookup("a.example"), /no name server responded/);
  assert.equal(open.length, 1, "a look-up that still runs is not repeated");
  open[0]?.resolve("192.0.2.1");
  assert.equal(await lookup("a.example"), "192.0.2.1");
  void lookup("a.example").catch(() => {});
  assert.equal(open.length, 2, "an address serves one attempt only");
});

test("calls for one name share a look-up, also its error, and the next call looks up again", async () => {
  const { open, lookup } = scene();
  const [first, second, other] = [lookup("a.example"), lookup("a.example"), lookup("b.example")];
  assert.equal(open.length, 2);
  open[0]?.reject(new Error("no such name"));
  open[1]?.resolve("192.0.2.2");
  await assert.rejects(first, /no such name/);
  await assert.rejects(second, /no such name/);
  assert.equal(await other, "192.0.2.2");
  const third = lookup("a.example");
  open[2]?.resolve("192.0.2.3");
  assert.equal(await third, "192.0.2.3");
});
