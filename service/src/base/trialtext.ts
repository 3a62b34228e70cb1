/** Texts of the trials at a start, for the operator: what is not available, why, and what to install or set. */
import type { Log } from "./log.ts";
import { causeIn } from "./plaincause.ts";

/** What a trial that failed means. */
export interface TrialText {
  /** Without a dot: `Servers are simulated`. */
  readonly consequence: string;
  /** A sentence: the command to run, or what to set. */
  readonly remedy: string;
}

/** Why programs see the files of the host, and the remedy. */
export const noMounts =
  "this host permits no private mounts, as in a container. Start Brume on the host itself, or let the container mount (CAP_SYS_ADMIN, and no AppArmor profile that forbids it)";

/** Returns why a trial failed, and the remedy. The text of the error is for the log only: it names programs and their arguments. */
export function describeTrialError(error: unknown, remedy: string): string {
  const text = error instanceof Error ? error.message : "";
  return `${causeIn(text) ?? "the trial at the start failed"}. ${remedy}`;
}

/** Returns the detail of a trial that failed. */
export const describeTrial = (error: unknown, { consequence, remedy }: TrialText): string =>
  `${consequence}: ${describeTrialError(error, remedy)}`;

/** Logs the complete text of the error of a trial. Its stack shows only where trials are made. */
export const logTrial = (log: Log, name: string, error: unknown): void =>
  log("info", `The trial of ${name} failed.`, { cause: error instanceof Error ? error.message : String(error) });
