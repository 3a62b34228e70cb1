/**
 * Looks at all machines every few seconds, and at once when one has started or ended by itself: a machine that died is started again,
 * a guest that switched itself off stays off, and after a restart of the host the servers that were on come back. What is to be done to
 * a machine is ordered as work in its server's queue (`reconcile`), and only where nothing else works on it.
 */

import type { Log } from "../base/log.ts";
import type { MachineStatus } from "../drivers/machine/interface.ts";
import { defineReconciler, type Flow, type Reconciler } from "../engine/flow.ts";
import { queue } from "../engine/task.ts";
import type { Tx } from "../store/db.ts";
import type { FlowContext } from "./flow/context.ts";
import { errorFor } from "./flow/error.ts";
import { emitServerEvent } from "./flow/events.ts";
import { readTail } from "./flow/guest.ts";
import { deathsWithin, hasJustFailed, queueReconcile } from "./flow/reconcile.ts";
import { changeServer } from "./flow/serverrow.ts";

import { findAnyServer, listServerStates, type ServerRow, type ServerStateRow, updateServer } from "./table.ts";

/** Milliseconds between looks. */
const period = 5000;
/** A machine that dies is started again so often in so many milliseconds; counted in its work, which outlives the service. */
const mostRestarts = 3;
const restartTime = 600_000;
/** Milliseconds from one that could not be settled to the next try. */
const reconcilePause = 60_000;

export type Need = "nothing" | "reconcile" | "off" | "restart";

/**
 * What a server needs of which nothing is ordered. `off`: its guest has switched itself off, and the wish follows; `restart`: it died.
 * `status` null: there is nothing of it on the host.
 */
export function needOf(server: ServerStateRow, status: MachineStatus | null): Need {
  const { state } = server;
  if (state === "New" || state === "Deleting") return "nothing";
  if (state === "Failed") return status === null ? "nothing" : "reconcile";
  const power = status?.power ?? "off";
  const isWanted = state === "Active" && server.is_on === 1;
  if (isWanted && power === "off") {
    // How an earlier run ended says nothing about this one.
    const exit = status?.boot === server.boot ? status.exit : null;
    return exit?.reason === "guest" ? "off" : exit?.reason === "died" ? "restart" : "reconcile";
  }
  if (power === "paused" && isWanted) return status?.canResume === true ? "reconcile" : "nothing";
  if (power !== (isWanted ? "running" : "off")) return "reconcile";
  return (status?.disks.length ?? 0) > 1 ? "reconcile" : "nothing";
}

/** Whether a machine is started again that died then, after these deaths. One that was counted and did not come up is tried again. */
export const isRestarted = (died: number, before: ReadonlySet<number>): boolean =>
  before.has(died) || before.size < mostRestarts;

export function serverReconciler(context: FlowContext, reconcile: Flow): Reconciler {
  const { store, clock, machineStatus } = context;
  const log: Log = context.log;

  /** `said`: what the machine said last, of one that has died. Looked at again inside the transaction: what is ordered meanwhile goes first. */
  async function act(tx: Tx, seen: ServerStateRow, status: MachineStatus | null, need: Need, said: string | null) {
    if ((await queue(tx, { kind: "server", id: seen.id })).length > 0) return;
    if (await hasJustFailed(tx, seen.id, clock.now(), reconcilePause)) return;
    const server = await findAnyServer(tx, seen.id);
    if (server === undefined || server.state !== seen.state || server.is_on !== seen.is_on || server.boot !== seen.boot)
      return;
    const died = need === "restart" ? (status?.exit?.at ?? 0) : null;
    const before = died === null ? new Set<number>() : await deathsWithin(tx, server.id, clock.now(), restartTime);
    const givenUp = died !== null && !isRestarted(died, before);
    if (died !== null && !before.has(died))
      await noteCrash(tx, server, givenUp, before.size + 1, status?.exit?.detail ?? "", said);
    else if (need === "off") await changeServer(context, tx, server.id, { is_on: 0 }, null);
    if (need !== "off" && !givenUp) await queueReconcile(context, tx, reconcile, server, died);
  }

  /** The server says why, also when it is on again; whoever starts it next clears that. */
  async function noteCrash(
    tx: Tx,
    { id, crashes }: ServerRow,
    givenUp: boolean,
    times: number,
    reason: string,
    said: string | null,
  ): Promise<void> {
    const outcome = givenUp ? "It stays off" : "It is started again";
    const detail = `Server ${id} ended unexpectedly, ${times} times in ten minutes: ${reason.split("\n")[0] ?? ""}. ${outcome}.`;
    const error = JSON.stringify({ ...errorFor("crashed", detail), log: said });
    const change = { crashes: crashes + 1, error, ...(givenUp && { is_on: 0, condition: "Normal" as const }) };
    const row = await updateServer(tx, id, change);
    await emitServerEvent(context, tx, row, "crashed", null);
    log("warn", `A machine died. ${outcome}.`, { server: id, times, detail: reason });
    if (givenUp) log("warn", "A machine died too often in ten minutes and stays off.", { server: id, detail: reason });
  }

  /** `NotResponding` and the like, as an event and in the log. */
  async function noteCondition(seen: ServerStateRow, status: MachineStatus | null): Promise<void> {
    const condition = status?.trouble ?? "Normal";
    if (condition === seen.condition || seen.state === "Deleting") return;
    log(condition === "Normal" ? "info" : "warn", `A machine is now ${condition}.`, {
      server: seen.id,
      detail: status?.detail,
    });
    await store.write(async (tx) => {
      if ((await findAnyServer(tx, seen.id)) !== undefined)
        await changeServer(context, tx, seen.id, { condition }, null);
    });
  }

  return defineReconciler({
    name: "server.watch",
    subject: "servers",
    single: true,
    period,
    pause: { first: period, factor: 1, most: period },
    async run() {
      const { ready, machines } = await machineStatus.look();
      if (!ready) return;
      const statusOf = new Map(machines.map((status) => [status.id, status]));
      const servers = await listServerStates(store.read);
      for (const server of servers) {
        const status = statusOf.get(server.id) ?? null;
        await noteCondition(server, status);
        const need = needOf(server, status);
        if (need === "nothing") continue;
        const said = need === "restart" ? await readTail(context, server.id) : null;
        await store.write((tx) => act(tx, server, status, need, said));
      }
    },
  });
}
