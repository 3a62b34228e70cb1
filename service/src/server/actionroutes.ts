/** Actions of servers: order one, list them, read one, cancel one. */
import type { Action, Order } from "@brume/api/action.ts";
import { maxId } from "@brume/api/common.ts";
import { Fault } from "../base/fault.ts";
import { find, list, type Task } from "../engine/task.ts";
import type { Caller, Handlers, Outcome } from "../http/handler.ts";
import { takePage } from "../http/list.ts";
import { stateMatcher } from "../http/read/selector.ts";
import { findNetwork, listLinksOfServer, type NetworkRow } from "../network/table.ts";
import type { Reader, Tx } from "../store/db.ts";
import { actionOf, causeOf, type Desk, getServer, queueOf, settleAction } from "./desk.ts";
import { powerTypes } from "./flow/power.ts";
import { type Cause, errorFor } from "./flow/tools.ts";
import { checkOrder, chooseLink, holdJoin } from "./order.ts";
import { listPlaces } from "./place.ts";
import { serverTag, showAction } from "./show.ts";
import { holdAsk, holdCancel, holdPowerOff } from "./state.ts";
import type { ServerRow } from "./table.ts";

type Names = "startAction" | "listActions" | "readAction" | "cancelAction";

export function actionRoutes(desk: Desk): Handlers<Names> {
  const { servers } = desk;

  /** Nothing is announced here: an action tells of itself. */
  function answer(task: Task, dryRun: boolean, before: Action | null = null): Outcome<Action> {
    const action = actionOf(task);
    return {
      answer: dryRun && before === null ? { ...action, ID: 0 } : action,
      happenings: [
        {
          type: before === null ? "action.created" : "action.changed",
          id: task.id,
          parent: task.subject.id,
          before,
          after: action,
          silent: true,
        },
      ],
      settle: (ms) => settleAction(desk, task, ms),
    };
  }

  /** Whatever waits for a machine that does not respond is not waited for: its power goes at once. */
  const cutThen =
    (id: number, { settle }: Outcome<Action>) =>
    async (ms: number) => {
      if (servers.sight.of(id)?.trouble === "NotResponding")
        desk.machines
          .ensureStopped(id, "cut")
          .catch((error: unknown) => desk.log("warn", "A machine was not cut at once.", { server: id, error }));
      return settle?.(ms);
    };

  async function order(tx: Tx, caller: Caller, server: ServerRow, body: Order, by: Cause): Promise<Task> {
    const power = powerTypes.find((type) => type === body.Type);
    if (power !== undefined) return servers.order.power(tx, server, { ...body, Type: power }, by);
    if (body.Type === "AddNetwork") {
      const id = body.NetworkID ?? 0;
      const present = (await listPlaces(tx, server.id)).map(({ network }) => network);
      const wanted = { id, network: await findJoinable(tx, caller, server, id) };
      const network = holdJoin(wanted, server, present);
      const wish = { network: network.id, bandwidth: body.Bandwidth, ip: body.IP || undefined };
      return servers.order.addNetwork(tx, server, wish, by);
    }
    const link = chooseLink(body, server.id, await listLinksOfServer(tx, server.id));
    return body.Type === "RemoveNetwork"
      ? servers.order.removeNetwork(tx, server, link, by)
      : servers.order.bandwidth(tx, server, link, body.Bandwidth ?? link.bandwidth, by);
  }

  return {
    startAction: {
      check: checkOrder,
      async change(request, tx) {
        const { params, body, caller, dryRun, expect } = request;
        const before = await queueOf(tx, params.id);
        const server = await getServer(tx, caller, params.id);
        expect(serverTag(server));
        if (body.Type === "PowerOff") holdPowerOff(server, before, body.OnBusy);
        else holdAsk(server, before, body.Type, body.OnBusy);
        const outcome = answer(await order(tx, caller, server, body, causeOf(request)), dryRun);
        return body.Type === "PowerOff" && !dryRun ? { ...outcome, settle: cutThen(server.id, outcome) } : outcome;
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
        holdCancel(task);
        const why = errorFor("superseded", `It was canceled by token ${caller.tokenId}.`);
        await servers.order.cancel(tx, id, why, { task: actionID });
        return answer(await getAction(tx, id, actionID), dryRun, actionOf(task));
      },
    },
  };
}

/** Throws `action_not_found`, also for one of another server. */
async function getAction(db: Reader, server: number, id: number): Promise<Task> {
  const task = await find(db, id);
  if (task?.subject.kind === "server" && task.subject.id === server && showAction(task) !== null) return task;
  throw new Fault("action_not_found", `There is no action ${id} of server ${server}.`);
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
