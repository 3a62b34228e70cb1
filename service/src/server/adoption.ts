/** Handlers with which an operator lists, adopts and removes orphans: servers, images and snapshots on the host without a row. */

import type { orphanOperations } from "@brume/api/orphan.ts";
import { requireQuota } from "../account/model/rules.ts";
import { findProject, lockProject } from "../account/table.ts";
import { ApiError, fieldError, invalidFields } from "../base/error.ts";
import { requireUsable, techNameOf } from "../catalog/model/rules.ts";
import { showImage } from "../catalog/model/show.ts";
import { countImages, type ImageRow, insertImage, listImages } from "../catalog/table.ts";
import { afterPreparing, type Handlers } from "../http/handler.ts";
import { takePage } from "../http/list.ts";
import type { Reader, Tx } from "../store/db.ts";
import { auditOnly, causeOf, type ServerContext } from "./context.ts";
import { sizesOfOrphan } from "./flow/adopt.ts";
import { readHostCached, requireDemand } from "./hostcapacity.ts";
import { demandOf } from "./model/capacity.ts";
import {
  deleteOrphan,
  emitOrphanEvent,
  findOrphan,
  listOrphans,
  lockOrphans,
  numberOf,
  type OrphanRow,
  showOrphan,
  updateOrphan,
} from "./orphantable.ts";

type Names = keyof typeof orphanOperations;

/** Throws `orphan_not_found`. */
async function getOrphan(db: Reader, id: number): Promise<OrphanRow> {
  const row = await findOrphan(db, id);
  if (row === undefined) throw new ApiError("orphan_not_found", `Orphan ${id} does not exist.`);
  return row;
}

/** Throws `action_not_allowed` if the orphan can only be removed. */
function checkAdoptable({ id, kind, name, state, disk_version }: OrphanRow): void {
  const refuse = (why: string) => new ApiError("action_not_allowed", `Orphan ${id} (${kind} ${name}) ${why}.`);
  if (state === "Removing") throw refuse("is being removed");
  if (kind === "Snapshot") throw refuse("is a snapshot without an image: it can only be removed");
  if (kind === "Server" && disk_version === 0) throw refuse("has no disk: it can only be removed");
}

/** Returns the requested image, or by default the one the disk was created from. Throws `validation_failed`, `image_not_ready`. */
async function chooseImage(tx: Tx, { id, image }: OrphanRow, project: number, wanted: number | undefined) {
  const refuse = (code: "unknown_reference" | "field_required", detail: string) =>
    invalidFields([fieldError("/ImageID", code, detail)]);
  const images = (await listImages(tx, project)).filter(({ state }) => state !== "Withdrawn");
  const isOrigin = ({ folder, name, project_id }: ImageRow): boolean =>
    image !== "" && (folder === image || (project_id === null && name === image));
  const found = images.find(wanted === undefined ? isOrigin : (one) => one.id === wanted);
  if (found === undefined && wanted !== undefined)
    throw refuse("unknown_reference", `ImageID must be an image that project ${project} can use, not ${wanted}.`);
  if (found === undefined) {
    const lacks = image === "" ? "is not known" : `(${image}) is not in project ${project}`;
    throw refuse("field_required", `ImageID is required: the image of the disk of orphan ${id} ${lacks}.`);
  }
  requireUsable(found);
  return { image: found, isOrigin: isOrigin(found) };
}

export function adoptionRoutes(context: ServerContext): Handlers<Names> {
  const { clock, servers, locations } = context;

  async function adoptImage(tx: Tx, orphan: OrphanRow, project: number, name: string) {
    const { family, ram, hdd } = orphan;
    const now = clock.now();
    return insertImage(tx, {
      id: numberOf(orphan) ?? 0,
      project_id: project,
      type: "Client",
      name,
      display_name: name,
      location: null,
      hdd: Math.max(1, hdd),
      min_ram: Math.max(1, ram),
      family,
      os: family,
      tech_name: techNameOf(name),
      state: "Active",
      folder: orphan.name,
      server_id: null,
      progress: 100,
      error: null,
      created: now,
      labels: "{}",
      version: 1,
    });
  }

  return {
    listOrphans: {
      async list({ query }, db) {
        return takePage((await listOrphans(db)).map(showOrphan), query, { id: ({ ID }) => ID });
      },
    },
    readOrphan: {
      read: async ({ params }, db) => ({ answer: showOrphan(await getOrphan(db, params.id)) }),
    },
    adoptOrphan: afterPreparing({
      prepare: () => readHostCached(context),
      async change(request, tx, host) {
        const { params, body, caller } = request;
        const project = body.ProjectID ?? caller.projectId;
        await lockProject(tx, project);
        await lockOrphans(tx);
        const row = await getOrphan(tx, params.id);
        const owner = await findProject.first(tx, { id: project });
        if (owner === undefined)
          throw invalidFields([
            fieldError("/ProjectID", "unknown_reference", `ProjectID must be an existing project, not ${project}.`),
          ]);
        checkAdoptable(row);
        if (owner.is_blocked === 1)
          throw new ApiError(
            "project_blocked",
            `Project ${project} is blocked: its objects can only be read and deleted.`,
          );
        const name = body.Name ?? (row.title || `${row.kind.toLowerCase()}-${numberOf(row)}`);
        const by = causeOf(request);
        const chosen = row.kind === "Server" ? await chooseImage(tx, row, project, body.ImageID ?? undefined) : null;
        if (chosen !== null) await requireDemand(tx, owner, host, demandOf([sizesOfOrphan(row, chosen.image)]));
        else requireQuota(owner.quotas, "Images", await countImages(tx, project), 1);
        await deleteOrphan(tx, row.id);
        await emitOrphanEvent(tx, row, "deleted", clock.now(), by);
        if (chosen !== null) {
          const spec = { ...chosen, project, name, location: locations[0] ?? "" };
          const { id } = await servers.commands.adopt(tx, row, spec, by);
          return {
            answer: { ServerID: id, ImageID: null },
            changes: [auditOnly("orphan.deleted", row.id, showOrphan(row), null)],
          };
        }
        const image = showImage(await adoptImage(tx, row, project, name));
        return {
          answer: { ServerID: null, ImageID: image.ID },
          changes: [
            { type: "image.created", id: image.ID, parent: null, project, before: null, after: image },
            auditOnly("orphan.deleted", row.id, showOrphan(row), null),
          ],
        };
      },
    }),
    deleteOrphan: {
      async change(request, tx) {
        await lockOrphans(tx);
        const row = await getOrphan(tx, request.params.id);
        if (row.state !== "Removing") {
          const changed = await updateOrphan(tx, row.id, { state: "Removing" });
          await emitOrphanEvent(tx, changed, "changed", clock.now(), causeOf(request));
        }
        await servers.commands.removeOrphan(tx);
        return { answer: undefined, changes: [auditOnly("orphan.deleted", row.id, showOrphan(row), null)] };
      },
    },
  };
}
