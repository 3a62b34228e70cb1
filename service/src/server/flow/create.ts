/**
 * Flows `Create` and `Copy`. The transaction of the request creates the row, its address and the new generation of its network; the steps
 * create the disk, wait for the network and start the VM. A copy takes its disk from another server: it waits until the queue of that
 * server reaches it, and blocks the queue only during the snapshot. After a failure only the row in state `Failed` is left; a server
 * that runs and was only not ready in time is kept, unless its group is created atomically.
 */

import { findProject } from "../../account/table.ts";
import type { Done, Ending, Flow, Run } from "../../engine/flow.ts";
import { find, type Task } from "../../engine/task.ts";
import { showAddress } from "../../network/model/plan.ts";
import { findShared } from "../../network/table.ts";
import { reserveIds, type Tx } from "../../store/db.ts";
import type { ServerParts } from "../links.ts";
import { numberedHostName } from "../model/hostname.ts";
import { createPassword } from "../model/password.ts";
import type { ServerSpec } from "../model/plan.ts";
import { flowName } from "../model/state.ts";
import { addServer, addServerKeys, findAnyServer, findBatch, type ServerRow } from "../table.ts";
import { bootStep } from "./boot.ts";
import { cancelWork } from "./cancel.ts";
import type { Cause, Facts, FlowContext, ServerStep } from "./context.ts";
import { serverFlow, startOn, stepsOf } from "./define.ts";
import { attempt, errorFor } from "./error.ts";
import { emitServerEvent } from "./events.ts";
import { ensureImageFolder } from "./fetch.ts";
import { failServer, updateGroup } from "./group.ts";
import { guestSteps, renewBackup, renewGuest } from "./guest.ts";
import { joinNetwork } from "./network.ts";
import { machineSpecFor, waitForLink } from "./nics.ts";
import { type QueueSlotFlow, releaseQueueSlot, reserveQueueSlot, snapshotStep } from "./queueslot.ts";
import { queueReconcile } from "./reconcile.ts";
import { changeServer, requireServer } from "./serverrow.ts";

/** What the flow `Copy` stores in its row. */
export interface CopyInput {
  /** Id of the server whose disk is copied. */
  readonly source: number;
}
/** Milliseconds. */
const hour = 3_600_000;

/** Returns the flows `Create` and `Copy`. `reconcile` removes the VM of a server that failed. */
export function createFlows(context: FlowContext, reconcile: Flow) {
  const { machines } = context;
  const reserve = <Input>(): ServerStep<Input> => ({ name: "Reserve" });
  const removeDisk = ({ subject }: { readonly subject: number }): Promise<void> => machines.remove(subject);
  const network = <Input>(): ServerStep<Input> => ({ name: "Network", do: (run) => waitForLink(context, run) });
  const ended = (tx: Tx, run: { readonly task: number; readonly subject: number }, ending: Ending) =>
    endCreation(context, tx, reconcile, run, ending);

  const create = serverFlow<null>(context, {
    name: flowName("Create"),
    steps: [
      reserve(),
      {
        name: "Disk",
        // Includes the download of the image.
        time: hour,
        do: (run) => createDisk(context, run),
        undo: removeDisk,
      },
      network(),
      bootStep(context, { from: "new" }),
      ...guestSteps<null>(context),
    ],
    ended,
  });

  const copy = serverFlow<CopyInput>(context, {
    name: flowName("Copy"),
    steps: [
      reserve(),
      snapshotStep<CopyInput>(context, ({ source }) => source, {
        async take(subject, { source }) {
          const machine = await machineSpecFor(context, await requireServer(context, subject), () => false);
          await attempt("snapshot_failed", `Could not copy server ${source}`, () =>
            machines.ensureDisk(machine, { server: source }),
          );
        },
        store: async (tx, { subject, facts }, origin) =>
          void (await changeServer(context, tx, subject, origin, facts.by ?? null)),
        undo: removeDisk,
      }),
      {
        name: "Disk",
        async do({ subject, input }) {
          const server = await requireServer(context, subject);
          await fillDisk(context, server, { server: input.source });
          return { detail: `${server.hdd} GB from server ${input.source}` };
        },
        undo: removeDisk,
      },
      {
        name: "Identity",
        time: hour,
        do: async ({ subject, signal }) => ({
          detail: await renewGuest(context, await requireServer(context, subject), signal),
        }),
      },
      network(),
      bootStep(context, { from: "new" }),
      ...guestSteps<CopyInput>(context),
    ],
    async ended(tx, run, ending) {
      await releaseQueueSlot(context, tx, run.input.source, run.task);
      await ended(tx, run, ending);
    },
  });

  return { create, copy };
}

async function fillDisk(context: FlowContext, server: ServerRow, source: { image: string } | { server: number }) {
  const machine = await machineSpecFor(context, server, () => false);
  await attempt("disk_failed", `Could not create the disk of server ${server.id}`, () =>
    context.machines.ensureDisk(machine, source),
  );
}

async function createDisk(context: FlowContext, run: Pick<Run, "subject" | "signal" | "note">): Promise<Done<Facts>> {
  const server = await requireServer(context, run.subject);
  await fillDisk(context, server, { image: await ensureImageFolder(context, server, run) });
  const renewed = await renewBackup(context, server, run.signal);
  return { detail: `${server.hdd} GB from ${server.image_name}${renewed}` };
}

/** Sets the final state of the new server and updates its group. */
async function endCreation(
  context: FlowContext,
  tx: Tx,
  reconcile: Flow,
  { task, subject }: { readonly task: number; readonly subject: number },
  ending: Ending,
): Promise<void> {
  const server = await findAnyServer(tx, subject);
  if (server === undefined) return;
  // A server that is being deleted meanwhile is removed by that flow.
  if (server.state === "New") {
    const batch = server.batch_id === null ? undefined : await findBatch(tx, server.project_id, server.batch_id);
    // A server that runs but was not ready in time is kept, unless its group is created atomically.
    if (ending === "Completed" || (ending === "Failed" && server.is_on === 1 && batch?.policy !== "Atomic"))
      await activateServer(context, tx, reconcile, server, ending);
    else {
      const reason =
        (await find(tx, task))?.error ?? errorFor("superseded", `The creation of server ${subject} was canceled.`);
      await failServer(context, tx, reconcile, server, reason);
    }
  }
  await updateGroup(context, tx, reconcile, server);
}

/** Sets the new server to `Active`, or `Blocked` with its project. Cancels its queue if it was not ready in time. */
async function activateServer(
  context: FlowContext,
  tx: Tx,
  reconcile: Flow,
  { id, project_id }: ServerRow,
  ending: Ending,
) {
  const isBlocked = (await findProject.first(tx, { id: project_id }))?.is_blocked === 1;
  const server = await changeServer(context, tx, id, { state: isBlocked ? "Blocked" : "Active" }, null);
  if (ending === "Failed")
    await cancelWork(context, tx, id, errorFor("superseded", `Server ${id} was not ready in time.`));
  if (isBlocked) await queueReconcile(context, tx, reconcile, server);
}

/** A new server and the task that creates it. */
export interface CreatedServer {
  readonly server: ServerRow;
  readonly task: Task;
  readonly parts: ServerParts;
}

/** Inserts the row with its keys and its link. The caller has checked quotas, capacity and references. Throws as `reserveLink` does. */
async function insert(context: FlowContext, tx: Tx, project: number, batch: number | null, spec: ServerSpec) {
  const { clock, sealer, random } = context;
  const now = clock.now();
  const { cpu, ram, hdd } = spec;
  const [home, [id = 0]] = await Promise.all([
    spec.network ?? findShared(tx, spec.location),
    reserveIds(tx, "server", 1),
  ]);
  if (home === undefined) throw new Error(`${spec.location} has no shared network`);
  const hostName = spec.hostName ?? numberedHostName(id);
  const server: ServerRow = {
    id,
    project_id: project,
    batch_id: batch,
    name: spec.name,
    host_name: hostName,
    state: "New",
    is_on: 0,
    cpu,
    ram,
    hdd,
    held_cpu: cpu,
    held_ram: ram,
    held_hdd: hdd,
    is_high_performance: Number(spec.fast),
    hdd_type: spec.hddType,
    location: spec.location,
    image_id: spec.image.id,
    image_name: spec.image.name,
    family: spec.image.family,
    guest: spec.image.guest,
    admin_password: sealer.seal(createPassword(random)),
    user_data: spec.userData === null ? null : sealer.seal(spec.userData),
    disk_version: 1,
    boot: 0,
    is_protected: Number(spec.isProtected),
    is_backup_active: Number(spec.isBackupActive),
    backup_period: spec.backupPeriod,
    backed_up: null,
    backup_failed: null,
    condition: "Normal",
    crashes: 0,
    error: null,
    created: now,
    labels: JSON.stringify(spec.labels),
    version: 1,
  };
  addServer(tx, server);
  addServerKeys(tx, id, spec.keys);
  const { ip, bandwidth, ipPointer: pointer } = spec;
  const [link, network] = await joinNetwork(context, tx, home.id, {
    server: id,
    hostName,
    ...(ip !== null && { ip }),
    ...(bandwidth !== null && { bandwidth }),
    now,
    pointer,
  });
  const parts: ServerParts = { links: [{ link, network }], keys: spec.keys };
  const done = { Reserve: `${showAddress(link.ip)} on network ${home.id}` };
  return { server, parts, reserved: { facts: { link: link.id, generation: network.generation }, done, isFirst: true } };
}

/** Inserts a server and queues its creation. Throws as `reserveLink` does. */
export async function queueCreate(
  context: FlowContext,
  tx: Tx,
  flow: Flow<null, Facts>,
  { project, batch, spec, by }: { project: number; batch: number | null; spec: ServerSpec; by: Cause | null },
): Promise<CreatedServer> {
  const { server, parts, reserved } = await insert(context, tx, project, batch, spec);
  await emitServerEvent(context, tx, server, "created", by, parts);
  const steps = stepsOf("Create", spec.waitFor);
  return { server, parts, task: await startOn(context, tx, flow, server, null, by, { ...reserved, steps }) };
}

/** Inserts a server and queues its creation as a copy. The caller has checked that the state of the source allows it. */
export async function queueCopy(
  context: FlowContext,
  tx: Tx,
  { copy, slot }: { readonly copy: Flow<CopyInput, Facts>; readonly slot: QueueSlotFlow },
  { source, spec, by }: { source: ServerRow; spec: ServerSpec; by: Cause | null },
): Promise<CreatedServer> {
  const { server, parts, reserved } = await insert(context, tx, source.project_id, null, spec);
  await emitServerEvent(context, tx, server, "created", by, parts);
  const steps = stepsOf("Copy", spec.waitFor);
  const task = await startOn(context, tx, copy, server, { source: source.id }, by, { ...reserved, steps });
  await reserveQueueSlot(context, tx, slot, source, task, by);
  return { server, parts, task };
}
