import assert from "node:assert/strict";
import { test } from "node:test";
import { createFormat } from "./format.ts";
import { ru } from "./ru.ts";

test("numbers are written as Intl writes them", () => {
  for (const locale of ["en", "en-IN", "en-GB", "ru", "ru-RU"]) {
    const format = createFormat(locale);
    const expected = new Intl.NumberFormat(locale);
    for (const value of [0, 1, 9.5, 42, 999, 999.5, 1000, 1234567, -1, -999, -1000])
      assert.equal(format.number(value), expected.format(value), `${locale} ${value}`);
  }
});

test("sizes, rates and times have units of the language, on the same line", () => {
  const [en, ru] = [createFormat("en"), createFormat("ru")];
  assert.deepEqual([en.megabits(100), en.megabits(1500)], ["100\u00a0Mbit/s", "1,500\u00a0Mbit/s"]);
  assert.equal(ru.megabits(100), "100\u00a0Мбит/с");
  assert.deepEqual(
    [en.bytes(1_230_000), en.rate(1000), en.megabytes(2048)],
    ["1.2\u00a0MB", "8\u00a0kbit/s", "2\u00a0GB"],
  );
  assert.deepEqual(
    [en.bytesPerSecond(1_230_000), ru.bytesPerSecond(1000), en.percent(12.34), ru.percent(50)],
    ["1.2\u00a0MB/s", "1\u00a0кБ/с", "12.3%", "50\u00a0%"],
  );
  assert.deepEqual([en.compact(3400), en.duration(65)], ["3.4K", "1:05"]);
  const at = "2026-01-02T03:04:05Z";
  assert.equal(en.ago(at, Date.parse(at)), "now");
  assert.equal(en.ago(at, Date.parse(at) + 5 * 60_000), "5 minutes ago");
  assert.equal(en.seconds(at, "2026-01-02T03:04:06.5Z"), "1.5\u00a0s");
});

test("in Russian the first of several errors is named as such, also if their number ends with one", () => {
  const texts = [1, 3, 21, 25].map((n) => ru.records.errors(n, "x"));
  assert.deepEqual(texts, ["1 ошибка: x", "3 ошибки. Первая: x", "21 ошибка. Первая: x", "25 ошибок. Первая: x"]);
});
