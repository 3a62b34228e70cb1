import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Exec, exec } from "../../exec.ts";
import { createDhcp } from "./dhcp.ts";

test("a dnsmasq that cannot be ended is an error, and holds up nothing else", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "brume-dhcp-"));
  t.after(() => rmSync(root, { recursive: true }));
  const signals: string[] = [];
  const stuck: Exec = {
    ...exec,
    isAlive: () => true,
    signal(_child, signal) {
      signals.push(signal);
      return true;
    },
  };
  const folder = join(root, "7");
  mkdirSync(folder);
  writeFileSync(join(folder, "dnsmasq.json"), JSON.stringify({ child: { pid: 1, born: 1 }, digest: "", told: "" }));
  await assert.rejects(createDhcp(stuck, () => folder).stop(7), /dnsmasq of network 7 did not end/);
  assert.deepEqual(signals, ["SIGTERM", "SIGKILL"]);
});
