/** Handlers that start, list, read and cancel actions of servers. */

import type { Action, ActionInput } from "@brume/api/action.ts";
import { maxId } from "@brume/api/common.ts";
import { ApiError } from "../base/error.ts";
import { find, list, type Task } from "../engine/task.ts";
import type { Caller, ChangeResult, Handlers } from "../http/handler.ts";
import { takePage } from "../http/list.ts";
import { stateMatcher } from "../http/read/selector.ts";
import { listLinksOfServer } from "../network/linktable.ts";
import { findNetwork, type NetworkRow } from "../network/table.ts";
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

  /** Returns the response to a change of an action. Its flow appends the event, so the change is only audited. */
  function respond(task: Task, dryRun: boolean, before: Action | null = null): ChangeResult<Action> {
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

  /** Cuts the power before the queue is reached if the VM does not respond: a running action could wait for it for minutes. */
  const cutFirst =
    (id: number, { refresh }: ChangeResult<Action>) =>
    async (ms: number) => {
      if (servers.machineStatus.of(id)?.trouble === "NotResponding")
        context.machines.ensureStopped(id, "cut").catch((error: unknown) =>
          context.log("warn", "Could not cut the power of a VM at once; its queued action will do it.", {
            server: id,
            error,
          }),
        );
      return refresh?.(ms);
    };

  /** Validates the link or network of the body and queues the action. */
  async function queueAction(tx: Tx, caller: Caller, server: ServerRow, body: ActionInput, by: Cause): Promise<Task> {
    const power = powerTypes.find((type) => type === body.Type);
    if (power !== undefined) return servers.commands.power(tx, server, { ...body, Type: power }, by);
    if (body.Type === "AddNetwork") {
      const id = body.NetworkID ?? 0;
      const present = (await listLinkedNetworks(tx, server.id)).map(({ network }) => network);
      const wanted = { id, network: await findUsableNetwork(tx, caller, server, id) };
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
        const outcome = respond(await queueAction(tx, caller, server, body, causeOf(request)), dryRun);
        return body.Type === "PowerOff" && !dryRun ? { ...outcome, refresh: cutFirst(server.id, outcome) } : outcome;
      },
    },
    listActions: {
      async list({ params, query, caller }, db) {
        await getServer(db, caller, params.id);
        const tasks = await list(db, { kind: "server", id: params.id }, maxId);
        const isType = query.type === undefined ? () => true : stateMatcher(query.type);
        const actions = tasks.flatMap((task) => showAction(task) ?? []).filter(({ Type }) => isType(Type));
        // Pages are in ascending order of id, so the id is reversed to list the newest first.
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
        return respond(await getAction(tx, id, actionID), dryRun, actionOf(task));
      },
    },
  };
}

/** Returns an action of the server. Throws `action_not_found`. */
async function getAction(db: Reader, server: number, id: number): Promise<Task> {
  const task = await find(db, id);
  if (task?.subject.kind === "server" && task.subject.id === server && showAction(task) !== null) return task;
  throw new ApiError("action_not_found", `Server ${server} has no action ${id}.`);
}

/** Returns the network if it belongs to the project or is the shared network of the server's location. */
async function findUsableNetwork(
  db: Reader,
  { projectId }: Caller,
  { location }: ServerRow,
  id: number,
): Promise<NetworkRow | undefined> {
  const network = await findNetwork(db, id);
  const isShared = network?.kind === "shared" && network.location === location;
  return isShared || network?.project_id === projectId ? network : undefined;
}
