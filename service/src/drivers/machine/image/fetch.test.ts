import assert from "node:assert/strict";
import { test } from "node:test";
import { catalogue } from "./catalogue.ts";
import { parseSource } from "./download.ts";
import { findSum } from "./fetch.ts";

test("finds checksums in each format of the distributions", () => {
  const [short, long] = ["a".repeat(64), "b".repeat(128)];
  assert.equal(findSum(`${short.toUpperCase()}  x.img\n`, "x.img", "sha256"), short);
  assert.equal(findSum(`${short} *./x.img\n`, "x.img", "sha256"), short);
  assert.equal(findSum(`# x.img: 12 bytes\nSHA256 (x.img) = ${short}\n`, "x.img", "sha256"), short);
  assert.equal(findSum(`SHA512 (x.img) = ${long}\n`, "x.img", "sha512"), long);
  assert.equal(findSum(`${long}\n`, "x.img", "sha512"), long);
  for (const text of ["", `${short}  y.img`, `${short}  xximg`, `${long}  x.img`, `SHA512 (x.img) = ${long}`, "<html>"])
    assert.equal(findSum(text, "x.img", "sha256"), null, text);
});

test("the catalogue contains only https addresses and valid names", () => {
  assert.equal(new Set(catalogue.map(({ name }) => name)).size, catalogue.length);
  for (const { name, url, sums } of catalogue) {
    assert.equal(parseSource(url, {}).protocol, "https:", name);
    assert.equal(new URL(sums, url).host, new URL(url).host, name);
  }
});
