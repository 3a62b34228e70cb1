/**
 * Makes a server's machine as its row says when nobody has ordered that: after a crash or a restart of the host, when its project is
 * blocked or free again, when it has failed and must hold nothing, when a rebuild has left the old disk behind. It is no action, but
 * takes its turn among them, so that nothing ever works on one server twice at a time.
 */

import { since } from "../../base/clock.ts";
import type { Flow } from "../../engine/flow.ts";
import { find, list, queue } from "../../engine/task.ts";
import type { Reader, Tx } from "../../store/db.ts";
import { uuidOf } from "../model/machinespec.ts";
import { findAnyServer, listServers, type ServerRow } from "../table.ts";
import { ensureRunning } from "./boot.ts";
import { cancelWork } from "./cancel.ts";
import { type Cause, type FlowContext } from "./context.ts";
import { serverFlow, startOn } from "./define.ts";
import { errorFor } from "./error.ts";
import { emitServerEvent } from "./events.ts";
import { machineSpecFor, nicsOf, plugIn, waitForNetwork } from "./nics.ts";
import { changeServer } from "./serverrow.ts";

export const reconcileName = "server.settle";

interface ReconcileInput {
  /** When the machine has died that is to be started again; null: it has not. */
  readonly died: number | null;
}

export function reconcileFlow(context: FlowContext): Flow {
  return serverFlow<ReconcileInput>(context, {
    name: reconcileName,
    steps: [
      {
        name: "Settle",
        async do({ subject }) {
          const server = await findAnyServer(context.store.read, subject);
          if (server === undefined || server.state === "New" || server.state === "Deleting") return;
          if (server.state === "Failed") return context.machines.remove(subject);
          const isWanted = server.state === "Active" && server.is_on === 1;
          if (!isWanted) await context.machines.ensureStopped(subject, "cut");
          else {
            const queued = await ensureRunning(context, await machineSpecFor(context, server));
            if (queued !== null) return queued;
            const waiting = await plugIn(context, subject, nicsOf());
            if (waiting.length > 0) return waitForNetwork(subject, waiting);
          }
          const status = (await context.machineStatus.look()).machines.find(({ id }) => id === subject);
          // A disk that was adopted is marked as this server's.
          if (status !== undefined && !isWanted && status.label?.uuid !== uuidOf(server))
            await context.machines.apply(await machineSpecFor(context, server));
          const disks = status?.disks ?? [];
          if (disks.length > 1) await context.machines.ensureOnlyDisk(subject, server.disk_version);
        },
        async save(tx, { subject }) {
          const server = await findAnyServer(tx, subject);
          if (server === undefined) return;
          // A crash is told of until somebody starts the server; what kept it from being settled is over.
          const isOver = server.state === "Active" && server.error !== null && codeOf(server.error) !== "crashed";
          if (isOver) await changeServer(context, tx, subject, { error: null }, null);
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

export const codeOf = (error: string): string => (JSON.parse(error) as { readonly code: string }).code;

/** Its newest work was to be settled and failed, less than `time` milliseconds ago. */
export async function hasJustFailed(db: Reader, server: number, now: number, time: number): Promise<boolean> {
  const [newest] = await list(db, { kind: "server", id: server }, 1);
  return newest?.name === reconcileName && newest.state === "Failed" && since(newest.end ?? 0, now, time) < time;
}

/** Unless that waits already. */
export async function queueReconcile(
  context: FlowContext,
  tx: Tx,
  flow: Flow,
  server: ServerRow,
  died: number | null = null,
): Promise<void> {
  const present = await queue(tx, { kind: "server", id: server.id });
  if (present.some(({ name, state }) => name === reconcileName && state === "Postponed")) return;
  await startOn(context, tx, flow, server, { died } satisfies ReconcileInput, null);
}

/** Of a server's newest work: more than is ordered of it while deaths count. */
const newest = 100;

/** Deaths after which the machine was started again, or is about to be, in the last `time` milliseconds. */
export async function deathsWithin(
  db: Reader,
  server: number,
  now: number,
  time: number,
): Promise<ReadonlySet<number>> {
  const work = await list(db, { kind: "server", id: server }, newest);
  const deaths = work.filter(({ name, start }) => name === reconcileName && since(start, now, time) < time);
  return new Set(deaths.flatMap(({ input }) => (input as ReconcileInput).died ?? []));
}

/** Servers of the project go off and are `Blocked`; what waits for them is canceled. In the transaction that blocks it. */
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
  }
}

/** They come back as they were. In the transaction that frees the project. */
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
  }
}
