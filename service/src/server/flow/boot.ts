/**
 * Starts and stops VMs. The host boots only a few VMs at a time, so a step that starts one may wait in the boot queue. That wait does not
 * count against the time of the step.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { MachineSpec } from "../../drivers/machine/interface.ts";
import type { Done, Wait } from "../../engine/flow.ts";
import { findAnyServer, type ServerRow } from "../table.ts";
import type { Facts, FlowContext, ServerStep } from "./context.ts";
import { attempt, stepErrorOf } from "./error.ts";
import { readTail } from "./guest.ts";
import { activate, machineSpecFor, nicsOf, plugIn, waitForNetwork } from "./nics.ts";
import { changeServer, requireServer } from "./serverrow.ts";

/** Longest wait in the boot queue, in ms: enough for a host that starts hundreds of servers. */
const longestQueue = 4 * 3_600_000;

/** Returns the ms until the next check, by the number of VMs that boot before this one. */
const pauseBehind = (before: number): number => Math.min(15_000, 1000 * (1 + before));

/** Starts the VM. Resolves to null when it runs, else to the wait for its place in the boot queue. Throws `boot_failed`. */
export async function ensureRunning(context: FlowContext, machine: MachineSpec): Promise<Wait | null> {
  const { id } = machine;
  const before = await attempt(
    "boot_failed",
    `Server ${id} did not start`,
    () => context.machines.ensureRunning(machine),
    () => readTail(context, id),
  );
  if (before === null) return null;
  const overdue = stepErrorOf(
    "boot_failed",
    `Server ${id} waited ${longestQueue / 3_600_000} hours in the boot queue. Start fewer servers at once, then power it on.`,
  );
  return {
    wait: pauseBehind(before),
    detail: `waits in the boot queue, ${before} before it`,
    overdue,
    turn: longestQueue,
  };
}

/** Ends the VM at once. Throws `apply_failed`. */
export async function cutPower({ machines }: FlowContext, id: number): Promise<void> {
  await attempt("apply_failed", `Server ${id} could not be switched off`, () => machines.ensureStopped(id, "cut"));
}

/** Removes the VM and its disks. Throws `apply_failed`. */
export const removeMachine = ({ machines }: FlowContext, id: number): Promise<void> =>
  attempt("apply_failed", `Server ${id} could not be removed from the host`, () => machines.remove(id));

/** Starts or stops the VM as the row requires. Flows call it when they are undone. `raise`: added to the boot number of the row. */
export async function ensurePower(context: FlowContext, id: number, signal: AbortSignal, raise = 0): Promise<void> {
  const server = await requireServer(context, id);
  if (server.state !== "Active" || server.is_on === 0) {
    await cutPower(context, id);
    return;
  }
  const machine = await machineSpecFor(context, { ...server, boot: server.boot + raise });
  for (;;) {
    const before = await context.machines.ensureRunning(machine);
    if (before === null) break;
    await sleep(pauseBehind(before), undefined, { signal });
  }
  await plugIn(context, id, nicsOf());
}

/**
 * Undoes a reset. A VM that still runs, or runs again, continues with its boot number. One that the reset has ended is started with the next
 * number, which `bootAfterReset` then stores: the exit of a VM with another number than the row's is ignored.
 */
async function undoReset(context: FlowContext, id: number, signal: AbortSignal): Promise<void> {
  const observe = async () => (await context.machineStatus.observeServers([id])).machines[0];
  const isOff = ((await observe())?.power ?? "off") === "off";
  await ensurePower(context, id, signal, isOff ? 1 : 0);
  await observe();
}

/** Returns the boot number to store after `undoReset`: that of the running VM, else the next one, as the last may have been used. */
function bootAfterReset({ machineStatus }: FlowContext, { id, boot }: ServerRow): number {
  const status = machineStatus.of(id);
  return status !== null && status.power !== "off" && status.boot >= boot ? status.boot : boot + 1;
}

interface BootOptions {
  readonly name?: "Boot" | "Start" | "Reset";
  /** `new`: a running VM is restarted with a new boot number; `off`: a running VM continues. */
  readonly from: "new" | "off";
}

/**
 * Returns the step that starts the VM and waits until its NICs are attached. `Start` restores the power after a resize: it does nothing
 * if the server was off before. `Reset` is undone by restoring the power, the others by cutting it.
 */
export function bootStep<Input>(context: FlowContext, { name = "Boot", from }: BootOptions): ServerStep<Input> {
  return {
    name,
    async do({ subject, facts }): Promise<Done<Facts> | Wait> {
      const server = await requireServer(context, subject);
      const wasOn = server.is_on === 1;
      if (name === "Start" && !wasOn) return { detail: "the server was off", facts: { wasOn } };
      // The boot number is stored with the record of the step, so a retry does not restart the VM again.
      const boot = from === "new" || !wasOn ? server.boot + 1 : server.boot;
      const isIncluded = nicsOf(facts.link);
      const queued = await ensureRunning(context, await machineSpecFor(context, { ...server, boot }, isIncluded));
      if (queued !== null) return queued;
      const waiting = await plugIn(context, subject, isIncluded);
      if (waiting.length > 0) return waitForNetwork(subject, waiting);
      return { facts: { boot, wasOn }, detail: "power on" };
    },
    async save(tx, { subject, facts }) {
      if (facts.boot === undefined) return;
      if (facts.link !== undefined) await activate(context, tx, subject, facts.link);
      // A successful start clears the error of an earlier crash.
      await changeServer(context, tx, subject, { boot: facts.boot, is_on: 1, error: null }, facts.by ?? null);
    },
    ...(name === "Reset"
      ? { undo: ({ subject, signal }) => undoReset(context, subject, signal) }
      : { undo: ({ subject }) => cutPower(context, subject) }),
    async unsave(tx, { subject, facts }) {
      const server = await findAnyServer(tx, subject);
      if (server === undefined) return;
      // The boot number may have been used by a VM, so it is not used again.
      const boot = name === "Reset" ? bootAfterReset(context, server) : server.boot + 1;
      const is_on = facts.wasOn === undefined ? server.is_on : Number(facts.wasOn);
      await changeServer(context, tx, subject, { boot, is_on }, facts.by ?? null);
    },
  };
}

/** Returns the step that cuts the power. `off`: the server stays off; `moment`: the desired state stays on. */
export function stopStep<Input>(context: FlowContext, duration: "off" | "moment"): ServerStep<Input> {
  return {
    name: "Stop",
    async do({ subject }) {
      await cutPower(context, subject);
      return { detail: "power off" };
    },
    ...(duration === "off" && {
      save: async (tx, { subject, facts }) =>
        void (await changeServer(context, tx, subject, { is_on: 0 }, facts.by ?? null)),
    }),
    undo: ({ subject, signal }) => ensurePower(context, subject, signal),
  };
}
