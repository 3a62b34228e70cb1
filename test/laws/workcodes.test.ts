/**
 * Every code of work comes of something. Those of servers that fail by waiting in vain are made here; for the others the file is named
 * in which a test expects the code. A new code needs a line here.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { type WorkCode, workFaults } from "@brume/api/work.ts";
import { ask, by, type Play, readJson } from "../serverplay.ts";
import type { StageOptions } from "../serverstage.ts";

interface Scene {
  readonly options?: StageOptions;
  /** The id of the task that fails with the code. */
  play(play: Play): Promise<number>;
}

/** Of which a test elsewhere sees it. */
const elsewhere = {
  boot_failed: "test/story/server-actions.test.ts",
  disk_failed: "test/story/server-images.test.ts",
  disk_missing: "test/story/server-trouble.test.ts",
  crashed: "test/story/server-trouble.test.ts",
  backup_failed: "test/story/server-images.test.ts",
  ssh_not_ready: "test/story/server-actions.test.ts",
  guest_did_not_respond: "test/story/server-actions.test.ts",
  batch_undone: "test/story/server-batch.test.ts",
  superseded: "test/story/server-life.test.ts",
  snapshot_failed: "test/laws/servermaking.test.ts",
  apply_failed: "test/story/network-life.test.ts",
  authentication_failed: "test/story/network-status.test.ts",
  no_proposal_chosen: "test/story/network-status.test.ts",
  selectors_refused: "test/story/network-status.test.ts",
  peer_unreachable: "test/story/network-status.test.ts",
  engine_unavailable: "test/story/network-status.test.ts",
} as const satisfies Partial<Record<WorkCode, string>>;

const scenes: Record<Exclude<WorkCode, keyof typeof elsewhere>, Scene> = {
  /** The network's rules cannot be brought into force. */
  network_failed: {
    async play({ stage, write }) {
      stage.router.broken = true;
      const wish = { project: 1, batch: null, spec: stage.spec(), by };
      return (await write((tx) => stage.servers.order.create(tx, wish))).task.id;
    },
  },
  /** The guest boots and never tells that it has. */
  guest_not_ready: {
    options: { bootTime: 1e12 },
    async play({ stage, write }) {
      const wish = { project: 1, batch: null, spec: stage.spec({ waitFor: "Guest" }), by };
      return (await write((tx) => stage.servers.order.create(tx, wish))).task.id;
    },
  },
  /** The server's process does not answer while a step works on it. */
  host_lost: {
    async play({ stage, write, make }) {
      const server = await make();
      stage.machines.trouble(server.id, "NotResponding");
      const wish = { input: { hdd: 40 }, steps: ["Disk"], restart: false };
      return (await write((tx) => stage.servers.order.resize(tx, server, wish, by))).id;
    },
  },
};

for (const [code, { play, options }] of Object.entries(scenes) as [keyof typeof scenes, Scene][])
  ask(
    `work ends with ${code}`,
    async (it) => {
      const task = await it.end({ id: await play(it) });
      assert.deepEqual([task.state, task.error?.code, task.error?.title], ["Failed", code, workFaults[code]]);
      assert.match(task.error?.detail ?? "", /^Server \d+ .*\.?$/);
      if (code === "network_failed") {
        const row = await it.server(task.subject.id);
        assert.deepEqual([row.state, readJson(row.error)["code"]], ["Failed", code]);
      }
    },
    options,
  );

describe("codes of work that are made elsewhere", () => {
  for (const [code, file] of Object.entries(elsewhere))
    test(code, () => {
      const text = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
      assert.ok(text.includes(`"${code}"`), `${file} does not expect ${code}`);
    });
});
