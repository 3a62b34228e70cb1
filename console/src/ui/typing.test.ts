/** Texts that are typed on the screen of a VM. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTyping } from "./typing.ts";

/** Types on a keyboard that writes down its keys; `next` lets the time pass until the following keys. */
function typeOn() {
  let keys = "";
  const timers: { readonly next: () => void; readonly ms: number }[] = [];
  const typing = createTyping(
    (keysym, code, down) => {
      const name = code ?? String.fromCodePoint(keysym % 0x1000000);
      keys += down === undefined ? name : down ? "[" : "]";
    },
    (next, ms) => timers.push({ next, ms }),
  );
  const next = (): number => {
    const timer = timers.shift() ?? assert.fail("nothing is waiting");
    timer.next();
    return timer.ms;
  };
  return { typing, next, keys: () => keys, isWaiting: () => timers.length > 0 };
}

test("a character that needs Shift is typed with it, and the others without", () => {
  const { typing, keys } = typeOn();
  typing.type("aB1!é\r\n\t€");
  assert.equal(keys(), "a[B]1[!]é\uff0d\uff09€");
});

test("a long text waits until the keys before are pressed, and a text after it is behind it", () => {
  const { typing, next, keys, isWaiting } = typeOn();
  typing.type(`${"a".repeat(30)}${"B".repeat(20)}`);
  typing.type("end");
  assert.equal(keys(), `${"a".repeat(30)}${"[B]".repeat(10)}`);
  assert.equal(next(), (30 + 10 * 2) * 25);
  assert.equal(keys(), `${"a".repeat(30)}${"[B]".repeat(20)}end`);
  next();
  assert.equal(isWaiting(), false);
  typing.type("x");
  assert.equal(keys().at(-1), "x");
});

test("nothing is typed after the end of the connection", () => {
  const { typing, next, keys, isWaiting } = typeOn();
  typing.type("a".repeat(50));
  typing.stop();
  next();
  assert.equal(keys(), "a".repeat(40));
  assert.equal(isWaiting(), false);
});
