import assert from "node:assert/strict";
import { test } from "node:test";
import { closedExcept, closedOf, resolversFor } from "./closedaddresses.ts";

test("opened addresses are not closed, and their neighbours still are", () => {
  const closed = closedExcept(["169.254.169.253", "fe80::1"]);
  assert.equal(closedOf(closed, "10.64.0.10", "169.254.169.253"), null);
  assert.equal(closedOf(closed, "10.64.0.10", "169.254.169.254"), "169.254.169.254");
  assert.equal(closedOf(closed, "fd24::1", "fe80::1"), null);
  assert.equal(closedOf(closed, "fd24::1", "fe80::2"), "fe80::2");
  assert.equal(closedOf(closed, "fd24::1", "fd00:ec2::254"), "fd00:ec2::254");
  assert.equal(closedOf(closed, "169.254.7.7", "10.64.0.10"), "169.254.7.7");
  assert.equal(closedOf(closed, "198.51.100.1", "10.64.0.10"), null);
});

test("guests get the name servers of the host that they can reach", () => {
  const servers = ["127.0.0.53", "9.9.9.9", "169.254.169.254", "192.0.2.7", "2620:fe::fe"];
  assert.deepEqual(resolversFor(servers, ["192.0.2.7", "fe80::7"], []), {
    usable: ["9.9.9.9"],
    closed: ["169.254.169.254", "192.0.2.7"],
  });
  assert.deepEqual(resolversFor(servers, ["192.0.2.7"], ["192.0.2.0/24"]).usable, ["9.9.9.9", "192.0.2.7"]);
});
