import assert from "node:assert/strict";
import { test } from "node:test";
import { describeTrial } from "./trialtext.ts";

test("a trial that failed states what is not available, why, and what to do, without the text of the error", () => {
  const text = { consequence: "Servers have no network", remedy: "Run as root: modprobe tun" };
  const cases = [
    ["ip tuntap add dev t0: open: No such file or directory", "something that it needs is missing on the host"],
    ["ip tuntap add dev t0: Operation not permitted\n at x", "the host does not permit it"],
    ["ip tuntap add dev t0: went wrong", "the trial at the start failed"],
  ] as const;
  for (const [error, cause] of cases)
    assert.equal(describeTrial(new Error(error), text), `Servers have no network: ${cause}. Run as root: modprobe tun`);
});
