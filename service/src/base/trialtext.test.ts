import assert from "node:assert/strict";
import { test } from "node:test";
import { describeTrial, logTrial } from "./trialtext.ts";

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

test("the log has the text of the error, without its stack", () => {
  const lines: unknown[] = [];
  logTrial((...line) => void lines.push(line), "tunnels", new Error("ip: no such type"));
  assert.deepEqual(lines, [["info", "The trial of tunnels failed.", { cause: "ip: no such type" }]]);
});
