/** Flows `AddNetwork`, `RemoveNetwork` and `EditNetworkBandwidth`: they change the links of a server, whether it is on or off. */

import type { Done, Wait } from "../../engine/flow.ts";
import { queue, type Task } from "../../engine/task.ts";
import type { LinkRow } from "../../network/linktable.ts";
import { showAddress } from "../../network/model/plan.ts";
import type { Tx } from "../../store/db.ts";
import { listLinkedNetworks } from "../links.ts";
import { flowName } from "../model/state.ts";
import { findAnyServer, type ServerRow } from "../table.ts";
import type { Cause, Facts, FlowContext } from "./context.ts";
import { serverFlow, startOn } from "./define.ts";
import { attempt, stepErrorOf } from "./error.ts";
import { joinNetwork, leaveNetworks, shapeLink } from "./network.ts";
import { activate, isServed, machineSpecFor, nicsOf, plugIn, waitForLink, waitForNetwork } from "./nics.ts";
import { changeServer, requireServer } from "./serverrow.ts";

/** Input of `AddNetwork` and `RemoveNetwork`: the id of the link. */
export interface LinkInput {
  readonly link: number;
}
/** Input of `EditNetworkBandwidth`. */
export interface ShapeInput extends LinkInput {
  /** Mbit/s. */
  readonly bandwidth: number;
  /** Mbit/s before this action, when all earlier ones have ended. */
  readonly was: number;
}

/** Milliseconds between checks whether a guest has released a NIC. */
const pause = 1000;

const isOn = (server: ServerRow): boolean => server.state === "Active" && server.is_on === 1;

/** Returns the three flows. */
export function linkFlows(context: FlowContext) {
  const { store, machines } = context;

  const add = serverFlow<LinkInput>(context, {
    name: flowName("AddNetwork"),
    steps: [
      { name: "Reserve" },
      {
        name: "Plug",
        async do(run): Promise<Done<Facts> | Wait> {
          const { subject, facts } = run;
          const network = await waitForLink(context, run);
          if ("wait" in network) return network;
          const server = await requireServer(context, subject);
          const isIncluded = nicsOf(facts.link);
          const machine = await machineSpecFor(context, server, isIncluded);
          const changes = await attempt("apply_failed", `Server ${subject}: could not add the NIC`, () =>
            machines.apply(machine),
          );
          if (changes.nics === "nextStart")
            throw stepErrorOf("apply_failed", `Server ${subject}: a NIC can only be added with a restart.`, {
              final: true,
            });
          const waiting = isOn(server) ? await plugIn(context, subject, isIncluded) : [];
          return waiting.length > 0 ? waitForNetwork(subject, waiting) : {};
        },
        async save(tx, { subject, facts }) {
          if (facts.link === undefined) return;
          await activate(context, tx, subject, facts.link);
          await changeServer(context, tx, subject, {}, facts.by ?? null);
        },
        undo: async ({ subject, facts }) => {
          const server = await requireServer(context, subject);
          await machines.apply(
            await machineSpecFor(context, server, ({ link }) => link.state === "Active" && link.id !== facts.link),
          );
        },
      },
    ],
    async ended(tx, { subject, input, facts }, ending) {
      if (ending === "Completed" || (await findAnyServer(tx, subject)) === undefined) return;
      await leaveNetworks(context, tx, subject, input.link);
      await changeServer(context, tx, subject, {}, facts.by ?? null);
    },
  });

  const remove = serverFlow<LinkInput>(context, {
    name: flowName("RemoveNetwork"),
    steps: [
      {
        name: "Unplug",
        async do({ subject, input }): Promise<Wait | void> {
          const server = await requireServer(context, subject);
          const machine = await machineSpecFor(
            context,
            server,
            (linked) => nicsOf()(linked) && linked.link.id !== input.link,
          );
          const failure = `Server ${subject}: could not remove the NIC`;
          const changes = await attempt("apply_failed", failure, () => machines.apply(machine));
          if (changes.nics !== "nextStart") return;
          const overdue = stepErrorOf(
            "apply_failed",
            `${failure}: the guest does not respond. Switch the server off first.`,
          );
          return { wait: pause, detail: "waits for the guest to release the NIC", overdue };
        },
        async undo({ subject, signal }) {
          const server = await requireServer(context, subject);
          signal.throwIfAborted();
          await machines.apply(await machineSpecFor(context, server));
          if (isOn(server)) await plugIn(context, subject, nicsOf());
        },
      },
      {
        name: "Release",
        async save(tx, { subject, input, facts }) {
          await leaveNetworks(context, tx, subject, input.link);
          await changeServer(context, tx, subject, {}, facts.by ?? null);
        },
      },
    ],
  });

  const shape = serverFlow<ShapeInput>(context, {
    name: flowName("EditNetworkBandwidth"),
    steps: [
      {
        name: "Shape",
        async do({ subject, input, facts }): Promise<Done<Facts> | Wait<Facts>> {
          const [raised] = await store.write((tx) => shapeLink(context, tx, subject, input.link, input.bandwidth));
          const generation = raised?.generation ?? facts.generation;
          const linked = (await listLinkedNetworks(store.read, subject)).find(({ link }) => link.id === input.link);
          const detail = `${input.bandwidth} Mbit/s`;
          return linked === undefined || isServed(linked.network, generation)
            ? { detail }
            : {
                ...waitForNetwork(subject, [linked.network]),
                ...(generation !== undefined && { facts: { generation } }),
              };
        },
        save: async (tx, { subject, facts }) => void (await changeServer(context, tx, subject, {}, facts.by ?? null)),
        undo: async ({ subject, input }) =>
          void (await store.write((tx) => shapeLink(context, tx, subject, input.link, input.was))),
      },
    ],
  });

  return { add, remove, shape };
}

type LinkFlows = ReturnType<typeof linkFlows>;

/** The new link of `AddNetwork`. */
export interface AttachSpec {
  /** Id of a network that `requireAttachable` has accepted. */
  readonly network: number;
  readonly bandwidth?: number | undefined;
  readonly ip?: string | undefined;
}

/** Reserves the address and inserts the link now; queues the rest. Throws as `reserveLink` does. */
export async function queueAddNetwork(
  context: FlowContext,
  tx: Tx,
  { add }: LinkFlows,
  server: ServerRow,
  { network, bandwidth, ip }: AttachSpec,
  by: Cause | null,
): Promise<Task> {
  const { id, host_name: hostName } = server;
  const spec = { server: id, hostName, ip, bandwidth, now: context.clock.now(), pointer: "/IP" };
  const [link, { generation }] = await joinNetwork(context, tx, network, spec);
  await changeServer(context, tx, id, {}, by);
  const facts = { link: link.id, generation };
  const done = { Reserve: `${showAddress(link.ip)} on network ${network}` };
  return startOn(context, tx, add, server, { link: link.id }, by, { facts, done });
}

/** Queues the removal of a link. */
export const queueRemoveNetwork = (
  context: FlowContext,
  tx: Tx,
  { remove }: LinkFlows,
  server: ServerRow,
  link: LinkRow,
  by: Cause | null,
): Promise<Task> => startOn(context, tx, remove, server, { link: link.id }, by);

/** Queues a change of the bandwidth of a link, in Mbit/s. Undone, it restores the value that the queued changes before it lead to. */
export async function queueBandwidth(
  context: FlowContext,
  tx: Tx,
  { shape }: LinkFlows,
  server: ServerRow,
  link: LinkRow,
  bandwidth: number,
  by: Cause | null,
): Promise<Task> {
  const before = await queue(tx, { kind: "server", id: server.id });
  const earlier = before
    .filter(({ name }) => name === shape.name)
    .map(({ input }) => input as ShapeInput)
    .findLast((input) => input.link === link.id);
  const was = earlier?.bandwidth ?? link.bandwidth;
  return startOn(context, tx, shape, server, { link: link.id, bandwidth, was }, by);
}
