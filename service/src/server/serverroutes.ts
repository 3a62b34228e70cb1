/** Servers: list, read, create, copy, edit, rebuild, delete. What takes time is ordered here and done by the flows. */
import type { Server, ServerEdit } from "@brume/api/server.ts";
import { findImage } from "../catalog/table.ts";
import type { Task } from "../engine/task.ts";
import { afterPreparing, type Caller, type Handlers, type Outcome, type Request } from "../http/handler.ts";
import { defaultLimit, type ListQuery, takePage } from "../http/list.ts";
import { decodeCursor, encodeCursor } from "../http/read/page.ts";
import type { Tx } from "../store/db.ts";
import { checkCopy, planCopy } from "./copy.ts";
import {
  actionOf,
  askForRoom,
  causeOf,
  type Desk,
  getServer,
  holdDemand,
  lookAtHost,
  noted,
  openProject,
  queueOf,
  readStock,
  settleAction,
  waitForTasks,
} from "./desk.ts";
import { serverFilter } from "./filter.ts";
import { checkWish, planServer, single } from "./plan.ts";
import { checkRebuild, holdUnprotected, planRebuild } from "./rebuild.ts";
import { heldWith, planResize, sizesAfter, sizesOf } from "./resize.ts";
import { demandOf, growth } from "./room.ts";
import { serverTag, withoutSecrets } from "./show.ts";
import { flowName, holdAsk, holdPlace, holdState, standingAfter } from "./state.ts";
import { countServers, findServer, listServerKeys, listServers, pageServers, type ServerRow } from "./table.ts";
import { viewProject, viewServer, withoutIds } from "./view.ts";

type Names =
  | "listServers"
  | "createServer"
  | "readServer"
  | "updateServer"
  | "deleteServer"
  | "copyServer"
  | "rebuildServer";

type Asked = Pick<Request, "caller" | "requestId" | "dryRun">;

export function serverRoutes(desk: Desk): Handlers<Names> {
  const { store, servers } = desk;

  /** The answer to a server's making or changing, which becomes what is true when the work has ended. */
  function answer(server: Server, tag: string, task: Task, caller: Caller): Omit<Outcome<Server>, "happenings"> {
    return {
      answer: server,
      tag,
      tasks: [task.id],
      async settle(ms) {
        if (ms <= 0) return undefined;
        await waitForTasks(desk, [task], ms);
        const now = await findServer(store.read, caller.projectId, server.ID);
        return now && viewServer(desk, store.read, caller, now);
      },
    };
  }

  async function made(
    tx: Tx,
    { caller, dryRun }: Asked,
    { server, task }: { readonly server: ServerRow; readonly task: Task },
  ): Promise<Outcome<Server>> {
    const shown = await viewServer(desk, tx, caller, server);
    return {
      ...answer(dryRun ? withoutIds(shown) : shown, serverTag(dryRun ? { ...server, id: 0 } : server), task, caller),
      // Told where it is made, before its action.
      happenings: [noted("server.created", server.id, null, withoutSecrets(shown))],
    };
  }

  return {
    listServers: {
      async list({ query, caller }, db) {
        const plain = plainPage(query);
        if (plain !== null) {
          const { limit, after } = plain;
          const rows = await pageServers(db, caller.projectId, after, limit + 1);
          const items = rows.slice(0, limit);
          const last = items.at(-1);
          const page = await viewProject(desk, db, caller, items);
          return {
            items: items.map(page.show),
            total: await countServers(db, caller.projectId),
            next: rows.length > items.length && last !== undefined ? encodeCursor({ id: last.id }) : null,
          };
        }
        const whole = await viewProject(desk, db, caller);
        const isMeant = serverFilter(query);
        const rows = (await listServers(db, caller.projectId)).filter((row) =>
          isMeant(row, whole.links.get(row.id) ?? []),
        );
        const page = takePage(rows, query, {
          id: (row) => row.id,
          name: (row) => row.name,
          state: (row) => row.state,
          labels: (row) => JSON.parse(row.labels) as Record<string, string>,
        });
        return { ...page, items: page.items.map(whole.show) };
      },
    },
    readServer: {
      async read({ params, caller }, db) {
        const row = await getServer(db, caller, params.id);
        return { answer: await viewServer(desk, db, caller, row), tag: serverTag(row) };
      },
    },
    createServer: afterPreparing({
      check: (body) => checkWish(single(body)),
      prepare: () => askForRoom(desk),
      async change(request, tx, host) {
        const { body, caller } = request;
        const project = await openProject(tx, caller);
        const spec = planServer(single(body), await readStock(desk, tx, caller, [body.NetworkID]));
        await holdDemand(tx, project, host, demandOf([spec]));
        const wish = { project: project.id, batch: null, spec, by: causeOf(request) };
        return made(tx, request, await servers.order.create(tx, wish));
      },
    }),
    copyServer: afterPreparing({
      check: checkCopy,
      prepare: () => askForRoom(desk),
      async change(request, tx, host) {
        const { params, body, caller, expect } = request;
        const project = await openProject(tx, caller);
        const before = await queueOf(tx, params.id);
        const server = await getServer(tx, caller, params.id);
        expect(serverTag(server));
        holdAsk(server, before, "Copy");
        const source = {
          server,
          sizes: sizesAfter(sizesOf(server), before),
          keys: await listServerKeys(tx, server.id),
        };
        const spec = planCopy(body, source, await readStock(desk, tx, caller, [body.NetworkId]));
        await holdDemand(tx, project, host, demandOf([spec]));
        return made(tx, request, await servers.order.copy(tx, { source: server, spec, by: causeOf(request) }));
      },
    }),
    updateServer: afterPreparing({
      prepare: () => lookAtHost(desk),
      async change(request, tx, host) {
        const { params, body, caller, dryRun, expect } = request;
        const project = await openProject(tx, caller);
        const before = await queueOf(tx, params.id);
        const row = await getServer(tx, caller, params.id);
        expect(serverTag(row));
        holdState(row, before, "Resize");
        const isOn = standingAfter(row, before) === "on";
        const plan = planResize(body, {
          id: row.id,
          sizes: sizesAfter(sizesOf(row), before),
          isOn,
          reach: isOn && before.length === 0 ? host.reach(row.id) : null,
          minRam: (await findImage(tx, caller.projectId, row.image_id))?.min_ram ?? 0,
        });
        // What takes no time does not wait either.
        if (plan.steps.length > 0) holdPlace(row, before);
        const held = { cpu: row.held_cpu, ram: row.held_ram, hdd: row.held_hdd };
        const wanted = growth(held, heldWith(sizesOf(row), before, plan.input));
        if (wanted.CPU + wanted.RAM + wanted.HDD > 0) await holdDemand(tx, project, host, wanted);

        const by = causeOf(request);
        const was = withoutSecrets(await viewServer(desk, tx, caller, row));
        const edit = editOf(row, body);
        const changed = edit === null ? row : await servers.order.edit(tx, row.id, edit, by);
        const task = await servers.order.resize(tx, changed, plan, by);
        const action = actionOf(task);
        const now = withoutSecrets(await viewServer(desk, tx, caller, changed));
        return {
          answer: dryRun ? { ...action, ID: 0 } : action,
          happenings: [noted("server.changed", row.id, was, now)],
          settle: (ms) => settleAction(desk, task, ms),
        };
      },
    }),
    rebuildServer: {
      check: checkRebuild,
      async change(request, tx) {
        const { params, body, caller, dryRun, expect } = request;
        const before = await queueOf(tx, params.id);
        const row = await getServer(tx, caller, params.id);
        expect(serverTag(row));
        holdUnprotected(row);
        holdAsk(row, before, "Rebuild");
        const stock = await readStock(desk, tx, caller);
        const plan = planRebuild(body, row, sizesAfter(sizesOf(row), before), stock);
        const was = withoutSecrets(await viewServer(desk, tx, caller, row));
        const waitFor = body.WaitFor ?? "Power";
        const { server, task } = await servers.order.rebuild(tx, row, plan, waitFor, causeOf(request));
        const shown = await viewServer(desk, tx, caller, server);
        const own = dryRun ? { ...shown, AdminPassword: "" } : shown;
        return {
          ...answer(own, serverTag(server), task, caller),
          happenings: [noted("server.changed", row.id, was, withoutSecrets(shown))],
        };
      },
    },
    deleteServer: {
      async change(request, tx) {
        const { params, caller, expect } = request;
        const before = await queueOf(tx, params.id);
        const row = await getServer(tx, caller, params.id);
        expect(serverTag(row));
        holdUnprotected(row);
        const was = withoutSecrets(await viewServer(desk, tx, caller, row));
        const task = await servers.order.delete(tx, row, causeOf(request));
        const running = task ?? before.find(({ name }) => name === flowName("Delete"));
        return {
          answer: undefined,
          happenings: [noted("server.deleted", row.id, was, null)],
          async settle(ms) {
            await waitForTasks(desk, running === undefined ? [] : [running], ms);
            return undefined;
          },
        };
      },
    },
  };
}

/** The page that is asked for when nothing is filtered: what SQL cuts out by itself, however many servers there are. */
function plainPage(query: ListQuery & Readonly<Record<string, unknown>>): { limit: number; after: number } | null {
  const { limit, cursor, ...filters } = query;
  if (limit === undefined && cursor === undefined) return null;
  if (Object.values(filters).some((value) => value !== undefined)) return null;
  return { limit: limit ?? defaultLimit, after: cursor === undefined ? 0 : decodeCursor(cursor).id };
}

/** What takes no time, as the row's columns; null: nothing of it changes. */
function editOf(row: ServerRow, body: ServerEdit): Partial<ServerRow> | null {
  const { Name, Labels, IsProtected, HDDType, isBackupActive, BackupPeriod } = body;
  const wanted: Partial<ServerRow> = {
    ...(Name !== undefined && { name: Name }),
    ...(Labels !== undefined && { labels: JSON.stringify(Labels) }),
    ...(IsProtected !== undefined && { is_protected: Number(IsProtected) }),
    ...(HDDType !== undefined && { hdd_type: HDDType === "HDD" ? "SAS" : HDDType }),
    ...(isBackupActive !== undefined && { is_backup_active: Number(isBackupActive) }),
    ...(BackupPeriod !== undefined && { backup_period: BackupPeriod }),
  };
  const isSame = Object.entries(wanted).every(([key, value]) => row[key as keyof ServerRow] === value);
  return isSame ? null : wanted;
}
