/** Actions of servers: order one, list them, read one, cancel one. */

import type { Action, ActionInput } from "@brume/api/action.ts";
import { maxId } from "@brume/api/common.ts";
import { ApiError } from "../base/error.ts";
import { find, list, type Task } from "../engine/task.ts";
import type { Caller, ChangeResult, Handlers } from "../http/handler.ts";
import { takePage } from "../http/list.ts";
import { stateMatcher } from "../http/read/selector.ts";
import { findNetwork, listLinksOfServer, type NetworkRow } from "../network/table.ts";
import type { Reader, Tx } from "../store/db.ts";
import { actionOf, awaitAction, causeOf, getServer, queueOf, type ServerContext } from "./context.ts";
import type { Cause } from "./flow/context.ts";
import { errorFor } from "./flow/error.ts";
import { powerTypes } from "./flow/power.ts";
import { listLinkedNetworks } from "./links.ts";
import { checkActionInput, chooseLink, requireAttachable } from "./model/actioninput.ts";
import { serverTag, showAction } from "./model/show.ts";
import { requireCancelable, requirePowerOff, requireRequest } from "./model/state.ts";
import type { ServerRow } from "./table.ts";

type Names = "startAction" | "listActions" | "readAction" | "cancelAction";

export function actionRoutes(context: ServerContext): Handlers<Names> {
  const { servers } = context;

  /** Nothing is announced here: an action tells of itself. */
  function answer(task: Task, dryRun: boolean, before: Action | null = null): ChangeResult<Action> {
    const action = actionOf(task);
    return {
      answer: dryRun && before === null ? { ...action, ID: 0 } : action,
      changes: [
        {
          type: before === null ? "action.created" : "action.changed",
          id: task.id,
          parent: task.subject.id,
          before,
          after: action,
          silent: true,
        },
      ],
      refresh: (ms) => awaitAction(context, task, ms),
    };
  }

  /** Whatever waits for a machine that does not respond is not waited for: its power goes at once. */
  const cutThen =
    (id: number, { refresh: settle }: ChangeResult<Action>) =>
    async (ms: number) => {
      if (servers.machineStatus.of(id)?.trouble === "NotResponding")
        context.machines
          .ensureStopped(id, "cut")
          .catch((error: unknown) => context.log("warn", "A machine was not cut at once.", { server: id, error }));
      return settle?.(ms);
    };

  async function order(tx: Tx, caller: Caller, server: ServerRow, body: ActionInput, by: Cause): Promise<Task> {
    const power = powerTypes.find((type) => type === body.Type);
    if (power !== undefined) return servers.commands.power(tx, server, { ...body, Type: power }, by);
    if (body.Type === "AddNetwork") {
      const id = body.NetworkID ?? 0;
      const present = (await listLinkedNetworks(tx, server.id)).map(({ network }) => network);
      const wanted = { id, network: await findJoinable(tx, caller, server, id) };
      const network = requireAttachable(wanted, server, present);
      const spec = { network: network.id, bandwidth: body.Bandwidth, ip: body.IP || undefined };
      return servers.commands.addNetwork(tx, server, spec, by);
    }
    const link = chooseLink(body, server.id, await listLinksOfServer(tx, server.id));
    return body.Type === "RemoveNetwork"
      ? servers.commands.removeNetwork(tx, server, link, by)
      : servers.commands.bandwidth(tx, server, link, body.Bandwidth ?? link.bandwidth, by);
  }

  return {
    startAction: {
      check: checkActionInput,
      async change(request, tx) {
        const { params, body, caller, dryRun, expect } = request;
        const before = await queueOf(tx, params.id);
        const server = await getServer(tx, caller, params.id);
        expect(serverTag(server));
        if (body.Type === "PowerOff") requirePowerOff(server, before, body.OnBusy);
        else requireRequest(server, before, body.Type, body.OnBusy);
        const outcome = answer(await order(tx, caller, server, body, causeOf(request)), dryRun);
        return body.Type === "PowerOff" && !dryRun ? { ...outcome, refresh: cutThen(server.id, outcome) } : outcome;
      },
    },
    listActions: {
      async list({ params, query, caller }, db) {
        await getServer(db, caller, params.id);
        const tasks = await list(db, { kind: "server", id: params.id }, maxId);
        const isType = query.type === undefined ? () => true : stateMatcher(query.type);
        const actions = tasks.flatMap((task) => showAction(task) ?? []).filter(({ Type }) => isType(Type));
        // Pages go up by id, and the newest comes first.
        return takePage(actions, query, { id: ({ ID }) => maxId - ID, state: ({ State }) => State });
      },
    },
    readAction: {
      async read({ params, caller }, db) {
        await getServer(db, caller, params.id);
        return { answer: actionOf(await getAction(db, params.id, params.actionID)) };
      },
    },
    cancelAction: {
      async change(request, tx) {
        const { params, caller, dryRun, expect } = request;
        const { id, actionID } = params;
        await queueOf(tx, id);
        const server = await getServer(tx, caller, id);
        const task = await getAction(tx, id, actionID);
        expect(serverTag(server));
        requireCancelable(task);
        const why = errorFor("superseded", `It was canceled by token ${caller.tokenId}.`);
        await servers.commands.cancel(tx, id, why, { task: actionID });
        return answer(await getAction(tx, id, actionID), dryRun, actionOf(task));
      },
    },
  };
}

/** Throws `action_not_found`, also for one of another server. */
async function getAction(db: Reader, server: number, id: number): Promise<Task> {
  const task = await find(db, id);
  if (task?.subject.kind === "server" && task.subject.id === server && showAction(task) !== null) return task;
  throw new ApiError("action_not_found", `There is no action ${id} of server ${server}.`);
}

/** A network of the project, or the shared one of where the server is. */
async function findJoinable(
  db: Reader,
  { projectId }: Caller,
  { location }: ServerRow,
  id: number,
): Promise<NetworkRow | undefined> {
  const network = await findNetwork(db, id);
  const isShared = network?.kind === "shared" && network.location === location;
  return isShared || network?.project_id === projectId ? network : undefined;
}
