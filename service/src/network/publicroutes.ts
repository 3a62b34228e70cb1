/** Route handlers of public networks: list, create, read, update, delete. */
import { bandwidths } from "@brume/api/network.ts";
import { lockProject } from "../account/table.ts";
import { ApiError, fieldError } from "../base/error.ts";
import { turn } from "../base/turn.ts";
import { requestReconcile } from "../engine/task.ts";
import type { Caller, Handlers } from "../http/handler.ts";
import { cutPage, plainPage } from "../http/list.ts";
import type { Reader } from "../store/db.ts";
import { readAggregate } from "./aggregate.ts";
import {
  changePublic,
  chooseLocation,
  countsOf,
  getAggregate,
  getPublic,
  type NetworkContext,
  networkChanged,
  publicTag,
  requireProjectQuota,
  sealerFor,
  showNow,
  waitFor,
} from "./context.ts";
import { freeExpired, take6, takeBlock, takeEdge } from "./freetable.ts";
import type { LinkRow } from "./linktable.ts";
import { defaultCapacity, pack, readCapacity, storedBlock } from "./model/plan.ts";
import { publicState, showPublicNetwork } from "./model/show.ts";
import { filterNetworks } from "./networkfilter.ts";
import * as table from "./table.ts";

type Names =
  | "listPublicNetworks"
  | "createPublicNetwork"
  | "readPublicNetwork"
  | "updatePublicNetwork"
  | "deletePublicNetwork";

/** Seconds after which a request that found no free block may be repeated: retired blocks are free again. */
const retryAfter = 60;

/** Creates the route handlers of public networks. */
export function publicRoutes(context: NetworkContext): Handlers<Names> {
  const { store, clock, locations, areas, apply } = context;

  /** Yields the networks one by one: each may have thousands of rules. */
  async function* show(caller: Caller, db: Reader, rows: readonly table.NetworkRow[]) {
    const secrets = sealerFor(context, caller);
    for (const row of rows) {
      const aggregate = await readAggregate(db, row);
      if (aggregate !== undefined) yield showPublicNetwork(aggregate, { live: null, secrets });
    }
  }

  /** Yields these networks one by one, as above. */
  async function* showFound(caller: Caller, db: Reader, found: readonly table.FilteredRow[]) {
    for (const { id } of found) {
      const row = await table.findNetwork(db, id);
      if (row !== undefined) yield* show(caller, db, [row]);
    }
  }

  return {
    listPublicNetworks: {
      async list({ query, caller }, db) {
        const project = caller.projectId;
        const plain = plainPage(query);
        if (plain !== null) {
          const rows = await table.pageNetworks(db, project, "public", plain.after, plain.limit + 1);
          const { items, next } = cutPage(rows, plain.limit);
          return { items: show(caller, db, items), total: await table.countNetworks(db, project, "public"), next };
        }
        const page = await filterNetworks(db, { project, kind: "public" }, query, publicState);
        return { ...page, items: showFound(caller, db, page.items) };
      },
    },
    readPublicNetwork: {
      async read({ params, query, caller }, db) {
        const aggregate = await getAggregate(db, await getPublic(db, caller, params.id));
        if (turn.isOver()) await turn.next();
        const live = await countsOf(context, aggregate);
        if (turn.isOver()) await turn.next();
        const secrets = sealerFor(context, caller);
        const answer = showPublicNetwork(aggregate, { live, secrets, peer: query.peer }, context.firewalls);
        // Thousands of rules are then printed in slices of their own.
        if (turn.isOver()) await turn.next();
        return { answer, tag: publicTag(aggregate.network) };
      },
    },
    createPublicNetwork: {
      check({ NetworkCapacity: text }) {
        if (text === undefined || text === "" || readCapacity(text) !== null) return [];
        const detail = `NetworkCapacity must be a prefix length from 24 to 30 or 8, 16, 32, 64, 128 or 256 addresses, not "${text}".`;
        return [fieldError("/NetworkCapacity", "value_not_allowed", detail)];
      },
      async change({ body, caller, dryRun }, tx) {
        const location = chooseLocation(locations, body.DCLocation);
        await table.lockPools(tx);
        await lockProject(tx, caller.projectId);
        const owned = await table.countNetworks(tx, caller.projectId, "public");
        await requireProjectQuota(tx, caller, "PublicNetworks", owned, 1);

        const now = clock.now();
        await freeExpired(tx, areas, now);
        const prefix = readCapacity(body.NetworkCapacity ?? "") ?? defaultCapacity;
        const block = await takeBlock(tx, areas, 1n << BigInt(32 - prefix));
        const edge = block && (await takeEdge(tx, areas));
        const first6 = await take6(tx, areas);
        if (block === null || edge === null || (areas.pool6 !== null && first6 === null))
          throw new ApiError(
            "pool_exhausted",
            `The public pools have no free /${prefix} with an edge address.`,
            [],
            retryAfter,
          );

        const row = await table.insertNetwork(
          tx,
          table.newNetworkRow({
            project_id: caller.projectId,
            kind: "public",
            name: body.Name,
            location,
            ...storedBlock(4, block),
            gateway: pack(4, block.first + 1n),
            edge: pack(4, edge),
            first6,
            is_dhcp: Number(body.IsDHCP ?? true),
            bandwidth: body.Bandwidth ?? bandwidths.public,
            created: now,
            labels: JSON.stringify(body.Labels ?? {}),
          }),
        );
        const task = await requestReconcile(tx, apply, row.id);
        const aggregate = { network: dryRun ? { ...row, id: 0 } : row, links: [], tunnels: [] };
        return {
          answer: showPublicNetwork(aggregate, { live: null, secrets: null }),
          tag: publicTag(aggregate.network),
          changes: [networkChanged("publicnetwork.created", null, aggregate)],
          async refresh(ms) {
            if (ms <= 0) return undefined;
            await waitFor(context, task, ms);
            const now = await readAggregate(store.read, await table.findNetwork(store.read, row.id));
            return now && showNow(context, caller, now);
          },
        };
      },
    },
    updatePublicNetwork: {
      change: ({ body, ...request }, tx) =>
        changePublic(context, request, tx, async ({ network }) => {
          const name = body.Name ?? network.name;
          const bandwidth = body.Bandwidth ?? network.bandwidth;
          const labels = body.Labels === undefined ? network.labels : JSON.stringify(body.Labels);
          if (name !== network.name || bandwidth !== network.bandwidth) return { name, bandwidth, labels };
          return labels === network.labels ? null : { labels };
        }),
    },
    deletePublicNetwork: {
      async change({ params, caller, expect }, tx) {
        await table.lockNetwork(tx, params.id);
        const row = await getPublic(tx, caller, params.id);
        expect(publicTag(row));
        const before = await getAggregate(tx, row);
        requireUnused(before.network, before.links);
        const isNew = row.state !== "Deleting";
        if (isNew) await table.updateNetwork(tx, row.id, { state: "Deleting" });
        const task = await requestReconcile(tx, apply, row.id);
        const after = { ...before, network: { ...row, state: "Deleting" as const } };
        return {
          answer: undefined,
          changes: isNew ? [networkChanged("publicnetwork.changed", before, after)] : [],
          async refresh(ms) {
            await waitFor(context, task, ms);
            return undefined;
          },
        };
      },
    },
  };
}

/** Throws `network_in_use` if the network has links. */
export function requireUnused({ id }: table.NetworkRow, links: readonly LinkRow[]): void {
  if (links.length === 0) return;
  const servers = [...new Set(links.map((link) => link.server_id))].join(", ");
  throw new ApiError("network_in_use", `Network ${id} is linked to server ${servers}. Remove these links first.`);
}
