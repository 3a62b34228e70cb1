import assert from "node:assert/strict";
import { test } from "node:test";
import { listFileCalls } from "../../../../../test/support/filecalls.ts";
import type { Exec } from "../../exec.ts";
import { createTaps } from "./tap.ts";

test("named devices are created and removed without a search through all devices of the host", async () => {
  const lines: string[] = [];
  const run: Exec["run"] = async (_argv, options) => {
    lines.push(...((await options?.stdin) ?? "").trim().split("\n"));
    return "";
  };
  const taps = createTaps({ run } as Exec, "zz9");
  const calls = await listFileCalls(async () => {
    await taps.create(7, [{ id: 3, mac: "02:42:00:00:00:03" }], 1007);
    await taps.remove(7, ["bzz9t3", "lo"]);
  });
  assert.deepEqual(lines, ["tuntap add dev bzz9x3 mode tap user 1007", "link set dev bzz9x3 alias brume-zz9-7"]);
  assert.deepEqual(calls, [
    "readFileSync /sys/class/net/bzz9t3/ifalias",
    "existsSync /sys/class/net/bzz9x3",
    "readFileSync /sys/class/net/bzz9t3/ifalias",
    "readFileSync /sys/class/net/lo/ifalias",
  ]);
});
