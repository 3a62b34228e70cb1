/** Orphans: what is on the host and not in the database is listed, adopted or removed by an operator. */
import type { orphanOperations } from "@brume/api/orphan.ts";
import { findProject, lockProject } from "../account/table.ts";
import { Fault, fieldFault, invalidFields } from "../base/fault.ts";
import { techNameOf } from "../catalog/rules.ts";
import { showImage } from "../catalog/show.ts";
import { insertImage } from "../catalog/table.ts";
import type { Handlers } from "../http/handler.ts";
import { takePage } from "../http/list.ts";
import type { Reader, Tx } from "../store/db.ts";
import { causeOf, type Desk, noted } from "./desk.ts";
import {
  deleteOrphan,
  findOrphan,
  listOrphans,
  lockOrphans,
  numberOf,
  type OrphanRow,
  showOrphan,
  tellOrphan,
  updateOrphan,
} from "./orphantable.ts";

type Names = keyof typeof orphanOperations;

async function getOrphan(db: Reader, id: number): Promise<OrphanRow> {
  const row = await findOrphan(db, id);
  if (row === undefined) throw new Fault("orphan_not_found", `There is no orphan ${id}.`);
  return row;
}

/** Throws `action_not_allowed`. */
function checkAdoptable({ id, kind, name, state, disk_version }: OrphanRow): void {
  const refuse = (why: string) => new Fault("action_not_allowed", `Orphan ${id} (${kind} ${name}) ${why}.`);
  if (state === "Removing") throw refuse("is being removed");
  if (kind === "Snapshot") throw refuse("is a snapshot that no image was written from: it can only be removed");
  if (kind === "Server" && disk_version === 0) throw refuse("has no disk: it can only be removed");
}

export function adoptionRoutes(desk: Desk): Handlers<Names> {
  const { clock, servers, locations } = desk;

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
    adoptOrphan: {
      async change(request, tx) {
        const { params, body, caller } = request;
        const project = body.ProjectID ?? caller.projectId;
        await lockProject(tx, project);
        await lockOrphans(tx);
        const row = await getOrphan(tx, params.id);
        if ((await findProject.first(tx, { id: project })) === undefined)
          throw invalidFields([
            fieldFault("/ProjectID", "unknown_reference", `ProjectID must be an existing project, not ${project}.`),
          ]);
        checkAdoptable(row);
        const name = body.Name ?? (row.title || `${row.kind.toLowerCase()}-${numberOf(row)}`);
        const by = causeOf(request);
        await deleteOrphan(tx, row.id);
        await tellOrphan(tx, row, "deleted", clock.now(), by);
        if (row.kind === "Server") {
          const { id } = await servers.order.adopt(tx, row, { project, name, location: locations[0] ?? "" }, by);
          return {
            answer: { ServerID: id, ImageID: null },
            happenings: [noted("orphan.deleted", row.id, showOrphan(row), null)],
          };
        }
        const image = showImage(await adoptImage(tx, row, project, name));
        return {
          answer: { ServerID: null, ImageID: image.ID },
          happenings: [
            { type: "image.created", id: image.ID, parent: null, project, before: null, after: image },
            noted("orphan.deleted", row.id, showOrphan(row), null),
          ],
        };
      },
    },
    deleteOrphan: {
      async change(request, tx) {
        await lockOrphans(tx);
        const row = await getOrphan(tx, request.params.id);
        if (row.state !== "Removing") {
          const changed = await updateOrphan(tx, row.id, { state: "Removing" });
          await tellOrphan(tx, changed, "changed", clock.now(), causeOf(request));
        }
        await servers.order.removeOrphan(tx);
        return { answer: undefined, happenings: [noted("orphan.deleted", row.id, showOrphan(row), null)] };
      },
    },
  };
}
