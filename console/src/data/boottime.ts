/** How long the guest of a server may boot after a start. Pure. */
import { type Action, actionOutcomes } from "@brume/api/action.ts";

/** Milliseconds that a guest may take to boot. The API does not show when it is ready. */
const bootTime = 180_000;

/**
 * Returns until when the guest may still boot, in milliseconds since 1970; null: no action has started it, or one has waited for the guest.
 * `actions`: of one server, the newest first.
 */
export function bootsUntil(actions: readonly Action[]): number | null {
  const start = actions.find(({ Type, State }) => State === "Completed" && actionOutcomes[Type] !== undefined);
  if (start === undefined || start.EndDate === null || actionOutcomes[start.Type] !== "on") return null;
  if (start.Steps.some(({ Name }) => Name === "Ssh" || Name === "Guest")) return null;
  return Date.parse(start.EndDate) + bootTime;
}
