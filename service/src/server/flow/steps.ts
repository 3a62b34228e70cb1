/** Steps that several flows of servers have, and what they are made of. All are ensures: they look first and may run twice. */

import { setTimeout as sleep } from "node:timers/promises";
import { actionLimits } from "@brume/api/action.ts";
import type { MachineSpec } from "../../drivers/machine/interface.ts";
import type { Done, Run, Wait } from "../../engine/flow.ts";
import { requestReconcile } from "../../engine/task.ts";
import { showAddress } from "../../network/model/plan.ts";
import { type NetworkRow, updateLink } from "../../network/table.ts";
import type { Tx } from "../../store/db.ts";
import { type LinkedNetwork, listLinkedNetworks } from "../links.ts";
import { renderMachineSpec } from "../model/machinespec.ts";
import { findAnyServer, type ServerRow, updateServer } from "../table.ts";
import { type Cause, type Facts, type FlowContext, type ServerStep, stepErrorOf } from "./context.ts";
import { effectiveServer } from "./effective.ts";
import { emitServerEvent } from "./events.ts";
import { requestNetworks } from "./network.ts";

/** Milliseconds between looks at what others are doing: the network that takes a card in, the guest that boots. */
const soon = 50;
/** The same where something is wrong with it. */
const later = 5000;
const guestLook = 500;
/** Lines of the serial line that an error carries. */
const tail = 20;

export type ServerRun = Run<unknown, Facts>;

/** The row, which is there as long as a flow of its works. */
export async function mustFind({ store }: FlowContext, id: number): Promise<ServerRow> {
  const row = await findAnyServer(store.read, id);
  if (row === undefined) throw new Error(`server ${id} has no row`);
  return row;
}

/** Columns that a client can set: what changes them makes another version of the server. */
const settable: ReadonlySet<string> = new Set([
  "name",
  "labels",
  "is_protected",
  "is_backup_active",
  "backup_period",
  "cpu",
  "ram",
  "hdd",
  "is_high_performance",
  "hdd_type",
  "image_id",
  "user_data",
  "admin_password",
]);

/** A change of the row that callers see, or of what stands beside it (`{}`), and its event. Nothing for what is so already. */
export async function changeServer(
  tools: FlowContext,
  tx: Tx,
  id: number,
  change: Parameters<typeof updateServer>[2],
  by: Cause | null,
): Promise<ServerRow> {
  const before = await findAnyServer(tx, id);
  if (before === undefined) throw new Error(`server ${id} has no row`);
  const entries = Object.entries(change);
  if (entries.length > 0 && entries.every(([key, value]) => before[key as keyof ServerRow] === value)) return before;
  const moves = Object.keys(change).some((key) => settable.has(key));
  const row = await updateServer(tx, id, { ...change, version: before.version + Number(moves) });
  await emitServerEvent(tools, tx, row, "changed", by);
  return row;
}

/** Links whose cards are in the machine: those that some flow has brought in, and the one that this flow brings. */
export const nicsOf =
  (own?: number) =>
  ({ link }: LinkedNetwork): boolean =>
    link.state === "Active" || link.id === own;

/** The machine as the row says, less what waiting rebuilds have put there. */
export async function machineSpecFor(
  tools: FlowContext,
  row: ServerRow,
  isIn: (place: LinkedNetwork) => boolean = nicsOf(),
): Promise<MachineSpec> {
  const { store, sealer, surroundings, hashOf } = tools;
  const { server, keys } = await effectiveServer(store.read, row);
  const places = (await listLinkedNetworks(store.read, server.id)).filter(isIn);
  const userData = server.user_data === null ? null : sealer.open(server.user_data);
  return renderMachineSpec(server, places, { passwordHash: hashOf(server), userData, keys }, surroundings);
}

export const readTail = (tools: FlowContext, id: number): Promise<string | null> =>
  tools.consoles.readLog(id, { tail }).catch(() => null);

/** Networks that do not have the server's cards yet, after their reconcilers were asked to take them in. */
export async function plugIn(
  { store, networks }: FlowContext,
  id: number,
  isIn: (place: LinkedNetwork) => boolean,
): Promise<NetworkRow[]> {
  const places = (await listLinkedNetworks(store.read, id)).filter(isIn);
  const waiting: NetworkRow[] = [];
  for (const { link, network } of places) {
    const ports = (await networks.live.of(network.id))?.ports ?? [];
    // The card of an earlier start stays in its network until it is replaced, without a process that holds it.
    if (!ports.some((port) => port.id === link.id && port.attached && port.carrier)) waiting.push(network);
  }
  if (waiting.length > 0)
    await store.write(async (tx) => {
      for (const network of waiting) await requestReconcile(tx, networks.apply, network.id);
    });
  return waiting;
}

/** The link's card is in the machine, and its address is served. */
export async function activate(tools: FlowContext, tx: Tx, server: number, id: number): Promise<void> {
  const place = (await listLinkedNetworks(tx, server)).find(({ link }) => link.id === id);
  if (place === undefined || place.link.state === "Active") return;
  await updateLink(tx, id, { state: "Active" });
  await requestNetworks(tools, tx, [place.network.id]);
}

export function waitForNetwork(server: number, networks: readonly NetworkRow[]): Wait {
  const ids = networks.map(({ id }) => id).join(", ");
  const wait = networks.some(({ error }) => error !== null) ? later : soon;
  const overdue = stepErrorOf("network_failed", `Server ${server} waited in vain for network ${ids}.`);
  return { wait, detail: `waits for network ${ids}`, overdue };
}

/** What the rows say of these networks is in force. */
export const isServed = (network: NetworkRow): boolean =>
  network.state !== "New" && network.applied >= network.generation;

/** The network has the link's address, its lock and its firewall: from now on a card may come. */
export async function waitForQueueSlot(
  { store }: FlowContext,
  { subject, facts }: ServerRun,
): Promise<Done<Facts> | Wait> {
  const place = (await listLinkedNetworks(store.read, subject)).find(({ link }) => link.id === facts.link);
  if (place === undefined) throw stepErrorOf("network_failed", `Server ${subject} has lost its link.`, { final: true });
  return isServed(place.network) ? {} : waitForNetwork(subject, [place.network]);
}

/** Whether the guest went when it was asked to, within so many seconds. */
export async function askToStop(
  tools: FlowContext,
  id: number,
  seconds: number,
  signal: AbortSignal,
): Promise<boolean> {
  const over = new AbortController();
  const late = sleep(seconds * 1000, undefined, { signal: over.signal, ref: false }).then(
    () => over.abort(),
    () => {},
  );
  try {
    const gone = await tools.machines.ensureStopped(id, "ask", AbortSignal.any([over.signal, signal]));
    signal.throwIfAborted();
    return gone;
  } finally {
    over.abort();
    await late;
  }
}

/** `WaitFor`. The server stays as it is when its guest is not ready in time. */
export function guestSteps<Input>(tools: FlowContext): [ServerStep<Input>, ServerStep<Input>] {
  const common = { time: actionLimits.waitFor * 1000, keeps: true } as const;
  /** Whether the guest has reported the end of its boot; `code` is what it means if it never does. */
  async function look(subject: number, code: "ssh_not_ready" | "guest_not_ready"): Promise<Done<Facts> | Wait> {
    const status = (await tools.machineStatus.look()).machines.find(({ id }) => id === subject);
    if (status?.stage === "ready") return { detail: "ready" };
    const detail = `Server ${subject} did not report the end of its boot in ${actionLimits.waitFor} s.`;
    const overdue = stepErrorOf(code, detail, { log: await readTail(tools, subject) });
    return { wait: guestLook, detail: status?.stage ?? "off", overdue };
  }
  return [
    {
      name: "Ssh",
      ...common,
      async do({ subject }): Promise<Done<Facts> | Wait> {
        const places = await listLinkedNetworks(tools.store.read, subject);
        if (places.length === 0)
          throw stepErrorOf("ssh_not_ready", `Server ${subject} has no address to ask.`, { final: true });
        const asked = places.find(({ network }) => network.kind !== "private");
        // Nobody of ours is in a private network who could ask: there the guest's own report counts, which comes after its SSH is up.
        if (asked === undefined) return look(subject, "ssh_not_ready");
        const address = showAddress(asked.link.ip);
        if (await tools.greetsSsh(asked.network.id, address)) return { detail: `${address} greets` };
        const detail = `Port 22 of ${address} (server ${subject}) sent no SSH greeting in ${actionLimits.waitFor} s.`;
        const overdue = stepErrorOf("ssh_not_ready", detail, { log: await readTail(tools, subject) });
        return { wait: guestLook, detail: `${address} is silent`, overdue };
      },
    },
    {
      name: "Guest",
      ...common,
      do: ({ subject }) => look(subject, "guest_not_ready"),
    },
  ];
}
