/**
 * An attacker who controls the control plane sends hostile messages to the host agent on the real drivers. They change nothing on the host
 * that is not of this installation: no file, process, interface, route or rule.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { whyNot } from "../support/hindrance.ts";
import { runsOf, withSeed } from "../support/random.ts";

const hindrance = whyNot("ip", "nft", "tc", "sysctl", "unshare", "qemu-system-x86_64", "qemu-img");
if (hindrance !== false) console.log(`hostile messages to the agent: not tried, ${hindrance}`);

/** Messages, nearly all of which schemas must refuse; a few hundred reach the drivers. */
const messages = runsOf(50_000, 4000);
const fixture = join(import.meta.dirname, "agenthost.ts");
/** Verbs of which some messages must reach the driver. */
const reaching = [
  "machines.ensureDisk",
  "images.removeImage",
  "images.ensureImported",
  "router.apply",
  "router.readBanner",
];

interface Report {
  readonly sent: number;
  readonly reached: Readonly<Record<string, number>>;
  readonly statuses: Readonly<Record<string, number>>;
  /** Outcomes of requests for streams. */
  readonly streams: { readonly fitting: readonly string[]; readonly others: readonly string[] };
  readonly lost: readonly string[];
  readonly foreign: readonly string[];
  readonly left: readonly string[];
  readonly gone: readonly string[];
  /** Number of responses with an error of a driver. */
  readonly failures: number;
  /** Responses that name a path, program, command line or rule of the host. */
  readonly revealed: readonly string[];
}

test(
  `${messages} hostile messages to the agent change nothing that is not of this installation`,
  { skip: hindrance },
  () =>
    withSeed(async ({ seed }) => {
      const namespaces = ["-n", "-m", "-p", "-f", "--mount-proc"];
      const argv = [...namespaces, process.execPath, fixture, String(messages), String(seed), reaching.join()];
      const child = spawn("unshare", argv, { stdio: ["ignore", "pipe", "inherit"] });
      let text = "";
      child.stdout.on("data", (part) => (text += String(part)));
      await new Promise((resolve) => child.on("close", resolve));
      const report = JSON.parse(text.trim().split("\n").at(-1) ?? "") as Report;
      assert.ok(report.sent >= messages);
      assert.deepEqual(
        Object.keys(report.statuses),
        ["input_invalid"],
        "every message that its schema refuses gets this error",
      );
      assert.deepEqual(report.streams, { fitting: ["101", "driver_failed"], others: ["input_invalid"] });
      for (const name of reaching)
        assert.ok((report.reached[name] ?? 0) >= 5, `${name} reached the driver ${report.reached[name] ?? 0} times`);
      assert.ok(report.failures >= 20, `${report.failures} errors of drivers`);
      assert.deepEqual(report.revealed, [], "responses name something of the host");
      assert.deepEqual(report.lost, [], "something of others is gone or changed");
      assert.deepEqual(report.foreign, [], "something appeared that is not of this installation");
      assert.deepEqual([report.left, report.gone], [[], []], "after the removal, the host is as before");
    }),
);
