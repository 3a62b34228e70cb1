/**
 * The VM of a server and its NICs: builds the spec for the driver, attaches NICs to their networks, and waits until a network has applied
 * its desired state. All functions check the actual state first and may run twice.
 */
import type { WorkError } from "@brume/api/work.ts";
import type { MachineSpec } from "../../drivers/machine/interface.ts";
import type { Done, Run, Wait } from "../../engine/flow.ts";
import { requestReconcile } from "../../engine/task.ts";
import { updateLink } from "../../network/linktable.ts";
import { type NetworkRow } from "../../network/table.ts";
import type { Tx } from "../../store/db.ts";
import { type LinkedNetwork, listLinkedNetworks } from "../links.ts";
import { renderMachineSpec } from "../model/machinespec.ts";
import type { ServerRow } from "../table.ts";
import type { Facts, FlowContext } from "./context.ts";
import { effectiveServer } from "./effective.ts";
import { stepErrorOf } from "./error.ts";
import { publishNetworks } from "./network.ts";

/** Milliseconds until a step checks a network again; longer if the network reports an error. */
const pause = 50;
const pauseOnError = 5000;

/** Returns the filter of links whose NICs belong into the VM: all active ones, and the link `own` that the flow adds. */
export const nicsOf =
  (own?: number) =>
  ({ link }: LinkedNetwork): boolean =>
    link.state === "Active" || link.id === own;

/** Returns the spec of the VM as the row describes it, without the fields that queued rebuilds have already replaced. */
export async function machineSpecFor(
  context: FlowContext,
  row: ServerRow,
  isIncluded: (linked: LinkedNetwork) => boolean = nicsOf(),
): Promise<MachineSpec> {
  const { store, sealer, surroundings, hashOf } = context;
  const { server, keys } = await effectiveServer(store.read, row);
  const linked = (await listLinkedNetworks(store.read, server.id)).filter(isIncluded);
  const userData = server.user_data === null ? null : sealer.open(server.user_data);
  return renderMachineSpec(server, linked, { passwordHash: () => hashOf(server), userData, keys }, surroundings);
}

/** Requests a reconcile of each network that has not attached the server's NIC yet. Resolves to these networks. */
export async function plugIn(
  { store, networks }: FlowContext,
  id: number,
  isIncluded: (linked: LinkedNetwork) => boolean,
): Promise<NetworkRow[]> {
  const linked = (await listLinkedNetworks(store.read, id)).filter(isIncluded);
  const waiting: NetworkRow[] = [];
  for (const { link, network } of linked) {
    const port = await networks.live.portOf(network.id, link.id);
    // The device of an earlier boot stays attached until it is replaced, but has no carrier.
    if (port?.attached === true && port.carrier) continue;
    waiting.push(network);
    networks.apply.changes.touch(network.id, [link.id]);
  }
  if (waiting.length > 0)
    await store.write(async (tx) => {
      for (const network of waiting) await requestReconcile(tx, networks.apply, network.id);
    });
  return waiting;
}

/** Sets a link to `Active` after its NIC was added to the VM, and publishes the change of its network. */
export async function activate(context: FlowContext, tx: Tx, server: number, id: number): Promise<void> {
  const linked = (await listLinkedNetworks(tx, server)).find(({ link }) => link.id === id);
  if (linked === undefined || linked.link.state === "Active") return;
  await updateLink(tx, id, { state: "Active" });
  await publishNetworks(context, tx, [linked.network.id]);
}

/** Returns the result of a step that waits for networks; when the time of the step is over, it fails with `network_failed` and their errors. */
export function waitForNetwork(server: number, networks: readonly NetworkRow[]): Wait {
  const ids = networks.map(({ id }) => id).join(", ");
  const wait = networks.some(({ error }) => error !== null) ? pauseOnError : pause;
  const reasons = networks.flatMap(({ error }) => (error === null ? [] : [(JSON.parse(error) as WorkError).detail]));
  const text = [`Server ${server}: timed out waiting for network ${ids}.`, ...reasons].join(" ");
  const overdue = stepErrorOf("network_failed", text);
  return { wait, detail: `waits for network ${ids}`, overdue };
}

/**
 * True if the router has applied this generation of the network, or by default the current one. A flow waits for the generation of its own
 * change: while a hundred servers a second are created or deleted, the router never has the newest one.
 */
export const isServed = (network: NetworkRow, generation = network.generation): boolean =>
  network.state !== "New" && network.applied >= generation;

/** Waits until the network of the flow's link is applied: its address, anti-spoofing and firewall are then in force for the NIC. */
export async function waitForLink(
  { store }: FlowContext,
  { subject, facts }: Run<unknown, Facts>,
): Promise<Done<Facts> | Wait> {
  const linked = (await listLinkedNetworks(store.read, subject)).find(({ link }) => link.id === facts.link);
  if (linked === undefined)
    throw stepErrorOf("network_failed", `Server ${subject}: its link was removed.`, { final: true });
  return isServed(linked.network, facts.generation) ? {} : waitForNetwork(subject, [linked.network]);
}
