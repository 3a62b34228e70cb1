/** What watches over servers keeps the laws of keepers. Their world is work: what they find wanting is ordered, once. */
import assert from "node:assert/strict";
import { list } from "../../service/src/engine/task.ts";
import { updateServer } from "../../service/src/server/table.ts";
import { openStage } from "../serverstage.ts";
import { proveKeeper } from "./keeper-laws.ts";

const time = Date.UTC(2026, 10, 20);

/** `work`: the flow that a keeper orders when the row is as in `wish`. */
function prove(name: string, work: string, wish: Parameters<typeof updateServer>[2]): void {
  proveKeeper(name, async (store) => {
    const stage = await openStage(store, () => time);
    const server = await stage.makeServer();
    await stage.perform((tx) => stage.servers.order.power(tx, server, { Type: "PowerOff" }, null));
    const keeper =
      stage.servers.keepers.find((each) => each.name === name) ?? assert.fail(`there is no keeper ${name}`);
    const ordered = async () =>
      (await list(store.read, { kind: "server", id: server.id }, 99)).filter((task) => task.name === work).length;
    let changes = 0;
    return {
      keeper: {
        ...keeper,
        async run(run) {
          const kept = await keeper.run(run);
          changes = await ordered();
          return kept;
        },
      },
      subject: 0,
      wish: async (tx) => void (await updateServer(tx, server.id, wish)),
      observe: ordered,
      changes: () => changes,
      close: async () => stage.servers.close(),
    };
  });
}

prove("server.watch", "server.settle", { is_on: 1 });
prove("server.backup", "server.turn", { is_backup_active: 1 });
