/** A guest is asked to switch itself off, as by the button of a real machine, until it does or the time for it is over. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Run } from "./run.ts";

/** Milliseconds between two presses: a guest that is just booting does not see the first. */
const pressAgain = 5000;

export async function askToStop(run: Run, signal: AbortSignal | undefined): Promise<boolean> {
  const off = run.over.then(() => true);
  const late = new Promise<false>((resolve) => {
    if (signal?.aborted === true) resolve(false);
    signal?.addEventListener("abort", () => resolve(false), { once: true });
  });
  for (;;) {
    if (run.ending === null) await run.qmp.run("system_powerdown").catch(() => {});
    const pause = sleep(pressAgain, null, { ref: false });
    const result = await Promise.race([off, late, pause]);
    if (result !== null) return result;
  }
}
