/**
 * Every error code of background work is produced by a test: here for servers that time out, else in the named file. A new code needs an
 * entry.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { taskErrors, type WorkCode } from "@brume/api/work.ts";
import { StepError } from "../../service/src/engine/flow.ts";
import type { TaskError } from "../../service/src/engine/task.ts";
import { by, readJson, type ServerEngineFixture, serverInvariant } from "../support/serverenginefixture.ts";
import type { ServerFixtureOptions } from "../support/serverfixture.ts";

interface Cause {
  readonly options?: ServerFixtureOptions;
  /** Returns the id of the task that fails with the code. */
  fail(harness: ServerEngineFixture): Promise<number>;
}

/** Of which a test elsewhere sees it. */
const elsewhere = {
  boot_failed: "test/e2e/server-actions.test.ts",
  disk_failed: "test/e2e/server-images.test.ts",
  disk_missing: "test/e2e/server-trouble.test.ts",
  crashed: "test/e2e/server-trouble.test.ts",
  backup_failed: "test/e2e/server-images.test.ts",
  ssh_not_ready: "test/e2e/server-actions.test.ts",
  guest_did_not_respond: "test/e2e/server-actions.test.ts",
  batch_undone: "test/e2e/server-batch.test.ts",
  superseded: "test/e2e/server-life.test.ts",
  snapshot_failed: "test/invariants/servermaking.test.ts",
  apply_failed: "test/e2e/network-life.test.ts",
  authentication_failed: "test/e2e/network-status.test.ts",
  no_proposal_chosen: "test/e2e/network-status.test.ts",
  selectors_refused: "test/e2e/network-status.test.ts",
  peer_unreachable: "test/e2e/network-status.test.ts",
  engine_unavailable: "test/e2e/network-status.test.ts",
  deadline_exceeded: "test/invariants/flows.test.ts",
} as const satisfies Partial<Record<WorkCode, string>>;

const causes: Record<Exclude<WorkCode, keyof typeof elsewhere>, Cause> = {
  /** The network's rules cannot be brought into force. */
  network_failed: {
    async fail({ fixture, write }) {
      fixture.router.broken = true;
      const spec = { project: 1, batch: null, spec: fixture.spec(), by };
      return (await write((tx) => fixture.servers.commands.create(tx, spec))).task.id;
    },
  },
  /** The guest boots and never reports that it is ready. */
  guest_not_ready: {
    options: { bootTime: 1e12 },
    async fail({ fixture, write }) {
      const spec = { project: 1, batch: null, spec: fixture.spec({ waitFor: "Guest" }), by };
      return (await write((tx) => fixture.servers.commands.create(tx, spec))).task.id;
    },
  },
  /** A stored secret cannot be opened, for which no step has words. */
  internal: {
    async fail({ fixture, write, make }) {
      const server = await make();
      await write((tx) =>
        tx
          .updateTable("server")
          .set({ user_data: Buffer.from("damaged") })
          .where("id", "=", server.id)
          .execute(),
      );
      return (await write((tx) => fixture.servers.commands.power(tx, server, { Type: "PowerReboot" }, by))).id;
    },
  },
  /** The server's process does not answer while a step works on it. */
  host_lost: {
    async fail({ fixture, write, make }) {
      const server = await make();
      fixture.machines.trouble(server.id, "NotResponding");
      const spec = { input: { hdd: 40 }, steps: ["Disk"], restart: false };
      return (await write((tx) => fixture.servers.commands.resize(tx, server, spec, by))).id;
    },
  },
};

/** Where the detail is not one sentence about the server. */
const details: Partial<Record<WorkCode, RegExp>> = {
  internal: /^Reset did not succeed\.$/,
  network_failed:
    /^Server \d+: timed out waiting for network \d+\. Generation \d+ of network \d+ could not be applied and is retried: ./,
};

for (const [code, { fail, options }] of Object.entries(causes) as [keyof typeof causes, Cause][])
  serverInvariant(
    `work ends with ${code}`,
    async (it) => {
      const task = await it.end({ id: await fail(it) });
      assert.deepEqual([task.state, task.error?.code, task.error?.title], ["Failed", code, taskErrors[code]]);
      assert.match(task.error?.detail ?? "", details[code] ?? /^Server \d+[: ].*\.?$/);
      if (code === "network_failed") {
        const row = await it.server(task.subject.id);
        assert.deepEqual([row.state, readJson(row.error)["code"]], ["Failed", code]);
      }
    },
    options,
  );

test("no other code can be stored or thrown", () => {
  // @ts-expect-error The compiler rejects a code that is not in the list.
  const error = new StepError("no_such_code", "No title.", "No detail.");
  // @ts-expect-error In an error that is stored as well.
  const stored: TaskError = { code: "no_such_code", title: "No title.", detail: "", step: null };
  const known = (code: string) => Object.keys(taskErrors).includes(code);
  assert.deepEqual([error.code, stored.code].filter(known), []);
  // What is written without these types: a text in JSON, or a type assertion.
  const files = globSync("service/src/**/*.ts", { cwd: new URL("../..", import.meta.url) });
  const words = files.flatMap((file) => {
    const text = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
    const found = text.matchAll(/\b(?:new StepError|stepErrorOf|errorFor)\(\s*"(\w+)"/g);
    return [...found].map(([, code = ""]) => code);
  });
  assert.ok(words.length > 10, "the pattern finds them");
  assert.deepEqual(
    words.filter((code) => !known(code)),
    [],
  );
  const casts = files.filter((file) =>
    /as (?:WorkCode|TaskError\["code"\])\b/.test(readFileSync(new URL(`../../${file}`, import.meta.url), "utf8")),
  );
  assert.deepEqual(casts, []);
});

test("every code has its cause and its remedy in the specification", () => {
  const text = readFileSync(new URL("../../docs/spec.md", import.meta.url), "utf8");
  const rows = new Map(
    [...text.matchAll(/^\| `(\w+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$/gm)].map(([, code, title, cause, remedy]) => [
      code,
      [title, cause, remedy],
    ]),
  );
  for (const [code, title] of Object.entries(taskErrors)) {
    const [known, cause = "", remedy = ""] = rows.get(code) ?? assert.fail(`${code} has no row`);
    assert.equal(known, title);
    assert.ok(cause.length > 10 && remedy.length > 5, code);
  }
});

describe("codes of work in other modules", () => {
  for (const [code, file] of Object.entries(elsewhere))
    test(code, () => {
      const text = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
      assert.ok(text.includes(`"${code}"`), `${file} does not expect ${code}`);
    });
});
