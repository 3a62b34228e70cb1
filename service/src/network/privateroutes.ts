/** Route handlers of private networks: list, create, read, update, delete. */
import { bandwidths } from "@brume/api/network.ts";
import { lockProject } from "../account/table.ts";
import { ApiError, fieldError } from "../base/error.ts";
import { readByIds } from "../base/turn.ts";
import { requestReconcile } from "../engine/task.ts";
import type { Caller, Handlers, ResourceChange } from "../http/handler.ts";
import type { Reader } from "../store/db.ts";
import { chooseLocation, type NetworkContext, privateTag, requireProjectQuota, waitFor } from "./context.ts";
import * as linkTable from "./linktable.ts";
import { planPrivate } from "./model/plan.ts";
import { showNetwork } from "./model/show.ts";
import { filterNetworks, readTogether } from "./networkfilter.ts";
import { requireUnused } from "./publicroutes.ts";
import * as table from "./table.ts";

type Names = "listNetworks" | "readNetwork" | "createNetwork" | "updateNetwork" | "deleteNetwork";

/** Returns a private network of the caller's project. Throws `network_not_found`. */
async function getPrivate(db: Reader, caller: Caller, id: number): Promise<table.NetworkRow> {
  const row = await table.findNetworkOf(db, caller.projectId, "private", id);
  if (row === undefined)
    throw new ApiError("network_not_found", `Private network ${id} does not exist in this project.`);
  return row;
}

const changeOf = (type: ResourceChange["type"], id: number, before: unknown, after: unknown): ResourceChange => ({
  type,
  id,
  parent: null,
  before,
  after,
});

/** Creates the route handlers of private networks. */
export function privateRoutes(context: NetworkContext): Handlers<Names> {
  const { store, clock, locations, apply } = context;

  /** Yields the networks one by one: each may have hundreds of links. */
  async function* show(db: Reader, found: readonly table.FilteredRow[]) {
    const ids = found.map(({ id }) => id);
    for await (const rows of readByIds(ids, readTogether, (some) => table.listNetworksById(db, some)))
      for (const row of rows) yield showNetwork(row, await linkTable.listLinks(db, row.id));
  }

  return {
    listNetworks: {
      async list({ query, caller }, db) {
        const project = caller.projectId;
        const page = await filterNetworks(db, { project, kind: "private" }, query, ({ state }) => state);
        return { ...page, items: show(db, page.items) };
      },
    },
    readNetwork: {
      async read({ params, caller }, db) {
        const row = await getPrivate(db, caller, params.id);
        return { answer: showNetwork(row, await linkTable.listLinks(db, row.id)), tag: privateTag(row) };
      },
    },
    createNetwork: {
      check(body) {
        const planned = planPrivate(body, []);
        if (planned === null || !("reason" in planned)) return [];
        const { field, reason } = planned;
        return [fieldError(`/${field}`, "format_invalid", `${field} must be ${reason}, not "${body[field]}".`)];
      },
      async change({ body, caller, dryRun }, tx) {
        const location = chooseLocation(locations, body.DCLocation);
        await lockProject(tx, caller.projectId);
        const others = await table.listPrivateBlocks(tx, caller.projectId);
        await requireProjectQuota(tx, caller, "PrivateNetworks", others.length, 1);
        const planned = planPrivate(body, others);
        if (planned === null) throw new ApiError("pool_exhausted", "Every /24 of 172.16.0.0/12 is in use. Set CIDR.");
        if ("reason" in planned) throw new Error(`${planned.field} was not validated`);

        const row = await table.insertNetwork(
          tx,
          table.newNetworkRow({
            project_id: caller.projectId,
            kind: "private",
            name: body.Name,
            location,
            ...planned.block,
            gateway: planned.gateway,
            edge: null,
            first6: null,
            is_dhcp: Number(body.IsDHCP ?? true),
            bandwidth: bandwidths.private,
            created: clock.now(),
            labels: JSON.stringify(body.Labels ?? {}),
          }),
        );
        const task = await requestReconcile(tx, apply, row.id);
        const answer = showNetwork(dryRun ? { ...row, id: 0 } : row, []);
        return {
          answer,
          tag: privateTag(dryRun ? { ...row, id: 0 } : row),
          changes: [changeOf("network.created", row.id, null, answer)],
          async refresh(ms) {
            if (ms <= 0) return undefined;
            await waitFor(context, task, ms);
            const now = await table.findNetwork(store.read, row.id);
            return now && showNetwork(now, await linkTable.listLinks(store.read, row.id));
          },
        };
      },
    },
    updateNetwork: {
      async change({ params, body, caller, expect }, tx) {
        await table.lockNetwork(tx, params.id);
        const row = await getPrivate(tx, caller, params.id);
        expect(privateTag(row));
        const links = await linkTable.listLinks(tx, row.id);
        const name = body.Name ?? row.name;
        const labels = body.Labels === undefined ? row.labels : JSON.stringify(body.Labels);
        if (name === row.name && labels === row.labels)
          return { answer: showNetwork(row, links), tag: privateTag(row), changes: [] };
        const changed = { ...row, name, labels, version: row.version + 1 };
        await table.updateNetwork(tx, row.id, { name, labels, version: changed.version });
        const answer = showNetwork(changed, links);
        return {
          answer,
          tag: privateTag(changed),
          changes: [changeOf("network.changed", row.id, showNetwork(row, links), answer)],
        };
      },
    },
    deleteNetwork: {
      async change({ params, caller, expect }, tx) {
        await table.lockNetwork(tx, params.id);
        const row = await getPrivate(tx, caller, params.id);
        expect(privateTag(row));
        const links = await linkTable.listLinks(tx, row.id);
        requireUnused(row, links);
        // Without a row, its reconciler removes the network from the host.
        await table.deleteNetwork(tx, row, 0);
        const task = await requestReconcile(tx, apply, row.id);
        return {
          answer: undefined,
          changes: [changeOf("network.deleted", row.id, showNetwork(row, links), null)],
          async refresh(ms) {
            await waitFor(context, task, ms);
            return undefined;
          },
        };
      },
    },
  };
}
