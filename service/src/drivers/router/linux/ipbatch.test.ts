import assert from "node:assert/strict";
import { test } from "node:test";
import { CommandError, type Exec } from "../../exec.ts";
import { runBatch } from "./ipbatch.ts";

const reasons: readonly (readonly [stderr: string, message: string])[] = [
  ["RTNETLINK answers: File exists\nCommand failed -:2", 'ip, at "two": File exists'],
  ["Error: Unknown device type.\nCommand failed -:1", 'ip, at "one": Error: Unknown device type.'],
  [
    'Cannot create namespace file "/run/netns/x": File exists\nCommand failed -:2',
    'ip, at "two": Cannot create namespace file "/run/netns/x": File exists',
  ],
  ["one\n two\nCommand failed -:1", 'ip, at "one": one; two'],
  ["", "ip: ip -batch -: timed out"],
];

test("the error of a batch contains the failed line and the reason", async () => {
  for (const [stderr, message] of reasons) {
    const run = () => Promise.reject(new CommandError(["ip", "-batch", "-"], 1, stderr, "timed out"));
    await assert.rejects(runBatch({ run } as Partial<Exec> as Exec, null, ["one", "two"]), { message });
  }
});
