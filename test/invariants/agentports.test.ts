/** The ports of a network over the agent: only those that changed are sent, and the driver always gets all (`agent/portlist.ts`). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createSim as createMachines } from "../../service/src/drivers/machine/sim/sim.ts";
import type { Port } from "../../service/src/drivers/router/interface.ts";
import { createSim } from "../../service/src/drivers/router/sim/sim.ts";
import { createAgentLab } from "../support/agentlab.ts";
import { image, port } from "../support/networkspec.ts";

test("a network whose ports the agent does not have, or not of this client, is applied with all of them", async () => {
  const machines = createMachines({ now: Date.now, images: null });
  const simulated = createSim(Date.now);
  const lab = await createAgentLab({ machines, images: machines, consoles: machines, router: simulated });
  try {
    const clients = [await lab.connect({ fence: 1000 }), await lab.connect({ fence: 1000 })] as const;
    const ports = (): readonly Port[] | undefined => simulated.images()[0]?.ports;
    const named = (id: number, name: string): Port =>
      port(id, `10.64.0.${9 + id}`, { name, device: machines.deviceOf(id) });
    const lists = [
      [named(1, "a"), named(2, "b")],
      [named(1, "a"), named(2, "c")],
      [named(2, "c"), named(3, "d")],
    ];
    for (const client of [clients[0], clients[1], clients[0]])
      for (const [at, list] of lists.entries()) {
        const before = ports();
        await client.router.apply(image({ ports: list }));
        assert.deepEqual(ports(), list);
        // Only the port that differs was sent, so the driver gets the same object for the other one again.
        if (at === 1) assert.equal(ports()?.[0], before?.[0]);
      }
    // The first apply after a removal sends all ports.
    await clients[0].router.remove(7);
    await clients[0].router.apply(image({ ports: lists.at(0) ?? [] }));
    assert.deepEqual(ports(), lists.at(0));
  } finally {
    await lab.close();
  }
});
