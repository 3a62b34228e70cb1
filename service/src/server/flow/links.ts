/** `AddNetwork`, `RemoveNetwork` and `EditNetworkBandwidth`: a server's places in networks, on or off. */

import type { Done, Wait } from "../../engine/flow.ts";
import { queue, type Task } from "../../engine/task.ts";
import { showAddress } from "../../network/model/plan.ts";
import type { LinkRow } from "../../network/table.ts";
import type { Tx } from "../../store/db.ts";
import { listLinkedNetworks } from "../links.ts";
import { flowName } from "../model/state.ts";
import { findAnyServer, type ServerRow } from "../table.ts";
import { type Cause, type Facts, type FlowContext } from "./context.ts";
import { serverFlow, startOn } from "./define.ts";
import { attempt, stepErrorOf } from "./error.ts";
import { joinNetwork, leaveNetworks, shapeLink } from "./network.ts";
import { activate, isServed, machineSpecFor, nicsOf, plugIn, waitForLink, waitForNetwork } from "./nics.ts";
import { changeServer, requireServer } from "./serverrow.ts";

export interface LinkInput {
  readonly link: number;
}
export interface ShapeInput extends LinkInput {
  readonly bandwidth: number;
  /** What it will have been when the turn comes. */
  readonly was: number;
}

/** Milliseconds between looks whether a guest has let go of a card. */
const look = 1000;

const isOn = (server: ServerRow): boolean => server.state === "Active" && server.is_on === 1;

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
          const place = await waitForLink(context, run);
          if ("wait" in place) return place;
          const server = await requireServer(context, subject);
          const isIn = nicsOf(facts.link);
          const machine = await machineSpecFor(context, server, isIn);
          const changes = await attempt("apply_failed", `Server ${subject} took no card`, () =>
            machines.apply(machine),
          );
          if (changes.nics === "nextStart")
            throw stepErrorOf("apply_failed", `Server ${subject} takes a card only with a restart.`, { final: true });
          const waiting = isOn(server) ? await plugIn(context, subject, isIn) : [];
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
            (place) => nicsOf()(place) && place.link.id !== input.link,
          );
          const refused = `Server ${subject} did not let go of the card`;
          const changes = await attempt("apply_failed", refused, () => machines.apply(machine));
          if (changes.nics !== "nextStart") return;
          const overdue = stepErrorOf("apply_failed", `${refused}: its guest does not answer. Switch it off first.`);
          return { wait: look, detail: "waits for the guest to let go", overdue };
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
        async do({ subject, input }): Promise<Done<Facts> | Wait> {
          await store.write((tx) => shapeLink(context, tx, subject, input.link, input.bandwidth));
          const place = (await listLinkedNetworks(store.read, subject)).find(({ link }) => link.id === input.link);
          const detail = `${input.bandwidth} Mbit/s`;
          return place === undefined || isServed(place.network) ? { detail } : waitForNetwork(subject, [place.network]);
        },
        save: async (tx, { subject, facts }) => void (await changeServer(context, tx, subject, {}, facts.by ?? null)),
        undo: ({ subject, input }) => store.write((tx) => shapeLink(context, tx, subject, input.link, input.was)),
      },
    ],
  });

  return { add, remove, shape };
}

type LinkFlows = ReturnType<typeof linkFlows>;

export interface AttachSpec {
  /** Held by `holdJoin`. */
  readonly network: number;
  readonly bandwidth?: number | undefined;
  readonly ip?: string | undefined;
}

/** The address is taken now. Throws as `reserveLink` does. */
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
  const [link] = await joinNetwork(context, tx, network, spec);
  await changeServer(context, tx, id, {}, by);
  const facts = { link: link.id };
  const done = { Reserve: `${showAddress(link.ip)} on network ${network}` };
  return startOn(context, tx, add, server, { link: link.id }, by, { facts, done });
}

export const queueRemoveNetwork = (
  context: FlowContext,
  tx: Tx,
  { remove }: LinkFlows,
  server: ServerRow,
  link: LinkRow,
  by: Cause | null,
): Promise<Task> => startOn(context, tx, remove, server, { link: link.id }, by);

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
