/**
 * Looks at all machines every few seconds, and at once when one has started or ended by itself: a machine that died is started again,
 * a guest that switched itself off stays off, and after a restart of the host the servers that were on come back. What is to be done to
 * a machine is ordered as work in its server's queue (`settle`), and only where nothing else works on it.
 */
import type { Log } from "../base/log.ts";
import type { MachineStatus } from "../drivers/machine/port.ts";
import { type Flow, type Keeper, keeper } from "../engine/flow.ts";
import { queue } from "../engine/task.ts";
import type { Tx } from "../store/db.ts";
import { deathsSince, orderSettle } from "./flow/settle.ts";
import { changeServer } from "./flow/steps.ts";
import type { FlowTools } from "./flow/tools.ts";
import { findAnyServer, listStandings, type Standing } from "./table.ts";

/** Milliseconds between looks. */
const period = 5000;
/** A machine that dies is started again so often in so many milliseconds; counted in its work, which outlives the service. */
const mostRestarts = 3;
const restartTime = 600_000;

export type Need = "nothing" | "settle" | "off" | "restart";

/**
 * What a server needs of which nothing is ordered. `off`: its guest has switched itself off, and the wish follows; `restart`: it died.
 * `status` null: there is nothing of it on the host.
 */
export function needOf(server: Standing, status: MachineStatus | null): Need {
  const { state } = server;
  if (state === "New" || state === "Deleting") return "nothing";
  if (state === "Failed") return status === null ? "nothing" : "settle";
  const power = status?.power ?? "off";
  const isWanted = state === "Active" && server.is_on === 1;
  if (isWanted && power === "off") {
    // How an earlier run ended says nothing about this one.
    const exit = status?.boot === server.boot ? status.exit : null;
    return exit?.reason === "guest" ? "off" : exit?.reason === "died" ? "restart" : "settle";
  }
  if (power !== (isWanted ? "running" : "off")) return "settle";
  return (status?.disks.length ?? 0) > 1 ? "settle" : "nothing";
}

/** Whether a machine is started again that died then, after these deaths. One that was counted and did not come up is tried again. */
export const isRestarted = (died: number, before: ReadonlySet<number>): boolean =>
  before.has(died) || before.size < mostRestarts;

export function watchKeeper(tools: FlowTools, settle: Flow): Keeper {
  const { store, clock, sight } = tools;
  const log: Log = tools.log;

  /** Looked at again inside the transaction: what is ordered meanwhile goes first. */
  async function act(tx: Tx, seen: Standing, status: MachineStatus | null, need: Need): Promise<void> {
    if ((await queue(tx, { kind: "server", id: seen.id })).length > 0) return;
    const server = await findAnyServer(tx, seen.id);
    if (server === undefined || server.state !== seen.state || server.is_on !== seen.is_on || server.boot !== seen.boot)
      return;
    const died = need === "restart" ? (status?.exit?.at ?? 0) : null;
    const givenUp = died !== null && !isRestarted(died, await deathsSince(tx, server.id, clock.now() - restartTime));
    if (need === "off" || givenUp) await changeServer(tools, tx, server.id, { is_on: 0 }, null);
    else await orderSettle(tools, tx, settle, server, died);
    if (givenUp)
      log("warn", "A machine died too often in ten minutes and stays off.", {
        server: server.id,
        detail: status?.exit?.detail,
      });
  }

  return keeper({
    name: "server.watch",
    subject: "servers",
    single: true,
    period,
    pause: { first: period, factor: 1, most: period },
    async run() {
      const { ready, machines } = await sight.look();
      if (!ready) return;
      const statusOf = new Map(machines.map((status) => [status.id, status]));
      const servers = await listStandings(store.read);
      for (const server of servers) {
        const status = statusOf.get(server.id) ?? null;
        const need = needOf(server, status);
        if (need !== "nothing") await store.write((tx) => act(tx, server, status, need));
      }
    },
  });
}
