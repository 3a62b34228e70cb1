/**
 * `Rebuild`: another disk under the same server. What callers see (image, password, keys) changes with the order; in its turn the
 * server is switched off, the new disk is made beside the old one, and the server starts from it as at its first boot. Until it has,
 * everything goes back by taking the new disk away; the old one goes when the rebuild can no longer be undone (`settle`).
 */
import type { WaitFor } from "@brume/api/action.ts";
import type { Ending, Flow } from "../../engine/flow.ts";
import { find, queue, type Task } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import { createPassword } from "../password.ts";
import type { RebuildPlan } from "../rebuild.ts";
import { flowName } from "../state.ts";
import { findAnyServer, listServerKeys, type ServerRow, setServerKeys } from "../table.ts";
import { folderOf } from "./create.ts";
import { serverFlow, startOn, stepsOf } from "./form.ts";
import { orderSettle } from "./settle.ts";
import { bootStep, changeServer, guestSteps, mustFind, stopStep, wishFor } from "./steps.ts";
import { attempt, type Cause, type Facts, type FlowTools } from "./tools.ts";

type Fields = Pick<ServerRow, "image_id" | "image_name" | "family">;

export interface RebuildInput {
  /** What the order has replaced; sealed things as base64, as they were stored. */
  readonly before: Fields & {
    readonly password: string;
    readonly userData: string | null;
    readonly keys: Awaited<ReturnType<typeof listServerKeys>>;
  };
  /** The rebuild that was waiting when this one was ordered: if that comes to nothing, so does what it had put there. */
  readonly behind: number | null;
}

const name = flowName("Rebuild");
const hour = 3_600_000;

export function rebuildFlow(tools: FlowTools, settle: Flow): Flow<RebuildInput, Facts> {
  const { machines } = tools;
  return serverFlow<RebuildInput>(tools, {
    name,
    steps: [
      stopStep(tools, "moment"),
      {
        name: "Disk",
        time: hour,
        async do({ subject, signal }) {
          const server = await mustFind(tools, subject);
          const folder = await folderOf(tools, server, signal);
          const next = { ...server, disk_version: server.disk_version + 1 };
          await attempt("disk_failed", `The new disk of server ${subject} could not be made`, async () =>
            machines.ensureDisk(await wishFor(tools, next), { image: folder }),
          );
          return { detail: `${server.hdd} GB from ${server.image_name}`, facts: { disk: next.disk_version } };
        },
        async save(tx, { subject, facts }) {
          if (facts.disk !== undefined)
            await changeServer(tools, tx, subject, { disk_version: facts.disk }, facts.by ?? null);
        },
        async undo({ subject, facts }) {
          const server = await mustFind(tools, subject);
          const old = facts.disk === undefined ? server.disk_version : facts.disk - 1;
          await machines.ensureOnlyDisk(subject, old);
        },
        async unsave(tx, { subject, facts }) {
          if (facts.disk !== undefined)
            await changeServer(tools, tx, subject, { disk_version: facts.disk - 1 }, facts.by ?? null);
        },
      },
      bootStep(tools, { from: "new" }),
      ...guestSteps<RebuildInput>(tools),
    ],
    async ended(tx, run, ending) {
      const server = await findAnyServer(tx, run.subject);
      if (server === undefined || server.state === "Deleting" || server.state === "Failed") return;
      if (await stands(tx, run.task, ending)) await orderSettle(tools, tx, settle, server);
      else await putBack(tools, tx, run);
    },
  });
}

/** It has come to something: also when only the guest was not ready in time. */
async function stands(tx: Tx, task: number, ending: Ending): Promise<boolean> {
  if (ending === "Completed") return true;
  const steps = (await find(tx, task))?.steps ?? [];
  return steps.some((step) => step.name === "Boot" && step.state === "Completed");
}

/** The fields are again those of the disk that is there, unless a later rebuild has said what they are to be. */
async function putBack(
  tools: FlowTools,
  tx: Tx,
  { task, subject, input, facts }: { task: number; subject: number; input: RebuildInput; facts: Partial<Facts> },
): Promise<void> {
  const waiting = await queue(tx, { kind: "server", id: subject });
  if (waiting.some((each) => each.name === name && each.id > task)) return;
  const { password, userData, keys, ...fields } = await beforeOf(tx, input);
  await setServerKeys(tx, subject, keys);
  const open = (text: string): Uint8Array => Buffer.from(text, "base64");
  const sealed = { admin_password: open(password), user_data: userData === null ? null : open(userData) };
  await changeServer(tools, tx, subject, { ...fields, ...sealed }, facts.by ?? null);
}

/** Of the first in a row of rebuilds that all came to nothing. */
async function beforeOf(tx: Tx, input: RebuildInput): Promise<RebuildInput["before"]> {
  const earlier = input.behind === null ? undefined : await find(tx, input.behind);
  if (earlier === undefined || earlier.end === null || (await stands(tx, earlier.id, earlier.state as Ending)))
    return input.before;
  return beforeOf(tx, earlier.input as RebuildInput);
}

/** The row has the new image, password, keys and user data at once. */
export async function orderRebuild(
  tools: FlowTools,
  tx: Tx,
  flow: Flow<RebuildInput, Facts>,
  server: ServerRow,
  plan: RebuildPlan,
  waitFor: WaitFor,
  by: Cause | null,
): Promise<{ readonly server: ServerRow; readonly task: Task }> {
  const { sealer, random } = tools;
  const { id, image_id, image_name, family, admin_password, user_data } = server;
  const keep = (sealed: Uint8Array): string => Buffer.from(sealed).toString("base64");
  const earlier = (await queue(tx, { kind: "server", id })).findLast((each) => each.name === name);
  const before = {
    image_id,
    image_name,
    family,
    password: keep(admin_password),
    userData: user_data === null ? null : keep(user_data),
    keys: await listServerKeys(tx, id),
  };
  if (plan.keys !== null) await setServerKeys(tx, id, plan.keys);
  const { image, userData } = plan;
  const changed = await changeServer(
    tools,
    tx,
    id,
    {
      image_id: image.id,
      image_name: image.name,
      family: image.family,
      admin_password: sealer.seal(createPassword(random)),
      ...(userData !== undefined && { user_data: userData === null ? null : sealer.seal(userData) }),
    },
    by,
  );
  const steps = stepsOf("Rebuild", waitFor);
  const input = { before, behind: earlier?.id ?? null };
  return { server: changed, task: await startOn(tools, tx, flow, changed, input, by, { steps }) };
}
