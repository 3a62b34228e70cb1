/** Errors of server flows. A step throws a `StepError`; the task stores a `TaskError`. Codes and titles come from the contract. */
import { taskErrors, type WorkCode } from "@brume/api/work.ts";
import { reasonOf } from "../../base/reason.ts";
import { StepError } from "../../engine/flow.ts";
import type { TaskError } from "../../engine/task.ts";

/** Creates the error that a step throws. `final: true`: a retry cannot succeed. */
export const stepErrorOf = (code: WorkCode, detail: string, options: ConstructorParameters<typeof StepError>[3] = {}) =>
  new StepError(code, taskErrors[code], detail, options);

/** Creates the error that is stored for a task that ends without running a step, or in the row of a server or image. */
export const errorFor = (code: WorkCode, detail: string, step: string | null = null): TaskError => ({
  code,
  title: taskErrors[code],
  detail,
  step,
});

/** True for a driver error after which it is unknown whether the work was done, because the host process did not respond. */
const isTimeout = (cause: unknown): boolean =>
  cause instanceof Error && "isSilence" in cause && cause.isSilence === true;

/** True for a driver error that no retry can fix. */
const isFinal = (cause: unknown): boolean => cause instanceof Error && "final" in cause && cause.final === true;

/**
 * Runs `work`. If it throws, throws a `StepError` with the code, and with the sentence and the first line of the cause as detail.
 * A `StepError` is passed on unchanged. `log` reads the serial log that is attached to the error.
 */
export async function attempt<T>(
  code: WorkCode,
  sentence: string,
  work: () => Promise<T>,
  log: () => Promise<string | null> = async () => null,
): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof StepError) throw cause;
    const final = isFinal(cause);
    throw stepErrorOf(
      isTimeout(cause) ? "host_lost" : final && code === "boot_failed" ? "disk_missing" : code,
      `${sentence}: ${reasonOf(cause)}`,
      { cause, final, log: await log() },
    );
  }
}
