import assert from "node:assert/strict";
import { test } from "node:test";
import { createJudge } from "./publicaddress.ts";

const publicAddresses = () => ["198.41.0.4", "2001:503:ba3e::2:30"];

test("only public addresses that are not of the host are allowed", () => {
  const isAllowed = createJudge([], publicAddresses);
  for (const text of ["8.8.8.8", "192.0.78.1", "2001:4860:4860::8888", "::ffff:8.8.8.8"])
    assert.ok(isAllowed(text), text);
  for (const text of [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "192.0.2.1",
    "198.18.0.1",
    "240.0.0.1",
    "::",
    "::1",
    "::7f00:1",
    "4000::1",
    "::ffff:127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::",
    "2001::1",
    "2001:db8::1",
    "fc00::1",
    "fd12::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "198.41.0.4",
    "::ffff:198.41.0.4",
    "2001:503:ba3e::2:30",
    "nonsense",
    "",
  ])
    assert.ok(!isAllowed(text), text);
  const more = createJudge(["10.0.0.0/8", "fd00::5"], publicAddresses);
  assert.ok(more("10.1.2.3") && more("::ffff:10.1.2.3") && more("fd00::5"));
  assert.ok(!more("192.168.0.1") && !more("fd00::6") && !more("127.0.0.1"));
});

test("the addresses of the host are read at each call", () => {
  const own: string[] = [];
  const isAllowed = createJudge([], () => own);
  assert.ok(isAllowed("198.41.0.4"));
  own.push("198.41.0.4");
  assert.ok(!isAllowed("198.41.0.4"));
});
