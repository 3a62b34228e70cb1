/**
 * What is on the host and in no row: machines of servers that are gone or have failed, links of servers that are gone. Nothing that
 * Brume does leaves such things, but a database that was brought back from a backup may not know of them.
 */
import type { Log } from "../base/log.ts";
import type { MachineStatus, Machines } from "../drivers/machine/port.ts";
import type { Store } from "../store/db.ts";
import { leaveNetworks } from "./flow/network.ts";
import type { FlowTools } from "./flow/tools.ts";
import { findAnyServer, listStrayLinks } from "./table.ts";

interface Finder extends Pick<FlowTools, "clock" | "networks"> {
  readonly store: Store;
  readonly machines: Machines;
  readonly log: Log;
}

/** `seen` was observed before now, so a server whose row is not there has none to come. `known` have one. */
export async function removeOrphans(
  tools: Finder,
  seen: readonly MachineStatus[],
  known: ReadonlySet<number>,
): Promise<void> {
  const { store, machines, log } = tools;
  for (const { id } of seen) {
    if (known.has(id) || (await findAnyServer(store.read, id)) !== undefined) continue;
    log("warn", "A machine that no server owns is on the host and is removed.", { server: id });
    await machines.remove(id);
  }
  const stray = await listStrayLinks(store.read);
  for (const server of new Set(stray.map(({ server_id }) => server_id))) {
    log("warn", "Links of a server that is not there are removed.", { server });
    await store.write(async (tx) => {
      if ((await findAnyServer(tx, server)) === undefined) await leaveNetworks(tools, tx, server);
    });
  }
}
