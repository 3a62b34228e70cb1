/**
 * Flow that brings a VM to the desired state of its server without a client's request: after a crash or a reboot of the host, when the
 * project is blocked or unblocked, after a failed creation, and after a rebuild that has left its old disk. It is not an action, but
 * runs in the server's queue, so that two tasks never change one server at a time.
 */

import { since } from "../../base/clock.ts";
import type { Flow } from "../../engine/flow.ts";
import { find, list, queue } from "../../engine/task.ts";
import { type Reader, rest, type Tx } from "../../store/db.ts";
import { uuidOf } from "../model/machinespec.ts";
import { findAnyServer, listServers, type ServerRow } from "../table.ts";
import { cutPower, ensureRunning, removeMachine } from "./boot.ts";
import { cancelWork } from "./cancel.ts";
import type { Cause, FlowContext } from "./context.ts";
import { serverFlow, startOn } from "./define.ts";
import { attempt, errorFor } from "./error.ts";
import { emitServerEvent } from "./events.ts";
import { machineSpecFor, nicsOf, plugIn, waitForNetwork } from "./nics.ts";
import { changeServer } from "./serverrow.ts";

/** Stored in task rows, so it keeps its value; so does the name of its step. */
export const reconcileName = "server.settle";

interface ReconcileInput {
  /** Time of the crash after which the VM is restarted, in ms since 1970; null: no crash. */
  readonly died: number | null;
}

/** Returns the flow. Its step removes, stops or starts the VM as the row requires, and removes disks of old versions. */
export function reconcileFlow(context: FlowContext): Flow {
  return serverFlow<ReconcileInput>(context, {
    name: reconcileName,
    steps: [
      {
        name: "Settle",
        async do({ subject }) {
          const server = await findAnyServer(context.store.read, subject);
          if (server === undefined || server.state === "New" || server.state === "Deleting") return;
          if (server.state === "Failed") return removeMachine(context, subject);
          const shouldRun = server.state === "Active" && server.is_on === 1;
          if (!shouldRun) await cutPower(context, subject);
          else {
            const queued = await ensureRunning(context, await machineSpecFor(context, server));
            if (queued !== null) return queued;
            const waiting = await plugIn(context, subject, nicsOf());
            if (waiting.length > 0) return waitForNetwork(subject, waiting);
          }
          const [status] = (await context.machineStatus.observeServers([subject])).machines;
          // Labels the disk of an adopted server with its uuid.
          if (status !== undefined && !shouldRun && status.label?.uuid !== uuidOf(server))
            await attempt("apply_failed", `The disk of server ${subject} could not be labelled`, async () =>
              context.machines.apply(await machineSpecFor(context, server)),
            );
          const disks = status?.disks ?? [];
          if (disks.length > 1)
            await attempt("disk_failed", `The earlier disk of server ${subject} could not be removed`, () =>
              context.machines.ensureOnlyDisk(subject, server.disk_version),
            );
        },
        async save(tx, { subject }) {
          const server = await findAnyServer(tx, subject);
          if (server === undefined) return;
          // The error of a crash stays until a client starts the server; other errors of reconciling are over.
          const isResolved = server.state === "Active" && server.error !== null && codeOf(server.error) !== "crashed";
          if (isResolved) await changeServer(context, tx, subject, { error: null }, null);
          else await emitServerEvent(context, tx, server, "changed", null);
        },
      },
    ],
    async ended(tx, { task, subject }, ending) {
      const server = await findAnyServer(tx, subject);
      if (ending !== "Failed" || server?.state !== "Active") return;
      const error = (await find(tx, task))?.error ?? null;
      if (error !== null) await changeServer(context, tx, subject, { error: JSON.stringify(error) }, null);
    },
  });
}

/** Returns the code of an error that a row stores as JSON. */
export const codeOf = (error: string): string => (JSON.parse(error) as { readonly code: string }).code;

/** True if the newest task of the server is a reconcile that failed less than `time` ms ago. */
export async function hasJustFailed(db: Reader, server: number, now: number, time: number): Promise<boolean> {
  const [newest] = await list(db, { kind: "server", id: server }, 1);
  return newest?.name === reconcileName && newest.state === "Failed" && since(newest.end ?? 0, now, time) < time;
}

/** Queues a reconcile of the server unless one is queued already. `died`: time of the crash that it handles, in ms since 1970. */
export async function queueReconcile(
  context: FlowContext,
  tx: Tx,
  flow: Flow,
  server: ServerRow,
  died: number | null = null,
): Promise<void> {
  const queued = await queue(tx, { kind: "server", id: server.id });
  if (queued.some(({ name, state }) => name === reconcileName && state === "Postponed")) return;
  await startOn(context, tx, flow, server, { died } satisfies ReconcileInput, null);
}

/** Newest tasks of a server that are searched for crashes: more than are queued within the time that counts. */
const newest = 100;

/** Returns the times of the crashes after which a restart was queued within the last `time` ms. */
export async function crashesWithin(
  db: Reader,
  server: number,
  now: number,
  time: number,
): Promise<ReadonlySet<number>> {
  const work = await list(db, { kind: "server", id: server }, newest);
  const deaths = work.filter(({ name, start }) => name === reconcileName && since(start, now, time) < time);
  return new Set(deaths.flatMap(({ input }) => (input as ReconcileInput).died ?? []));
}

/** Sets the active servers of a project to `Blocked` and powers them off; cancels their queues. Runs in the transaction that blocks it. */
export async function queueBlock(
  context: FlowContext,
  tx: Tx,
  flow: Flow,
  project: number,
  by: Cause | null,
): Promise<void> {
  const why = errorFor("superseded", `Project ${project} was blocked.`);
  for (const server of await listServers(tx, project)) {
    if (server.state === "New") await cancelWork(context, tx, server.id, why, { waiting: true });
    if (server.state !== "Active") continue;
    await cancelWork(context, tx, server.id, why, { waiting: true });
    const row = await changeServer(context, tx, server.id, { state: "Blocked" }, by);
    await queueReconcile(context, tx, flow, row);
    await rest(tx);
  }
}

/** Sets the blocked servers of a project to `Active` again, each on or off as before. Runs in the transaction that unblocks it. */
export async function queueUnblock(
  context: FlowContext,
  tx: Tx,
  flow: Flow,
  project: number,
  by: Cause | null,
): Promise<void> {
  for (const server of await listServers(tx, project)) {
    if (server.state !== "Blocked") continue;
    const row = await changeServer(context, tx, server.id, { state: "Active" }, by);
    await queueReconcile(context, tx, flow, row);
    await rest(tx);
  }
}
