/** Handlers that create and delete server groups (docs/spec.md#server-group, #server-group-states, #server-endpoints). */

import type { Batch } from "@brume/api/batch.ts";
import { describeProblem } from "@brume/api/errors.ts";
import type { ProjectRow } from "../account/table.ts";
import { ApiError, fieldError, invalidFields } from "../base/error.ts";
import type { Task } from "../engine/task.ts";
import { afterPreparing, type Caller, type ChangeResult, type Handlers, type Request } from "../http/handler.ts";
import { requireFreeAddresses } from "../network/link.ts";
import { findShared, lockNetwork, type NetworkRow } from "../network/table.ts";
import { rest, type Tx } from "../store/db.ts";
import {
  auditOnly,
  causeOf,
  loadReferences,
  openProject,
  queueOf,
  type ServerContext,
  waitForTasks,
} from "./context.ts";
import { type HostCapacity, readHostCached, requireDemand } from "./hostcapacity.ts";
import { checkBatch, failsServerOnly, membersOf, planEach, planTogether } from "./model/batch.ts";
import { demandOf } from "./model/capacity.ts";
import type { ServerSpec } from "./model/plan.ts";
import { requireUnprotected } from "./model/rebuild.ts";
import { showBatch, withoutSecrets } from "./model/show.ts";
import { flowName } from "./model/state.ts";
import {
  type BatchRow,
  deleteServer,
  findBatch,
  findServer,
  insertBatch,
  listMembers,
  type ServerRow,
  updateBatch,
} from "./table.ts";
import { viewProject, withoutIds } from "./view.ts";

type Names = "createBatch" | "deleteBatch";

interface CreatedServer {
  readonly server: ServerRow;
  readonly task: Task;
}

/** The group whose servers are created, and its transaction. */
interface BatchCreation {
  readonly tx: Tx;
  readonly project: ProjectRow;
  readonly host: HostCapacity;
  readonly batch: number;
  readonly request: Pick<Request, "caller" | "requestId">;
}

export function batchRoutes(context: ServerContext): Handlers<Names> {
  const { store, clock, servers } = context;

  const createOne = ({ tx, project, batch, request }: BatchCreation, spec: ServerSpec): Promise<CreatedServer> =>
    servers.commands.create(tx, { project: project.id, batch, spec, by: causeOf(request) });

  /** Creates all servers, or throws the first error. */
  async function createAll(creation: BatchCreation, specs: readonly ServerSpec[]): Promise<CreatedServer[]> {
    const { tx, project, host } = creation;
    await requireDemand(tx, project, host, demandOf(specs));
    for (const { network, wanted } of await lockNetworks(tx, specs)) await requireFreeAddresses(tx, network, wanted);
    const made: CreatedServer[] = [];
    for (const spec of specs) {
      made.push(await createOne(creation, spec));
      await rest(tx);
    }
    return made;
  }

  /** Creates each server independently. Returns the errors of the others; throws the first error if none was created. */
  async function createSome(creation: BatchCreation, planned: ReturnType<typeof planEach>) {
    const { tx, project, host, batch, request } = creation;
    const made: CreatedServer[] = [];
    const rejected: { readonly index: number; readonly error: ApiError }[] = [];
    await lockNetworks(
      tx,
      planned.flatMap(({ spec }) => spec ?? []),
    );
    for (const { index, spec, error } of planned) {
      if (spec === undefined) {
        rejected.push({ index, error });
        continue;
      }
      try {
        await requireDemand(tx, project, host, demandOf([spec]));
        made.push(await createOne(creation, spec));
        await rest(tx);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        rejected.push({ index, error: error });
        // The row was inserted before its address was rejected.
        const kept = new Set(made.map(({ server }) => server.id));
        for (const { id } of await listMembers(tx, batch)) if (!kept.has(id)) await deleteServer(tx, id);
      }
    }
    if (made.length === 0 && rejected[0] !== undefined) throw rejected[0].error;
    const errors = rejected.map(({ index, error: { code, message, errors: fields } }) => ({
      Index: index,
      Error: describeProblem(code, message, request.requestId, fields),
    }));
    return { made, errors };
  }

  /** Locks the networks in order of id, so that two groups cannot deadlock. Resolves to each network with the number of new servers. */
  async function lockNetworks(tx: Tx, specs: readonly ServerSpec[]) {
    const homes = new Map<number, { readonly network: NetworkRow; readonly wanted: number }>();
    for (const spec of specs) {
      const network = spec.network ?? (await findShared(tx, spec.location));
      if (network !== undefined) homes.set(network.id, { network, wanted: (homes.get(network.id)?.wanted ?? 0) + 1 });
    }
    for (const id of [...homes.keys()].sort((one, other) => one - other)) await lockNetwork(tx, id);
    return [...homes.values()];
  }

  /** Waits for the tasks, at most `ms`. Resolves to the group as it is then. */
  async function refreshBatch(caller: Caller, id: number, tasks: readonly Task[], ms: number) {
    if (ms <= 0) return undefined;
    await waitForTasks(context, tasks, ms);
    const row = await findBatch(store.read, caller.projectId, id);
    if (row === undefined) return undefined;
    const members = await listMembers(store.read, id);
    const view = await viewProject(context, store.read, caller, members);
    return showBatch(row, members.map(view.show));
  }

  /** Locks the queues of the servers in order of id. Throws `server_not_found`, `server_protected`. */
  async function lockServers(tx: Tx, caller: Caller, ids: readonly number[]) {
    const locked: { readonly server: ServerRow; readonly running: Task | undefined }[] = [];
    for (const id of [...new Set(ids)].sort((one, other) => one - other)) {
      const queue = await queueOf(tx, id);
      const server = await findServer(tx, caller.projectId, id);
      if (server === undefined) throw new ApiError("server_not_found", `Server ${id} does not exist in this project.`);
      requireUnprotected(server);
      locked.push({ server, running: queue.find(({ name }) => name === flowName("Delete")) });
      await rest(tx);
    }
    return locked;
  }

  return {
    createBatch: afterPreparing({
      check: checkBatch,
      failsElementOnly: failsServerOnly,
      prepare: () => readHostCached(context),
      async change(request, tx, host): Promise<ChangeResult<Batch>> {
        const { body, caller, dryRun } = request;
        const members = membersOf(body);
        const project = await openProject(tx, caller);
        const named = members.map(({ spec }) => spec.NetworkID);
        const references = await loadReferences(context, tx, caller, named);
        const policy = body.Policy ?? "Atomic";
        // Planned before the group is inserted, so that most rejected requests use no id.
        const together = policy === "Atomic" ? planTogether(members, references) : null;
        const row = await insertBatch(tx, {
          project_id: project.id,
          policy,
          state: "New",
          errors: "[]",
          created: clock.now(),
        });
        const creation = { tx, project, host, batch: row.id, request };
        const { made, errors } =
          together === null
            ? await createSome(creation, planEach(members, references, request.elementErrors))
            : { made: await createAll(creation, together), errors: [] };
        const batch = errors.length === 0 ? row : await updateBatch(tx, row.id, { errors: JSON.stringify(errors) });
        const rows = made.map(({ server }) => server);
        const shown = rows.map((await viewProject(context, tx, caller, rows)).show);
        await rest(tx);
        const withoutPasswords = shown.map(withoutSecrets);
        return {
          answer: dryRun ? showBatch({ ...batch, id: 0 }, shown.map(withoutIds)) : showBatch(batch, shown),
          changes: [
            {
              type: "batch.created",
              id: batch.id,
              parent: null,
              before: null,
              after: showBatch(batch, withoutPasswords),
            },
            ...withoutPasswords.map((server) => auditOnly("server.created", server.ID, null, server)),
          ],
          tasks: made.map(({ task }) => task.id),
          refresh: (ms) =>
            refreshBatch(
              caller,
              batch.id,
              made.map(({ task }) => task),
              ms,
            ),
        };
      },
    }),
    deleteBatch: {
      async change(request, tx) {
        const { caller } = request;
        const by = causeOf(request);
        const { ID, ServerIDs } = selectionOf(request);
        const batch = ID === undefined ? null : await getBatch(tx, caller, ID);
        const ids = batch === null ? ServerIDs : (await listMembers(tx, batch.id)).map(({ id }) => id);
        const locked = await lockServers(tx, caller, ids);
        const tasks: Task[] = [];
        for (const { server, running } of locked) {
          const task = (await servers.commands.delete(tx, server, by)) ?? running;
          if (task !== undefined) tasks.push(task);
          await rest(tx);
        }
        if (batch !== null) await servers.commands.deleteBatch(tx, batch, by);
        const gone = locked.map(({ server }) => auditOnly("server.deleted", server.id, { ID: server.id }, null));
        return {
          answer: undefined,
          changes: batch === null ? gone : [auditOnly("batch.deleted", batch.id, { ID: batch.id }, null), ...gone],
          tasks: tasks.map(({ id }) => id),
          async refresh(ms) {
            await waitForTasks(context, tasks, ms);
            return undefined;
          },
        };
      },
    },
  };
}

/** Returns a group of the project. Throws `batch_not_found`. */
async function getBatch(tx: Tx, { projectId }: Caller, id: number): Promise<BatchRow> {
  const row = await findBatch(tx, projectId, id);
  if (row === undefined) throw new ApiError("batch_not_found", `Server group ${id} does not exist in this project.`);
  return row;
}

interface Selection {
  readonly ID?: number;
  readonly ServerIDs?: readonly number[];
}

/** Returns the selection in the body, or in the query if the body has none. Throws `validation_failed` if both fields or none are given. */
function selectionOf({ body, query }: { readonly body: Selection; readonly query: Selection }) {
  const isGiven = ({ ID, ServerIDs }: Selection): boolean => ID !== undefined || (ServerIDs?.length ?? 0) > 0;
  const inBody = isGiven(body) || !isGiven(query);
  const { ID, ServerIDs = [] } = inBody ? body : query;
  const at = inBody ? "/" : "?";
  if (ID !== undefined && ServerIDs.length > 0)
    throw invalidFields([
      fieldError(`${at}ServerIDs`, "fields_conflict", "ServerIDs must not be sent together with ID."),
    ]);
  if (ID === undefined && ServerIDs.length === 0)
    throw invalidFields([fieldError(`${at}ID`, "field_required", "ID is required, or ServerIDs instead.")]);
  return { ID, ServerIDs };
}
