/** Groups of servers: made together, deleted together (docs/spec.md#server-group, #server-group-states, #server-endpoints). */

import type { Batch } from "@brume/api/batch.ts";
import { describeProblem } from "@brume/api/errors.ts";
import type { ProjectRow } from "../account/table.ts";
import { ApiError, fieldError, invalidFields } from "../base/error.ts";
import type { Task } from "../engine/task.ts";
import { afterPreparing, type Caller, type ChangeResult, type Handlers, type Request } from "../http/handler.ts";
import { requireFreeAddresses } from "../network/link.ts";
import { findShared, lockNetwork, type NetworkRow } from "../network/table.ts";
import type { Tx } from "../store/db.ts";
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
import { viewServer, withoutIds } from "./view.ts";

type Names = "createBatch" | "deleteBatch";

interface CreatedServer {
  readonly server: ServerRow;
  readonly task: Task;
}

/** As far as creation them is concerned. */
interface BatchCreation {
  readonly tx: Tx;
  readonly project: ProjectRow;
  readonly host: HostCapacity;
  readonly batch: number;
  readonly request: Pick<Request, "caller" | "requestId">;
}

export function batchRoutes(context: ServerContext): Handlers<Names> {
  const { store, clock, servers } = context;

  const make = ({ tx, project, batch, request }: BatchCreation, spec: ServerSpec): Promise<CreatedServer> =>
    servers.commands.create(tx, { project: project.id, batch, spec, by: causeOf(request) });

  /** All of them, or the first fault. */
  async function createAll(creation: BatchCreation, specs: readonly ServerSpec[]): Promise<CreatedServer[]> {
    const { tx, project, host } = creation;
    await requireDemand(tx, project, host, demandOf(specs));
    for (const { network, wanted } of await lockNetworks(tx, specs)) await requireFreeAddresses(tx, network, wanted);
    const made: CreatedServer[] = [];
    for (const spec of specs) made.push(await make(creation, spec));
    return made;
  }

  /** Each for itself; at least one, or the first fault. */
  async function createSome(creation: BatchCreation, planned: ReturnType<typeof planEach>) {
    const { tx, project, host, batch, request } = creation;
    const made: CreatedServer[] = [];
    const faults: { readonly index: number; readonly fault: ApiError }[] = [];
    await lockNetworks(
      tx,
      planned.flatMap(({ spec }) => spec ?? []),
    );
    for (const { index, spec, fault } of planned) {
      if (spec === undefined) {
        faults.push({ index, fault });
        continue;
      }
      try {
        await requireDemand(tx, project, host, demandOf([spec]));
        made.push(await make(creation, spec));
      } catch (refusal) {
        if (!(refusal instanceof ApiError)) throw refusal;
        faults.push({ index, fault: refusal });
        // Its address was refused when its row was there.
        const kept = new Set(made.map(({ server }) => server.id));
        for (const { id } of await listMembers(tx, batch)) if (!kept.has(id)) await deleteServer(tx, id);
      }
    }
    if (made.length === 0 && faults[0] !== undefined) throw faults[0].fault;
    const errors = faults.map(({ index, fault: { code, message, errors: fields } }) => ({
      Index: index,
      Error: describeProblem(code, message, request.requestId, fields),
    }));
    return { made, errors };
  }

  /** Networks are locked by id, lest two groups wait for each other. Resolves to how many servers want a place in each. */
  async function lockNetworks(tx: Tx, specs: readonly ServerSpec[]) {
    const homes = new Map<number, { readonly network: NetworkRow; readonly wanted: number }>();
    for (const spec of specs) {
      const network = spec.network ?? (await findShared(tx, spec.location));
      if (network !== undefined) homes.set(network.id, { network, wanted: (homes.get(network.id)?.wanted ?? 0) + 1 });
    }
    for (const id of [...homes.keys()].sort((one, other) => one - other)) await lockNetwork(tx, id);
    return [...homes.values()];
  }

  async function refreshBatch(caller: Caller, id: number, tasks: readonly Task[], ms: number) {
    if (ms <= 0) return undefined;
    await waitForTasks(context, tasks, ms);
    const row = await findBatch(store.read, caller.projectId, id);
    if (row === undefined) return undefined;
    const shown = [];
    for (const member of await listMembers(store.read, id))
      shown.push(await viewServer(context, store.read, caller, member));
    return showBatch(row, shown);
  }

  /** The servers with their queues held, in order of id. Throws `server_not_found`, `server_protected`. */
  async function lockServers(tx: Tx, caller: Caller, ids: readonly number[]) {
    const held: { readonly server: ServerRow; readonly running: Task | undefined }[] = [];
    for (const id of [...new Set(ids)].sort((one, other) => one - other)) {
      const queue = await queueOf(tx, id);
      const server = await findServer(tx, caller.projectId, id);
      if (server === undefined) throw new ApiError("server_not_found", `There is no server ${id} in this project.`);
      requireUnprotected(server);
      held.push({ server, running: queue.find(({ name }) => name === flowName("Delete")) });
    }
    return held;
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
        // Planned before the group is there, so that most of what is refused leaves no gap in the ids.
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
        const shown = [];
        for (const { server } of made) shown.push(await viewServer(context, tx, caller, server));
        const told = shown.map(withoutSecrets);
        return {
          answer: dryRun ? showBatch({ ...batch, id: 0 }, shown.map(withoutIds)) : showBatch(batch, shown),
          changes: [
            { type: "batch.created", id: batch.id, parent: null, before: null, after: showBatch(batch, told) },
            ...told.map((server) => auditOnly("server.created", server.ID, null, server)),
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
        const { ID, ServerIDs } = meant(request);
        const batch = ID === undefined ? null : await getBatch(tx, caller, ID);
        const ids = batch === null ? ServerIDs : (await listMembers(tx, batch.id)).map(({ id }) => id);
        const held = await lockServers(tx, caller, ids);
        const tasks: Task[] = [];
        for (const { server, running } of held) {
          const task = (await servers.commands.delete(tx, server, by)) ?? running;
          if (task !== undefined) tasks.push(task);
        }
        if (batch !== null) await servers.commands.deleteBatch(tx, batch, by);
        const gone = held.map(({ server }) => auditOnly("server.deleted", server.id, { ID: server.id }, null));
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

async function getBatch(tx: Tx, { projectId }: Caller, id: number): Promise<BatchRow> {
  const row = await findBatch(tx, projectId, id);
  if (row === undefined) throw new ApiError("batch_not_found", `There is no server group ${id} in this project.`);
  return row;
}

interface Meant {
  readonly ID?: number;
  readonly ServerIDs?: readonly number[];
}

/** The body says which, or if it says nothing the query. Throws `validation_failed` for both or none. */
function meant({ body, query }: { readonly body: Meant; readonly query: Meant }) {
  const isSaid = ({ ID, ServerIDs }: Meant): boolean => ID !== undefined || (ServerIDs?.length ?? 0) > 0;
  const inBody = isSaid(body) || !isSaid(query);
  const { ID, ServerIDs = [] } = inBody ? body : query;
  const at = inBody ? "/" : "?";
  if (ID !== undefined && ServerIDs.length > 0)
    throw invalidFields([fieldError(`${at}ServerIDs`, "fields_conflict", "ServerIDs must not stand beside ID.")]);
  if (ID === undefined && ServerIDs.length === 0)
    throw invalidFields([fieldError(`${at}ID`, "field_required", "ID is required, or ServerIDs instead.")]);
  return { ID, ServerIDs };
}
