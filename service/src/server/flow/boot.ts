/**
 * Starting and stopping machines. Only so many boot at once, so a step that starts one may have to wait for its turn, which is no
 * trouble and takes nothing of its time: an hour in the queue is as good as none.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { MachineSpec } from "../../drivers/machine/interface.ts";
import type { Done, Wait } from "../../engine/flow.ts";
import { findAnyServer } from "../table.ts";
import { type Facts, type FlowContext, type ServerStep } from "./context.ts";
import { attempt, stepErrorOf } from "./error.ts";
import { readTail } from "./guest.ts";
import { activate, machineSpecFor, nicsOf, plugIn, waitForNetwork } from "./nics.ts";
import { changeServer, requireServer } from "./serverrow.ts";

/** Of a host that starts hundreds of servers. */
const longestQueue = 4 * 3_600_000;

/** The more are before it, the less often it looks. */
const pauseBehind = (before: number): number => Math.min(15_000, 1000 * (1 + before));

/** Null: it runs. */
export async function ensureRunning(context: FlowContext, machine: MachineSpec): Promise<Wait | null> {
  const { id } = machine;
  const before = await attempt(
    "boot_failed",
    `Server ${id} did not start`,
    () => context.machines.ensureRunning(machine),
    () => readTail(context, id),
  );
  if (before === null) return null;
  const overdue = stepErrorOf("boot_failed", `Server ${id} waited in vain for its turn to boot.`);
  return {
    wait: pauseBehind(before),
    detail: `waits for its turn to boot, ${before} before it`,
    overdue,
    turn: longestQueue,
  };
}

/** The machine as the row says: on or off. What flows fall back to when they are undone. */
export async function ensurePower(context: FlowContext, id: number, signal: AbortSignal): Promise<void> {
  const server = await requireServer(context, id);
  if (server.state !== "Active" || server.is_on === 0) {
    await context.machines.ensureStopped(id, "cut");
    return;
  }
  const machine = await machineSpecFor(context, server);
  for (;;) {
    const before = await context.machines.ensureRunning(machine);
    if (before === null) break;
    await sleep(pauseBehind(before), undefined, { signal });
  }
  await plugIn(context, id, nicsOf());
}

interface BootOptions {
  readonly name?: "Boot" | "Start" | "Reset";
  /** `new`: whatever runs is of before; `off`: what is on already goes on. */
  readonly from: "new" | "off";
}

/**
 * The machine runs, with its cards in their networks. `Start` gives back what a resize took and leaves alone what was off.
 */
export function bootStep<Input>(context: FlowContext, { name = "Boot", from }: BootOptions): ServerStep<Input> {
  return {
    name,
    async do({ subject, facts }): Promise<Done<Facts> | Wait> {
      const server = await requireServer(context, subject);
      const wasOn = server.is_on === 1;
      if (name === "Start" && !wasOn) return { detail: "it was off", facts: { wasOn } };
      // The number is stored with the record of the step, so a second try starts what the first has started.
      const boot = from === "new" || !wasOn ? server.boot + 1 : server.boot;
      const isIn = nicsOf(facts.link);
      const queued = await ensureRunning(context, await machineSpecFor(context, { ...server, boot }, isIn));
      if (queued !== null) return queued;
      const waiting = await plugIn(context, subject, isIn);
      if (waiting.length > 0) return waitForNetwork(subject, waiting);
      return { facts: { boot, wasOn }, detail: "power on" };
    },
    async save(tx, { subject, facts }) {
      if (facts.boot === undefined) return;
      if (facts.link !== undefined) await activate(context, tx, subject, facts.link);
      // What went wrong before this start is over.
      await changeServer(context, tx, subject, { boot: facts.boot, is_on: 1, error: null }, facts.by ?? null);
    },
    ...(name === "Reset"
      ? { undo: ({ subject, signal }) => ensurePower(context, subject, signal) }
      : { undo: async ({ subject }) => void (await context.machines.ensureStopped(subject, "cut")) }),
    async unsave(tx, { subject, facts }) {
      const server = await findAnyServer(tx, subject);
      if (server === undefined) return;
      // A number that something may have run as is used up.
      const is_on = facts.wasOn === undefined ? server.is_on : Number(facts.wasOn);
      await changeServer(context, tx, subject, { boot: server.boot + 1, is_on }, facts.by ?? null);
    },
  };
}

/** The power is cut. `wish`: it stays off; else it is off for a moment, and the row still wants it on. */
export function stopStep<Input>(context: FlowContext, spec: "off" | "moment"): ServerStep<Input> {
  return {
    name: "Stop",
    async do({ subject }) {
      await context.machines.ensureStopped(subject, "cut");
      return { detail: "power off" };
    },
    ...(spec === "off" && {
      save: async (tx, { subject, facts }) =>
        void (await changeServer(context, tx, subject, { is_on: 0 }, facts.by ?? null)),
    }),
    undo: ({ subject, signal }) => ensurePower(context, subject, signal),
  };
}
