/** A server whose process does not respond: actions report it, and succeed when the process runs again. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Action } from "@brume/api/action.ts";
import { createServerHost, hindrance, type ServerHost } from "./serverhost.ts";

if (hindrance !== null) console.log(`a server that is frozen: not tried, ${hindrance}`);

describe("a server whose process is stopped", { skip: hindrance ?? false, concurrency: false }, () => {
  let host: ServerHost;
  before(async () => {
    host = await createServerHost();
  });
  after(() => host?.close());

  test("ends an action with host_lost, and accepts the same change when it runs again", async () => {
    const { client } = host;
    const { ID } = await host.create({ Name: "frozen" });
    const { HDD } = await host.read(ID);
    const pid = host.pidOf(ID) ?? assert.fail("it does not run");
    const grow = () => client.updateServer({ path: { id: ID }, body: { HDD: HDD + 1 } });
    process.kill(pid, "SIGSTOP");
    try {
      await grow();
      // The step fails after its retries; its undo is retried while the process does not respond, for at most ten minutes.
      const hasFailed = ([newest]: readonly Action[]) => newest?.Steps[0]?.State === "Failed";
      await client.waitFor("listActions", { path: { id: ID } }, { until: hasFailed, timeout: 300_000 });
      assert.equal((await host.read(ID)).Condition, "NotResponding");
    } finally {
      process.kill(pid, "SIGCONT");
    }
    const { Type, State, Error: error } = await host.lastAction(ID);
    assert.deepEqual([Type, State, error?.code, error?.step], ["Resize", "Failed", "host_lost", "Disk"]);
    assert.equal(error?.title, "The host does not answer.");
    assert.match(error?.detail ?? "", new RegExp(`^Server ${ID} could not get `));
    await client.waitFor(
      "readServer",
      { path: { id: ID } },
      { until: ({ Condition }) => Condition !== "NotResponding", timeout: 300_000 },
    );
    await grow();
    assert.equal((await host.lastAction(ID)).State, "Completed");
    assert.equal((await host.read(ID)).HDD, HDD + 1);
    assert.equal(host.pidOf(ID), pid, "it was not started anew");
  });
});
