import assert from "node:assert/strict";
import { test } from "node:test";
import type { ApiError } from "../../../base/error.ts";
import { findConflicts } from "../rules.ts";
import { parseZone, readZone } from "./parse.ts";

const lines = (text: string) =>
  parseZone(text, "example.com").records.map(({ type, owner, ttl, value }) => `${owner} ${ttl} ${type} ${value}`);

test("$GENERATE", () => {
  assert.deepEqual(lines("$GENERATE 1-3 h$ 60 A 10.0.0.$"), [
    "h1 60 A 10.0.0.1",
    "h2 60 A 10.0.0.2",
    "h3 60 A 10.0.0.3",
  ]);
  assert.deepEqual(lines("$GENERATE 8-16/4 h${0,3,d} CNAME x${-8,2,x}.net."), [
    "h008 3600 CNAME x00.net",
    "h012 3600 CNAME x04.net",
    "h016 3600 CNAME x08.net",
  ]);
  assert.deepEqual(lines('$GENERATE 1-2 @ MX "1$ m$"'), ["@ 3600 MX 11 m1.example.com", "@ 3600 MX 12 m2.example.com"]);
  assert.deepEqual(lines('$GENERATE 1-1 a TXT "costs $$ $ \\$"'), ["a 3600 TXT costs $ 1 $"]);
  assert.deepEqual(lines("$GENERATE 26-26 ${0,4,n} A 10.0.0.1"), ["a.1 3600 A 10.0.0.1"]);
});

/** Runs the work. Returns its result and the number of its yields. */
function countSteps<T>(work: Generator<void, T>): [T, number] {
  for (let count = 0; ; count++) {
    const { done, value } = work.next();
    if (done === true) return [value, count];
  }
}

test("$GENERATE ends at the limit of records, also if none is stored", () => {
  const detail = (line: number) => `line ${line}: the $GENERATE lines must create at most 100 records together.`;
  for (const data of ["a CAA x", "a A 192.0.2.1", "@ NS x", "@ SOA a b 1 1 1 1 1"]) {
    const work = readZone(`$GENERATE 1-60 ${data}\n`.repeat(20), "example.com", 100);
    let steps = 0;
    assert.throws(
      () => {
        while (work.next().done !== true) steps++;
      },
      ({ errors }: ApiError) => {
        assert.deepEqual(
          errors.map((error) => error.detail),
          Array.from({ length: 19 }, (_, index) => detail(index + 2)),
        );
        return true;
      },
    );
    assert.ok(steps <= 2, `${data}: ${steps}`);
  }
  // All results are allowed up to the limit, and written lines do not count.
  const written = "b A 192.0.2.1\nc CAA x\n".repeat(200);
  const zone = parseZone(`${written}$GENERATE 1-50 a A 192.0.2.1\n$GENERATE 1-50 a CAA x`, "example.com", 100);
  assert.deepEqual([zone.records.length, zone.skipped.length], [2, 250]);
});

test("the list of skipped records has a limit", () => {
  const { skipped } = parseZone("a CAA x\n".repeat(1500), "example.com");
  assert.deepEqual(skipped.slice(998), ["line 999: CAA", "line 1000: CAA", "and 500 more"]);
  assert.equal(parseZone("a CAA x\n".repeat(1000), "example.com").skipped.at(-1), "line 1000: CAA");
});

test("a long zone file is read and validated with many interruptions", () => {
  const lines = Array.from({ length: 3000 }, (_, index) => `h${index} 300 IN A 192.0.2.${index % 250}`);
  const [written, steps] = countSteps(readZone(lines.join("\n"), "example.com"));
  const [generated, others] = countSteps(readZone("$GENERATE 0-2999 h$ 300 A 192.0.2.1", "example.com"));
  assert.deepEqual([written.records.length, generated.records.length], [3000, 3000]);
  assert.ok(steps >= 20 && others >= 20, `${steps}, ${others}`);
  const [conflicts, checks] = countSteps(findConflicts(written.records));
  assert.deepEqual(conflicts, []);
  assert.ok(checks >= 5, `${checks}`);
});
