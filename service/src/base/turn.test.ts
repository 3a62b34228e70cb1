import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createTurn, forEachInTurns, readPages, runAside } from "./turn.ts";

/** Notes the end of each of the next turns of the event loop. */
async function countTurns(seen: (number | string)[]): Promise<void> {
  for (let turns = 0; turns < 40; turns++) {
    await nextTurn();
    seen.push("turn");
  }
}

const mostInTurn = (seen: readonly (number | string)[]): number =>
  Math.max(
    ...seen
      .join(" ")
      .split("turn")
      .map((run) => run.split(" ").filter((item) => item !== "").length),
  );

test("a slice is over after five milliseconds, and the next one starts after the event loop", async () => {
  let now = 0;
  const turn = createTurn(() => now);
  assert.equal(turn.isOver(), false);
  now = 5;
  assert.equal(turn.isOver(), true);
  let isServed = false;
  setImmediate(() => {
    isServed = true;
  });
  await turn.next();
  assert.equal(isServed, true);
  assert.equal(turn.isOver(), false);
});

test("other work runs between the items of long work", async () => {
  const seen: (number | string)[] = [];
  setImmediate(() => seen.push("other"));
  await forEachInTurns([1, 2, 3], (item) => {
    seen.push(item);
    for (const until = performance.now() + 6; performance.now() < until; );
  });
  assert.deepEqual(
    seen.filter((item) => item !== "other"),
    [1, 2, 3],
  );
  assert.ok(seen.indexOf("other") < seen.indexOf(3));
});

test("works that share slices run in order, in several turns of the event loop", async () => {
  let now = 0;
  const turn = createTurn(() => now);
  const seen: (number | string)[] = [];
  const work = async (index: number): Promise<void> => {
    await turn.next();
    seen.push(index);
    now += 3;
    // Continues in the same turn, as a work does that awaits only the database.
    for (let steps = 0; steps < 5; steps++) await Promise.resolve();
  };
  await Promise.all([countTurns(seen), ...[1, 2, 3, 4, 5, 6, 7].map(work)]);
  const works = seen.filter((item) => item !== "turn");
  assert.deepEqual(works, [1, 2, 3, 4, 5, 6, 7]);
  // A slice of five milliseconds has two works of three.
  assert.ok(mostInTurn(seen) <= 2, seen.join(" "));
});

test("many short works, at once and one after the other, share the slice of a turn", async () => {
  const seen: (number | string)[] = [];
  const work = async (index: number): Promise<void> => {
    for (let part = 0; part < 3; part++)
      await forEachInTurns([1, 2], () => {
        seen.push(index);
        for (const until = performance.now() + 2; performance.now() < until; );
      });
  };
  await Promise.all([countTurns(seen), ...[1, 2, 3, 4].map(work)]);
  assert.equal(seen.filter((item) => item !== "turn").length, 24);
  // Three items of two milliseconds end the slice, and each work can begin with one more. With slices of their own it would be twelve.
  assert.ok(mostInTurn(seen) <= 7, seen.join(" "));
});

test("works that use their whole slices continue in turn", async () => {
  let now = 0;
  const turn = createTurn(() => now);
  const seen: number[] = [];
  const work = async (index: number): Promise<void> => {
    for (let part = 0; part < 3; part++) {
      await turn.next();
      seen.push(index);
      now += 5;
    }
  };
  await Promise.all([1, 2, 3].map(work));
  assert.deepEqual(seen, [1, 2, 3, 1, 2, 3, 1, 2, 3]);
});

test("pages end with the first one that is not full, and none is empty", async () => {
  for (const count of [0, 1, 3, 4, 6]) {
    const rows = Array.from({ length: count }, (_, index) => ({ id: 10 * (index + 1) }));
    const reads: number[] = [];
    const pages = readPages(3, async (after) => {
      reads.push(after);
      return rows.filter(({ id }) => id > after).slice(0, 3);
    });
    const found = await Array.fromAsync(pages);
    assert.deepEqual(found.flat(), rows);
    assert.ok(found.every(({ length }) => length > 0));
    assert.deepEqual(reads, [0, 30, 60].slice(0, Math.floor(count / 3) + 1));
  }
});

test("work aside waits before each slice, until others have ended", async () => {
  const order: string[] = [];
  function* work(): Generator<void, string> {
    order.push("work");
    yield;
    return "done";
  }
  let end = (): void => {};
  const others = new Promise<void>((resolve) => {
    end = resolve;
  });
  const forever = (): Promise<void> => new Promise(() => {});
  const aside = runAside(work(), others, forever);
  await nextTurn();
  order.push("others");
  end();
  assert.equal(await aside, "done");
  assert.deepEqual(order, ["others", "work"]);
  assert.equal(await runAside(work(), Promise.reject(new Error("others fail")), forever), "done");
  assert.equal(await runAside(work(), forever()), "done");
});
