/** Reconciler invariants for the reconcilers of servers, whose effect is a queued flow, queued once. */
import assert from "node:assert/strict";
import { list } from "../../service/src/engine/task.ts";
import { updateServer } from "../../service/src/server/table.ts";
import { openServerFixture } from "../support/serverfixture.ts";
import { testReconciler } from "./reconciler-invariants.ts";

const time = Date.UTC(2026, 10, 20);

/** `work`: the flow that a reconciler queues for such a row. */
function testWith(name: string, work: string, spec: Parameters<typeof updateServer>[2]): void {
  testReconciler(name, async (store) => {
    const fixture = await openServerFixture(store, () => time);
    const server = await fixture.makeServer();
    await fixture.perform((tx) => fixture.servers.commands.power(tx, server, { Type: "PowerOff" }, null));
    const reconciler =
      fixture.servers.reconcilers.find((each) => each.name === name) ?? assert.fail(`there is no reconciler ${name}`);
    const ordered = async () =>
      (await list(store.read, { kind: "server", id: server.id }, 99)).filter((task) => task.name === work).length;
    let changes = 0;
    return {
      reconciler: {
        ...reconciler,
        async run(run) {
          const kept = await reconciler.run(run);
          changes = await ordered();
          return kept;
        },
      },
      subject: 0,
      spec: async (tx) => void (await updateServer(tx, server.id, spec)),
      observe: ordered,
      changes: () => changes,
      close: async () => fixture.servers.close(),
    };
  });
}

testWith("server.watch", "server.settle", { is_on: 1 });
testWith("server.backup", "server.turn", { is_backup_active: 1 });
