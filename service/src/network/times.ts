/** Times of networks that are stored, when the machine's clock was set: by a step that was seen, or while no service ran. */
import { firewallLimits } from "@brume/api/firewall.ts";
import { type ClockStep, dueBefore } from "../base/clock.ts";
import type { Tx } from "../store/db.ts";

/** The clock was set: what was to be confirmed in a minute still is. */
export async function moveTimes(tx: Tx, step: ClockStep): Promise<void> {
  const { from, to } = dueBefore(step);
  await tx
    .updateTable("network")
    .set((row) => ({ confirm_by: row("confirm_by", "+", step.by) }))
    .where("confirm_by", ">", from)
    .where("confirm_by", "<", to)
    .execute();
  await tx
    .updateTable("retired_block")
    .set((row) => ({ until: row("until", "+", step.by) }))
    .where("until", ">", from)
    .where("until", "<", to)
    .execute();
}

/** Brings back what lies beyond the longest interval. `rest`: milliseconds in which a block is not given out again. */
export async function bringBackTimes(tx: Tx, now: number, rest: number): Promise<void> {
  const latest = now + firewallLimits.confirmSeconds.maximum * 1000;
  await tx.updateTable("network").set({ confirm_by: latest }).where("confirm_by", ">", latest).execute();
  await tx
    .updateTable("retired_block")
    .set({ until: now + rest })
    .where("until", ">", now + rest)
    .execute();
}
