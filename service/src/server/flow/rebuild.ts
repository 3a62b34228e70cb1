/**
 * `Rebuild`: another disk under the same server. What callers see (image, password, keys) changes with the order; in its turn the
 * server is switched off, the new disk is made beside the old one, and the server starts from it as at its first boot. Until it has,
 * everything goes back by taking the new disk away; the old one goes when the rebuild can no longer be undone (`reconcile`).
 */

import type { WaitFor } from "@brume/api/action.ts";
import type { Flow } from "../../engine/flow.ts";
import { queue, type Task } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import { createPassword } from "../model/password.ts";
import type { RebuildPlan } from "../model/rebuild.ts";
import { findAnyServer, listServerKeys, type ServerRow, setServerKeys } from "../table.ts";
import { bootStep, stopStep } from "./boot.ts";
import { type Cause, type Facts, type FlowContext } from "./context.ts";
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
import { guestSteps } from "./guest.ts";
import { machineSpecFor } from "./nics.ts";
import { queueReconcile } from "./reconcile.ts";
import { renewBackup } from "./renew.ts";
import { changeServer, requireServer } from "./serverrow.ts";

const hour = 3_600_000;

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
          // Its own image, also when the row has another's already that waits behind it.
          const { server } = await effectiveServer(context.store.read, await requireServer(context, subject));
          const folder = await ensureImageFolder(context, server, run);
          const next = { ...server, disk_version: server.disk_version + 1 };
          await attempt("disk_failed", `The new disk of server ${subject} could not be made`, async () =>
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
      else await putBack(context, tx, run);
    },
  });
}

/** The fields are again those of the disk that is there, unless a later rebuild has said what they are to be. */
async function putBack(
  context: FlowContext,
  tx: Tx,
  { task, subject, input, facts }: { task: number; subject: number; input: RebuildInput; facts: Partial<Facts> },
): Promise<void> {
  const waiting = await queue(tx, { kind: "server", id: subject });
  if (waiting.some((each) => each.name === rebuildName && each.id > task)) return;
  const { fields, keys } = await stateBefore(tx, input);
  await setServerKeys(tx, subject, keys);
  await changeServer(context, tx, subject, fields, facts.by ?? null);
}

/** The row has the new image, password, keys and user data at once. */
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
  if (plan.keys !== null) await setServerKeys(tx, id, plan.keys);
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
