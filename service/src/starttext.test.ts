import assert from "node:assert/strict";
import { test } from "node:test";
import { hintOfToken, startText } from "./starttext.ts";

const started = {
  url: "http://127.0.0.1:8080",
  token: "in data/token",
  dns: "[::1]:5353",
  domain: null,
  dataFolder: null,
  hasTokenFile: true,
};

test("the text has the addresses, and commands for them", () => {
  const text = startText(started);
  for (const part of ["http://127.0.0.1:8080/console/", "in data/token", "dig +short @::1 -p 5353 example.com"])
    assert.ok(text.includes(part), part);
  assert.doesNotMatch(text, /BRUME_DATA/);
});

test("commands are for a domain that exists, and for another data folder", () => {
  const text = startText({ ...started, domain: "shop.example", dataFolder: "/srv/my data" });
  assert.match(text, / shop\.example SOA/);
  assert.match(text, /export BRUME_DATA='\/srv\/my data'/);
  assert.match(
    startText({ ...started, hasTokenFile: false }),
    /export BRUME_URL='http:\/\/127\.0\.0\.1:8080' BRUME_TOKEN="\$BRUME_TOKEN"/,
  );
});

test("the token is not printed again, and not without a terminal", () => {
  const value = "f".repeat(64);
  assert.equal(hintOfToken("/srv", { value, isNew: false }), "in /srv/token");
  if (!process.stdout.isTTY) assert.equal(hintOfToken("/srv", { value, isNew: true }), "created now, in /srv/token");
  assert.equal(hintOfToken("/srv", null), "the value of BRUME_TOKEN");
});
