/**
 * The tests of real packets and servers run only where the service finds its engines. If that search itself were broken, they would all be
 * skipped. So this test demands the engines wherever the commands exist and namespaces can be created.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { whyNot } from "../support/hindrance.ts";
import { hindrance as networkHindrance } from "../support/netnslab.ts";
import { hindrance as serverHindrance } from "./serverhost.ts";

const skip = whyNot("ip", "tc", "nft", "sysctl", "dnsmasq", "ping", "ps", "qemu-system-x86_64", "qemu-img");
if (skip !== false) console.log(`the detection of engines: not tried, ${skip}`);

test("a host that can run networks and servers is found to be one", { skip }, () => {
  assert.deepEqual({ networkHindrance, serverHindrance }, { networkHindrance: null, serverHindrance: null });
});
