/** The scripts of the tiny Linux that route the replies of further NICs, in a network namespace with the programs of this host. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { whyNot } from "../support/hindrance.ts";

const scripts = resolve(import.meta.dirname, "../../guest/tiny/root/etc");
const space = `brume-tiny-${process.pid}`;
const card = `tiny${process.pid}`;
const ip = (...args: readonly string[]): string => execFileSync("ip", args, { encoding: "utf8" });
const runScript = (name: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): void => {
  execFileSync("ip", ["netns", "exec", space, "sh", join(scripts, name), ...args], { env: { ...process.env, ...env } });
};

// The kernel counts NICs for as long as the guest runs: after 150 changes, their numbers reach those of its own tables.
for (const index of [100, 152, 153, 154, 155, 252, 253, 254, 255, 1000])
  test(`NIC ${index} gets a table of its own, which its removal removes`, { skip: whyNot("ip") }, () => {
    ip("netns", "add", space);
    try {
      ip("-n", space, "link", "add", card, "index", String(index), "type", "veth", "peer", "name", "peer0");
      for (const name of [card, "peer0"]) ip("-n", space, "link", "set", name, "up");
      ip("-n", space, "addr", "add", "192.0.2.2/24", "dev", card);
      const rules = ip("-n", space, "rule");
      const main = ip("-n", space, "route");
      runScript("replies", [card, "192.0.2.2/24", "192.0.2.1"]);
      assert.match(ip("-n", space, "rule"), /from 192\.0\.2\.2 lookup (?!local|main|default)/);
      assert.equal(ip("-n", space, "route"), main, "other packets keep their routes");
      const there = ip("-n", space, "route", "get", "198.51.100.1", "from", "192.0.2.2");
      assert.match(there, /^198\.51\.100\.1 from 192\.0\.2\.2 via 192\.0\.2\.1 /);
      const event = { ACTION: "remove", SUBSYSTEM: "net", INTERFACE: card, IFINDEX: String(index) };
      runScript("hotplug", [], event);
      assert.equal(ip("-n", space, "rule"), rules);
    } finally {
      ip("netns", "del", space);
    }
  });
