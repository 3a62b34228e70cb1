/** Steps and functions that need the guest: shutdown on request, the serial log, waiting until SSH or the first boot is ready, and a new identity. */
import { setTimeout as sleep } from "node:timers/promises";
import { actionLimits } from "@brume/api/action.ts";
import { findImage } from "../../catalog/table.ts";
import type { Done, Wait } from "../../engine/flow.ts";
import { showAddress } from "../../network/model/plan.ts";
import { listLinkedNetworks } from "../links.ts";
import type { ServerRow } from "../table.ts";
import type { Facts, FlowContext, ServerStep } from "./context.ts";
import { attempt, stepErrorOf } from "./error.ts";

/** Milliseconds between two checks of a booting guest. */
const pause = 500;
/** Lines of the serial log that an error contains. */
const tail = 20;

/** Returns the last lines of the server's serial log; null if there is none or it cannot be read. */
export const readTail = (context: Pick<FlowContext, "consoles">, id: number): Promise<string | null> =>
  context.consoles.readLog(id, { tail }).catch(() => null);

/** Presses the power button. Resolves to whether the VM was off within `seconds`. Throws if `signal` is aborted. */
export async function requestShutdown(
  context: FlowContext,
  id: number,
  seconds: number,
  signal: AbortSignal,
): Promise<boolean> {
  const over = new AbortController();
  const timeout = sleep(seconds * 1000, undefined, { signal: over.signal, ref: false }).then(
    () => over.abort(),
    () => {},
  );
  try {
    const isOff = await attempt("apply_failed", `Server ${id} could not be shut down`, () =>
      context.machines.ensureStopped(id, "shutdown", AbortSignal.any([over.signal, signal])),
    );
    signal.throwIfAborted();
    return isOff;
  } finally {
    over.abort();
    await timeout;
  }
}

/** Returns the steps `Ssh` and `Guest` of `WaitFor`. If the guest is not ready in time, the flow fails but the server keeps running. */
export function guestSteps<Input>(context: FlowContext): [ServerStep<Input>, ServerStep<Input>] {
  const common = { time: actionLimits.waitFor * 1000, keeps: true } as const;
  /** Checks whether the guest has reported the end of its boot; the step fails with `code` if it does not. */
  async function checkGuest(subject: number, code: "ssh_not_ready" | "guest_not_ready"): Promise<Done<Facts> | Wait> {
    const { machines } = await attempt(code, `The state of server ${subject} could not be read`, () =>
      context.machineStatus.observeServers([subject]),
    );
    const status = machines[0];
    if (status?.stage === "ready") return { detail: "ready" };
    const detail = `Server ${subject} did not report the end of its boot within ${actionLimits.waitFor} s.`;
    const overdue = stepErrorOf(code, detail, { log: await readTail(context, subject) });
    return { wait: pause, detail: status?.stage ?? "off", overdue };
  }
  return [
    {
      name: "Ssh",
      ...common,
      async do({ subject }): Promise<Done<Facts> | Wait> {
        const linked = await listLinkedNetworks(context.store.read, subject);
        if (linked.length === 0)
          throw stepErrorOf("ssh_not_ready", `Server ${subject} has no network: SSH cannot be checked.`, {
            final: true,
          });
        const reachable = linked.find(({ network }) => network.kind !== "private");
        // The service has no address in private networks. There the guest's own report counts, which comes after SSH is up.
        if (reachable === undefined) return checkGuest(subject, "ssh_not_ready");
        const address = showAddress(reachable.link.ip);
        const isReady = await attempt("ssh_not_ready", `Port 22 of server ${subject} could not be checked`, () =>
          context.sendsSshBanner(reachable.network.id, address),
        );
        if (isReady) return { detail: `SSH is ready on ${address}` };
        const detail = `Port 22 of ${address} (server ${subject}) sent no SSH banner within ${actionLimits.waitFor} s.`;
        const overdue = stepErrorOf("ssh_not_ready", detail, { log: await readTail(context, subject) });
        return { wait: pause, detail: `no SSH banner from ${address} yet`, overdue };
      },
    },
    {
      name: "Guest",
      ...common,
      do: ({ subject }) => checkGuest(subject, "guest_not_ready"),
    },
  ];
}

/**
 * Gives the guest on a copied disk a new identity (host keys, machine id, passwords) before its first start. Guests with cloud-init and Tiny
 * Linux take it from the seed; from other disks the old one is removed. Resolves to the detail of the step.
 */
export async function renewGuest(context: FlowContext, server: ServerRow, signal: AbortSignal): Promise<string> {
  const { id, guest, family, disk_version } = server;
  if (guest !== null) return "the guest creates a new identity at its first start";
  const kept = "identity of the source's guest not removed";
  if (family !== "Linux") return `${kept}: not supported for ${family} guests`;
  const { removed, detail } = await attempt("disk_failed", `Could not change the disk of server ${id}`, () =>
    context.machines.ensureIdentityRemoved(id, disk_version, signal),
  );
  return removed ? "host keys, machine id, password hashes, authorized keys and logs removed" : `${kept}: ${detail}`;
}

/** Does the same if the image is a backup of another server: only backups contain an identity. Resolves to the end of a detail. */
export async function renewBackup(context: FlowContext, server: ServerRow, signal: AbortSignal): Promise<string> {
  const image = await findImage(context.store.read, server.project_id, server.image_id);
  const isOfAnother = image?.type === "Backup" && image.server_id !== server.id;
  return isOfAnother ? `; ${await renewGuest(context, server, signal)}` : "";
}
