import assert from "node:assert/strict";
import { test } from "node:test";
import { borrowedAddresses, renderBorrowed } from "./sourceaddress.ts";
import { renderRoutes } from "./tunnelroutes.ts";

const routing = {
  namespace: "n",
  table: 219,
  cidr: "10.64.0.8/29",
  device: "ipsec0",
  routes: [
    { subnet: "10.0.0.0/24", mtu: 1400 },
    { subnet: "10.0.9.9/32", mtu: 1300 },
  ],
};
const nothing = { routes: [], rules: [], nextHop: "" };
/** As iproute2 6.1 prints them. */
const there = {
  routes: [
    { dst: "10.0.0.0/24", dev: "ipsec0", metrics: [{ mtu: 1400 }] },
    { dst: "10.0.9.9", dev: "ipsec0", metrics: [{ mtu: 1300 }] },
  ],
  rules: [
    { priority: 0, src: "all" },
    { priority: 219, src: "10.64.0.8", srclen: 29 },
  ],
  nextHop: "",
};

test("routes come with the rule that leads to them", () => {
  assert.deepEqual(renderRoutes(routing, nothing), [
    "route replace 10.0.0.0/24 dev ipsec0 mtu 1400 table 219",
    "route replace 10.0.9.9 dev ipsec0 mtu 1300 table 219",
    "rule add from 10.64.0.8/29 lookup 219 pref 219",
  ]);
});

test("correct routes are unchanged", () => {
  assert.deepEqual(renderRoutes(routing, there), []);
});

test("only what differs changes", () => {
  const [first] = routing.routes;
  assert.ok(first);
  assert.deepEqual(renderRoutes({ ...routing, routes: [{ ...first, mtu: 1200 }] }, there), [
    "route replace 10.0.0.0/24 dev ipsec0 mtu 1200 table 219",
    "route del 10.0.9.9 table 219",
  ]);
  const lost = { ...there, routes: [{ dst: "10.0.0.0/24", dev: "old0", metrics: [{ mtu: 1400 }] }] };
  assert.equal(renderRoutes(routing, lost).length, 2);
});

test("without tunnels nothing remains, and no packet is sent", () => {
  assert.deepEqual(renderRoutes({ ...routing, cidr: "", routes: [] }, there), [
    "route del 10.0.0.0/24 table 219",
    "route del 10.0.9.9 table 219",
    "rule del pref 219",
  ]);
  assert.deepEqual(renderRoutes({ ...routing, cidr: "", routes: [] }, nothing), []);
});

test("where the kernel encrypts, packets leave by the default route with the tunnel's MTU", () => {
  const nextHop = "via 169.254.1.1 dev up0 onlink";
  const lines = renderRoutes({ ...routing, device: null, routes: routing.routes.slice(0, 1) }, { ...nothing, nextHop });
  assert.equal(lines[0], "route replace 10.0.0.0/24 via 169.254.1.1 dev up0 onlink mtu 1400 table 219");
});

test("no text of a user is passed to another program", () => {
  const hostile = { ...routing, routes: [{ subnet: "10.0.0.0/24\nroute flush", mtu: 1400 }] };
  assert.throws(() => renderRoutes(hostile, nothing), /is no/);
  assert.throws(() => renderRoutes({ ...routing, cidr: "10.0.0.0/8 lookup main" }, nothing), /is no/);
});

test("an address is borrowed for each local block that the gateway is not in", () => {
  assert.deepEqual(borrowedAddresses("10.64.0.9", ["10.64.0.8/29"]), []);
  assert.deepEqual(borrowedAddresses("10.64.0.9", ["10.64.0.12/30", "10.64.0.10/32", "10.64.0.12/30"]), [
    "10.64.0.12",
    "10.64.0.10",
  ]);
  assert.deepEqual(renderBorrowed(["10.64.0.12"], ["10.64.0.12"]), []);
  assert.deepEqual(renderBorrowed(["10.64.0.12"], ["10.64.0.10"]), [
    "rule add to 10.64.0.12 lookup main pref 218",
    "addr add 10.64.0.12/32 dev lo",
    "route del local 10.64.0.12 dev lo table local",
    "route replace local 10.64.0.12 dev lo table 220",
    "addr del 10.64.0.10/32 dev lo",
    "route del local 10.64.0.10 dev lo table 220",
    "rule del to 10.64.0.10 lookup main pref 218",
  ]);
});
