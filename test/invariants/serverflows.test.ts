/** Flow invariants for every flow of servers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { stepNames } from "../../service/src/engine/flow.ts";
import { startDatabase } from "../support/databases.ts";
import { openServerFixture } from "../support/serverfixture.ts";
import { serverFlowCases, time } from "../support/serverflowcases.ts";
import { testFlow } from "./flow-invariants.ts";

for (const { title, open, kinds } of serverFlowCases) testFlow(title, (store) => open(store), kinds);

test("names of flows and steps are frozen", async () => {
  const database = await startDatabase("sqlite");
  const fixture = await openServerFixture(database.store, () => time);
  const guest = ["Ssh", "Guest"];
  assert.deepEqual(stepNames(fixture.servers.flows), {
    "server.Create": ["Reserve", "Disk", "Network", "Boot", ...guest],
    "server.Copy": ["Reserve", "Snapshot", "Disk", "Identity", "Network", "Boot", ...guest],
    "server.turn": ["Turn"],
    "server.PowerOn": ["Boot", ...guest],
    "server.PowerOff": ["Stop"],
    "server.PowerReboot": ["Reset", ...guest],
    "server.ShutDownGuestOS": ["Shutdown"],
    "server.RebootGuestOS": ["Shutdown", "Boot", ...guest],
    "server.AddNetwork": ["Reserve", "Plug"],
    "server.RemoveNetwork": ["Unplug", "Release"],
    "server.EditNetworkBandwidth": ["Shape"],
    "server.Resize": ["Stop", "Cpu", "Memory", "Start", "Disk"],
    "server.Rebuild": ["Stop", "Disk", "Boot", ...guest],
    "server.Delete": ["Stop", "Network", "Disk", "Release"],
    "image.make": ["Snapshot", "Write"],
    "image.remove": ["Remove"],
    "server.settle": ["Settle"],
  });
  assert.deepEqual(
    [...new Set(serverFlowCases.map(({ name }) => name))].sort(),
    fixture.servers.flows.map(({ name }) => name).sort(),
    "every flow is tested",
  );
  await database.close();
});
