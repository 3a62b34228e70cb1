/** Changes of single ports in the tables that contain something of each port. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { image, port } from "../../../../../test/support/networkspec.ts";
import { lockParts, lockText } from "../linux/sourcelock.ts";
import { digestOf } from "./firewall.ts";
import { changePorts } from "./porttable.ts";

const six = (id: number, address: string) => ({
  ...port(id, address),
  addresses: [address, `fd24:1::${id}`],
});
const [one, two, moved] = [six(1, "10.64.0.10"), six(2, "10.64.0.11"), six(1, "10.64.0.12")];
const textOf = (...ports: (typeof one)[]): string =>
  lockText(image({ v6: { cidr: "fd24:1::/64", gateway: "fd24:1::1" }, ports }));
const partsOf = (...ports: (typeof one)[]) => ports.map((each) => lockParts(each, true));

test("a change of ports leads to the digest of the complete text, in any order", () => {
  const before = { name: "lock0", digest: digestOf(textOf(one, two)) };
  const { active } = changePorts("bridge", before, partsOf(one), partsOf(moved));
  assert.deepEqual(active, { name: "lock0", digest: digestOf(textOf(two, moved)) });
  assert.equal(digestOf(textOf(moved, two)), active.digest);
  assert.notEqual(before.digest, active.digest);
  const removed = changePorts("bridge", active, partsOf(moved, two), []);
  assert.equal(removed.active.digest, digestOf(textOf()));
});

test("a changed port changes only its own elements and chains", () => {
  const before = { name: "lock1", digest: digestOf(textOf(one)) };
  const { text } = changePorts("bridge", before, partsOf(one), partsOf(moved));
  const lines = text.split("\n").filter((line) => !line.includes(" counter "));
  assert.deepEqual(lines, [
    'delete element bridge lock1 v4 { "p1" . 02:42:00:00:00:01 . 10.64.0.10 }',
    'add element bridge lock1 v4 { "p1" . 02:42:00:00:00:01 . 10.64.0.12 }',
    "",
  ]);
  assert.equal(changePorts("bridge", before, partsOf(one), partsOf(one)).text, "");
});
