/**
 * Reconciler of servers: observes all VMs every 5 s, and one at once when it has started or ended. A crashed VM is restarted, a server whose
 * guest shut down stays off, and after a reboot of the host the servers that were on are started. All changes run as tasks in the queue
 * of the server, and are queued only if the queue is empty.
 */
import { steadyOf } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { readPages } from "../base/turn.ts";
import { defineReconciler, type Flow, type Reconciler } from "../engine/flow.ts";
import { queue } from "../engine/task.ts";
import type { Tx } from "../store/db.ts";
import type { FlowContext } from "./flow/context.ts";
import { errorFor } from "./flow/error.ts";
import { emitServerEvent } from "./flow/events.ts";
import { readTail } from "./flow/guest.ts";
import { crashesWithin, hasJustFailed, queueReconcile } from "./flow/reconcile.ts";
import { changeServer } from "./flow/serverrow.ts";
import { type MachineState, maxAge } from "./machinestatus.ts";
import { isBehind } from "./restored.ts";
import {
  findAnyServer,
  listServerStatesOf,
  pageServerStates,
  type ServerRow,
  type ServerStateRow,
  statesPerPage,
  updateServer,
} from "./table.ts";

/** Milliseconds between observations. */
const period = 5000;
/** Most restarts of a crashed VM within `restartTime` ms. They are counted in its tasks, which survive a restart of the service. */
const mostRestarts = 3;
const restartTime = 600_000;
/** Milliseconds from a failed reconcile of a server to the next. */
const reconcilePause = 60_000;

/** Most servers that are observed without all others. */
const mostSelected = 500;

/** What a server needs, see `needOf`. */
export type Need = "nothing" | "reconcile" | "off" | "restart";

/**
 * Returns what a server with an empty queue needs. `off`: its guest shut down, so the desired state becomes off; `restart`: its VM crashed;
 * `reconcile`: its VM differs from the desired state. `status` null: the host has no VM and no disk of the server.
 */
export function needOf(server: ServerStateRow, status: MachineState | null): Need {
  const { state } = server;
  if (state === "New" || state === "Deleting") return "nothing";
  if (state === "Failed") return status === null ? "nothing" : "reconcile";
  const power = status?.power ?? "off";
  const shouldRun = state === "Active" && server.is_on === 1;
  if (shouldRun && power === "off") {
    // The exit of an earlier boot does not concern this one.
    const exit = status?.boot === server.boot ? status.exit : null;
    return exit?.reason === "guest" ? "off" : exit?.reason === "died" ? "restart" : "reconcile";
  }
  if (power === "paused" && shouldRun) return status?.canResume === true ? "reconcile" : "nothing";
  if (power !== (shouldRun ? "running" : "off")) return "reconcile";
  return (status?.disks.length ?? 0) > 1 ? "reconcile" : "nothing";
}

/** True if a VM that crashed at `died` is restarted, after the crashes in `before`. A restart that failed is repeated. */
export const isRestarted = (died: number, before: ReadonlySet<number>): boolean =>
  before.has(died) || before.size < mostRestarts;

/** The reconciler, and what it found. */
export interface ServerWatch {
  readonly reconciler: Reconciler;
  /** True if at the last check of all servers, at most 6 s ago, each VM had a row, which was not older than the VM. */
  isEachKnown(): boolean;
}

/** Creates the reconciler. `reconcile` is the flow that it queues. */
export function watchServers(context: FlowContext, reconcile: Flow): ServerWatch {
  const { store, clock, machineStatus } = context;
  const log: Log = context.log;

  /** Queues what the server needs. Checks again in the transaction, because a request may have come first. `output`: last serial output. */
  async function act(tx: Tx, seen: ServerStateRow, status: MachineState | null, need: Need, output: string | null) {
    if ((await queue(tx, { kind: "server", id: seen.id })).length > 0) return;
    if (await hasJustFailed(tx, seen.id, clock.now(), reconcilePause)) return;
    const server = await findAnyServer(tx, seen.id);
    if (server === undefined || server.state !== seen.state || server.is_on !== seen.is_on || server.boot !== seen.boot)
      return;
    const died = need === "restart" ? (status?.exit?.at ?? 0) : null;
    const before = died === null ? new Set<number>() : await crashesWithin(tx, server.id, clock.now(), restartTime);
    const staysOff = died !== null && !isRestarted(died, before);
    if (died !== null && !before.has(died))
      await noteCrash(tx, server, staysOff, before.size, status?.exit?.detail ?? "", output);
    else if (need === "off") await changeServer(context, tx, server.id, { is_on: 0 }, null);
    if (need !== "off" && !staysOff) await queueReconcile(context, tx, reconcile, server, died);
  }

  /**
   * Stores the crash as the error of the server, until the next start that a client requests, and appends `server.crashed`.
   * `restarts`: restarts in the last ten minutes, before this crash.
   */
  async function noteCrash(
    tx: Tx,
    { id, crashes }: ServerRow,
    staysOff: boolean,
    restarts: number,
    reason: string,
    output: string | null,
  ): Promise<void> {
    const outcome = staysOff
      ? `It stays off, since it was restarted ${restarts} times in the last ten minutes`
      : `It is started again (restart ${restarts + 1} of at most ${mostRestarts} in ten minutes)`;
    const detail = `The VM of server ${id} ended unexpectedly: ${reason.split("\n")[0] ?? ""}. ${outcome}.`;
    const error = JSON.stringify({ ...errorFor("crashed", detail), log: output });
    const change = { crashes: crashes + 1, error, ...(staysOff && { is_on: 0, condition: "Normal" as const }) };
    const row = await updateServer(tx, id, change);
    await emitServerEvent(context, tx, row, "crashed", null);
    log("warn", `The VM of a server crashed. ${outcome}.`, { server: id, detail: reason });
  }

  /** Stores a changed condition such as `NotResponding`, and logs it. */
  async function noteCondition(seen: ServerStateRow, status: MachineState | null): Promise<void> {
    const condition = status?.trouble ?? "Normal";
    if (condition === seen.condition || seen.state === "Deleting") return;
    log(condition === "Normal" ? "info" : "warn", `The condition of a VM is now ${condition}.`, {
      server: seen.id,
      detail: status?.detail,
    });
    await store.write(async (tx) => {
      if ((await findAnyServer(tx, seen.id)) !== undefined)
        await changeServer(context, tx, seen.id, { condition }, null);
    });
  }

  /** Compares a server with its VM, and queues what it needs. */
  async function check(server: ServerStateRow, status: MachineState | null): Promise<void> {
    if ((status?.trouble ?? "Normal") !== server.condition) await noteCondition(server, status);
    const need = needOf(server, status);
    if (need === "nothing") return;
    const output = need === "restart" ? await readTail(context, server.id) : null;
    await store.write((tx) => act(tx, server, status, need, output));
  }

  /** Steady time of the last complete check, and of the last one at which each VM was known, in ms. */
  let completed = Number.NEGATIVE_INFINITY;
  let allKnown = Number.NEGATIVE_INFINITY;

  async function checkAll(): Promise<void> {
    const begun = steadyOf(clock);
    const { ready, machines } = await machineStatus.observe();
    if (!ready) return;
    const unknown = new Set(machines.map(({ id }) => id));
    let isAnyBehind = false;
    const pages = readPages(statesPerPage, (after) =>
      pageServerStates.all(store.read, { after, limit: statesPerPage }),
    );
    for await (const page of pages)
      for (const server of page) {
        const status = machineStatus.of(server.id);
        unknown.delete(server.id);
        if (status !== null) isAnyBehind ||= isBehind(server, status);
        const isSettled = (status?.trouble ?? "Normal") === server.condition && needOf(server, status) === "nothing";
        // A VM that has started or ended since is checked in the next run.
        if (!isSettled && !machineStatus.hasReported(server.id)) await check(server, status);
      }
    allKnown = unknown.size === 0 && !isAnyBehind ? begun : Number.NEGATIVE_INFINITY;
  }

  async function checkSome(ids: readonly number[]): Promise<void> {
    const { ready, machines } = await machineStatus.observeServers(ids);
    if (!ready) return;
    const statusOf = new Map(machines.map((status) => [status.id, status]));
    for (const server of await listServerStatesOf(store.read, ids))
      await check(server, statusOf.get(server.id) ?? null);
  }

  const reconciler = defineReconciler({
    name: "server.watch",
    subject: "servers",
    single: true,
    period,
    pause: { first: period, factor: 1, most: period },
    async run() {
      const ids = machineStatus.takeReported();
      const now = steadyOf(clock);
      const isComplete = ids.length === 0 || ids.length > mostSelected || now - completed >= period;
      if (!isComplete) {
        await checkSome(ids);
        return { at: clock.now() + period - (now - completed) };
      }
      // If this run fails, the next one is complete too.
      completed = Number.NEGATIVE_INFINITY;
      await checkAll();
      completed = now;
      return {};
    },
  });

  return { reconciler, isEachKnown: () => steadyOf(clock) - allKnown < maxAge };
}
