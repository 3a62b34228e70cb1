/**
 * Flow `Rebuild`: creates a new disk for a server. The request changes image, password and keys in the row at once. The flow powers the
 * server off, creates the new disk beside the old one, and boots from it as for the first time. Until that succeeds, undoing only removes
 * the new disk. The old disk is removed by a reconcile after the end of the flow.
 */

import type { WaitFor } from "@brume/api/action.ts";
import type { Flow } from "../../engine/flow.ts";
import { queue, type Task } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import { createPassword } from "../model/password.ts";
import type { RebuildPlan } from "../model/rebuild.ts";
import { findAnyServer, listServerKeys, type ServerRow, setServerKeys } from "../table.ts";
import { bootStep, stopStep } from "./boot.ts";
import type { Cause, Facts, FlowContext } from "./context.ts";
import { serverFlow, startOn, stepsOf } from "./define.ts";
import {
  effectiveServer,
  type RebuildInput,
  rebuildName,
  snapshotFields,
  stateBefore,
  tookEffect,
} from "./effective.ts";
import { attempt } from "./error.ts";
import { ensureImageFolder } from "./fetch.ts";
import { guestSteps, renewBackup } from "./guest.ts";
import { machineSpecFor } from "./nics.ts";
import { queueReconcile } from "./reconcile.ts";
import { changeServer, requireServer } from "./serverrow.ts";

/** Milliseconds. */
const hour = 3_600_000;

/** Returns the flow. If it fails, its end restores the fields of the row. */
export function rebuildFlow(context: FlowContext, reconcile: Flow): Flow<RebuildInput, Facts> {
  const { machines } = context;
  return serverFlow<RebuildInput>(context, {
    name: rebuildName,
    steps: [
      stopStep(context, "moment"),
      {
        name: "Disk",
        time: hour,
        async do(run) {
          const { subject, signal } = run;
          // The image of this rebuild: the row may already have the image of a later one that is queued.
          const { server } = await effectiveServer(context.store.read, await requireServer(context, subject));
          const folder = await ensureImageFolder(context, server, run);
          const next = { ...server, disk_version: server.disk_version + 1 };
          await attempt("disk_failed", `Could not create the new disk of server ${subject}`, async () =>
            machines.ensureDisk(await machineSpecFor(context, next), { image: folder }),
          );
          const renewed = await renewBackup(context, next, signal);
          return { detail: `${server.hdd} GB from ${server.image_name}${renewed}`, facts: { disk: next.disk_version } };
        },
        async save(tx, { subject, facts }) {
          if (facts.disk !== undefined)
            await changeServer(context, tx, subject, { disk_version: facts.disk }, facts.by ?? null);
        },
        async undo({ subject, facts }) {
          const server = await requireServer(context, subject);
          const old = facts.disk === undefined ? server.disk_version : facts.disk - 1;
          await machines.ensureOnlyDisk(subject, old);
        },
        async unsave(tx, { subject, facts }) {
          if (facts.disk !== undefined)
            await changeServer(context, tx, subject, { disk_version: facts.disk - 1 }, facts.by ?? null);
        },
      },
      bootStep(context, { from: "new" }),
      ...guestSteps<RebuildInput>(context),
    ],
    async ended(tx, run, ending) {
      const server = await findAnyServer(tx, run.subject);
      if (server === undefined || server.state === "Deleting" || server.state === "Failed") return;
      if (await tookEffect(tx, run.task, ending)) await queueReconcile(context, tx, reconcile, server);
      else await restoreFields(context, tx, run);
    },
  });
}

/** Restores the fields of the present disk, unless a later rebuild has replaced them. */
async function restoreFields(
  context: FlowContext,
  tx: Tx,
  { task, subject, input, facts }: { task: number; subject: number; input: RebuildInput; facts: Partial<Facts> },
): Promise<void> {
  const waiting = await queue(tx, { kind: "server", id: subject });
  if (waiting.some((each) => each.name === rebuildName && each.id > task)) return;
  const { fields, keys } = await stateBefore(tx, input);
  setServerKeys(tx, subject, keys);
  await changeServer(context, tx, subject, fields, facts.by ?? null);
}

/** Stores the new image, password, keys and user data in the row, and queues the rebuild. */
export async function queueRebuild(
  context: FlowContext,
  tx: Tx,
  flow: Flow<RebuildInput, Facts>,
  server: ServerRow,
  plan: RebuildPlan,
  waitFor: WaitFor,
  by: Cause | null,
): Promise<{ readonly server: ServerRow; readonly task: Task }> {
  const { sealer, random } = context;
  const { id } = server;
  const earlier = (await queue(tx, { kind: "server", id })).findLast((each) => each.name === rebuildName);
  const replaced = snapshotFields(server, await listServerKeys(tx, id));
  if (plan.keys !== null) setServerKeys(tx, id, plan.keys);
  const { image, userData } = plan;
  const changed = await changeServer(
    context,
    tx,
    id,
    {
      image_id: image.id,
      image_name: image.name,
      family: image.family,
      guest: image.guest,
      admin_password: sealer.seal(createPassword(random)),
      ...(userData !== undefined && { user_data: userData === null ? null : sealer.seal(userData) }),
    },
    by,
  );
  const steps = stepsOf("Rebuild", waitFor);
  const input = { before: replaced, behind: earlier?.id ?? null };
  return { server: changed, task: await startOn(context, tx, flow, changed, input, by, { steps }) };
}
