/** Handlers that list, read, create, copy, edit, rebuild and delete servers. They validate and queue the work; the flows do it. */

import type { Server, ServerEdit } from "@brume/api/server.ts";
import { findImage } from "../catalog/table.ts";
import type { Task } from "../engine/task.ts";
import { afterPreparing, type Caller, type ChangeResult, type Handlers, type Request } from "../http/handler.ts";
import { cutPage, plainPage, takePage } from "../http/list.ts";
import type { Reader, Tx } from "../store/db.ts";
import {
  actionOf,
  auditOnly,
  awaitAction,
  causeOf,
  getServer,
  loadReferences,
  openProject,
  queueOf,
  type ServerContext,
  waitForTasks,
} from "./context.ts";
import type { CreatedServer } from "./flow/create.ts";
import { readAllocated, readHost, readHostCached, requireDemand, requireSpace } from "./hostcapacity.ts";
import { demandOf, growthOf } from "./model/capacity.ts";
import { checkCopy, planCopy } from "./model/copy.ts";
import { checkServerInput, planServer, single } from "./model/plan.ts";
import { checkRebuild, planRebuild, requireUnprotected } from "./model/rebuild.ts";
import { heldWith, planResize, sizesAfter, sizesOf } from "./model/resize.ts";
import { serverTag, withoutSecrets } from "./model/show.ts";
import { flowName, requireQueueSlot, requireRequest, requireState, stateAfter } from "./model/state.ts";
import { createPagePrinter } from "./pageprinter.ts";
import { filterServers, onlyState } from "./serverfilter.ts";
import { countServers } from "./sumtable.ts";
import {
  countInState,
  findServer,
  listServerKeys,
  listServersOf,
  pageInState,
  pageServers,
  type ServerRow,
} from "./table.ts";
import { viewProject, viewServer, withoutIds } from "./view.ts";

type Names =
  | "listServers"
  | "createServer"
  | "readServer"
  | "updateServer"
  | "deleteServer"
  | "copyServer"
  | "rebuildServer";

/** Servers of a long list that are read and shown together: it takes less than a slice. */
const shownTogether = 50;

type RequestContext = Pick<Request, "caller" | "requestId" | "dryRun">;

export function serverRoutes(context: ServerContext): Handlers<Names> {
  const { store, servers } = context;
  const pages = createPagePrinter(context, context.position);

  /** Returns the response to a change of a server. With `Prefer: wait`, it is read again when the task has ended. */
  function respond(server: Server, tag: string, task: Task, caller: Caller): Omit<ChangeResult<Server>, "changes"> {
    return {
      answer: server,
      tag,
      tasks: [task.id],
      async refresh(ms) {
        if (ms <= 0) return undefined;
        await waitForTasks(context, [task], ms);
        const now = await findServer(store.read, caller.projectId, server.ID);
        return now && viewServer(context, store.read, caller, now);
      },
    };
  }

  /** Returns the response to the creation of a server. */
  async function respondCreated(
    tx: Tx,
    { caller, dryRun }: RequestContext,
    { server, task, parts }: CreatedServer,
  ): Promise<ChangeResult<Server>> {
    const shown = await viewServer(context, tx, caller, server, parts);
    return {
      ...respond(dryRun ? withoutIds(shown) : shown, serverTag(dryRun ? { ...server, id: 0 } : server), task, caller),
      // The event was appended with the row, before the event of the action.
      changes: [auditOnly("server.created", server.id, null, withoutSecrets(shown))],
    };
  }

  /** Yields these servers, some at a time. */
  async function* showSome(caller: Caller, db: Reader, found: readonly { readonly id: number }[]) {
    for (let from = 0; from < found.length; from += shownTogether) {
      const ids = found.slice(from, from + shownTogether).map(({ id }) => id);
      const rows = await listServersOf(db, caller.projectId, ids);
      const view = await viewProject(context, db, caller, rows);
      for (const row of rows) yield view.show(row);
    }
  }

  /** Yields all servers of the project, some at a time. */
  async function* showAll(caller: Caller, db: Reader) {
    for (let after = 0; ; ) {
      const rows = await pageServers(db, caller.projectId, after, shownTogether);
      const view = await viewProject(context, db, caller, rows);
      for (const row of rows) yield view.show(row);
      if (rows.length < shownTogether) return;
      after = rows.at(-1)?.id ?? after;
    }
  }

  return {
    listServers: {
      async list({ query, caller }, db) {
        const plain = plainPage(query);
        if (plain !== null) return pages.print(db, caller, plain);
        if (Object.values(query).every((value) => value === undefined))
          return { items: showAll(caller, db), total: await countServers(db, caller.projectId), next: null };
        const { state: filter, ...others } = query;
        const state = onlyState(filter);
        const page = state === null ? null : plainPage(others);
        if (state !== null && page !== null) {
          const { limit, after } = page;
          const rows = await pageInState.all(db, { project: caller.projectId, state, after, limit: limit + 1 });
          const { items, next } = cutPage(rows, limit);
          return { items: showSome(caller, db, items), total: await countInState(db, caller.projectId, state), next };
        }
        const rows = await filterServers(db, caller.projectId, query);
        const found = takePage(rows, query, { id: (row) => row.id });
        return { ...found, items: showSome(caller, db, found.items) };
      },
    },
    readServer: {
      async read({ params, caller }, db) {
        const row = await getServer(db, caller, params.id);
        return { answer: await viewServer(context, db, caller, row), tag: serverTag(row) };
      },
    },
    createServer: afterPreparing({
      check: (body) => checkServerInput(single(body)),
      prepare: () => readHostCached(context),
      async change(request, tx, host) {
        const { body, caller } = request;
        const [project, references, allocated] = await Promise.all([
          openProject(tx, caller),
          loadReferences(context, tx, caller, [body.NetworkID]),
          readAllocated(tx, caller.projectId),
        ]);
        const spec = planServer(single(body), references);
        requireSpace(project, host, allocated, demandOf([spec]));
        const creation = { project: project.id, batch: null, spec, by: causeOf(request) };
        return respondCreated(tx, request, await servers.commands.create(tx, creation));
      },
    }),
    copyServer: afterPreparing({
      check: checkCopy,
      prepare: () => readHostCached(context),
      async change(request, tx, host) {
        const { params, body, caller, expect } = request;
        const project = await openProject(tx, caller);
        const before = await queueOf(tx, params.id);
        const server = await getServer(tx, caller, params.id);
        expect(serverTag(server));
        requireRequest(server, before, "Copy");
        const source = {
          server,
          sizes: sizesAfter(sizesOf(server), before),
          keys: await listServerKeys(tx, server.id),
        };
        const spec = planCopy(body, source, await loadReferences(context, tx, caller, [body.NetworkId]));
        await requireDemand(tx, project, host, demandOf([spec]));
        return respondCreated(
          tx,
          request,
          await servers.commands.copy(tx, { source: server, spec, by: causeOf(request) }),
        );
      },
    }),
    updateServer: afterPreparing({
      prepare: ({ params }) => readHost(context, params.id),
      async change(request, tx, host) {
        const { params, body, caller, dryRun, expect } = request;
        const project = await openProject(tx, caller);
        const before = await queueOf(tx, params.id);
        const row = await getServer(tx, caller, params.id);
        expect(serverTag(row));
        requireState(row, before, "Resize");
        const isOn = stateAfter(row, before) === "on";
        const plan = planResize(body, {
          id: row.id,
          sizes: sizesAfter(sizesOf(row), before),
          isOn,
          reach: isOn && before.length === 0 ? host.reach(row.id) : null,
          minRam: (await findImage(tx, caller.projectId, row.image_id))?.min_ram ?? 0,
        });
        // A change without steps does not need a slot in the queue.
        if (plan.steps.length > 0) requireQueueSlot(row, before);
        const held = { cpu: row.held_cpu, ram: row.held_ram, hdd: row.held_hdd };
        const wanted = growthOf(held, heldWith(sizesOf(row), before, plan.input));
        if (wanted.CPU + wanted.RAM + wanted.HDD > 0) await requireDemand(tx, project, host, wanted);

        const by = causeOf(request);
        const was = withoutSecrets(await viewServer(context, tx, caller, row));
        const edit = editOf(row, body);
        const changed = edit === null ? row : await servers.commands.edit(tx, row.id, edit, by);
        const task = await servers.commands.resize(tx, changed, plan, by);
        const action = actionOf(task);
        const now = withoutSecrets(await viewServer(context, tx, caller, changed));
        return {
          answer: dryRun ? { ...action, ID: 0 } : action,
          changes: [auditOnly("server.changed", row.id, was, now)],
          refresh: (ms) => awaitAction(context, task, ms),
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
        requireUnprotected(row);
        requireRequest(row, before, "Rebuild");
        const references = await loadReferences(context, tx, caller);
        const plan = planRebuild(body, row, sizesAfter(sizesOf(row), before), references);
        const was = withoutSecrets(await viewServer(context, tx, caller, row));
        const waitFor = body.WaitFor ?? "Power";
        const { server, task } = await servers.commands.rebuild(tx, row, plan, waitFor, causeOf(request));
        const shown = await viewServer(context, tx, caller, server);
        const answer = dryRun ? { ...shown, AdminPassword: "" } : shown;
        return {
          ...respond(answer, serverTag(server), task, caller),
          changes: [auditOnly("server.changed", row.id, was, withoutSecrets(shown))],
        };
      },
    },
    deleteServer: {
      async change(request, tx) {
        const { params, caller, expect } = request;
        const before = await queueOf(tx, params.id);
        const row = await getServer(tx, caller, params.id);
        expect(serverTag(row));
        requireUnprotected(row);
        const was = withoutSecrets(await viewServer(context, tx, caller, row));
        const task = await servers.commands.delete(tx, row, causeOf(request));
        const running = task ?? before.find(({ name }) => name === flowName("Delete"));
        return {
          answer: undefined,
          changes: [auditOnly("server.deleted", row.id, was, null)],
          async refresh(ms) {
            await waitForTasks(context, running === undefined ? [] : [running], ms);
            return undefined;
          },
        };
      },
    },
  };
}

/** Returns the columns that change without a step; null: none changes. */
function editOf(row: ServerRow, body: ServerEdit): Partial<ServerRow> | null {
  const { Name, Labels, IsProtected, HDDType, isBackupActive, BackupPeriod } = body;
  const change: Partial<ServerRow> = {
    ...(Name !== undefined && { name: Name }),
    ...(Labels !== undefined && { labels: JSON.stringify(Labels) }),
    ...(IsProtected !== undefined && { is_protected: Number(IsProtected) }),
    ...(HDDType !== undefined && { hdd_type: HDDType === "HDD" ? "SAS" : HDDType }),
    ...(isBackupActive !== undefined && { is_backup_active: Number(isBackupActive) }),
    ...(BackupPeriod !== undefined && { backup_period: BackupPeriod }),
  };
  const isSame = Object.entries(change).every(([key, value]) => row[key as keyof ServerRow] === value);
  return isSame ? null : change;
}
