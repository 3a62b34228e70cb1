/** Speaks ACME in a thread that exists only during one work, so that its libraries use no memory afterwards. */
import { Worker } from "node:worker_threads";
import type { Authority, Challenge } from "./interface.ts";
import type { Report, Work } from "./protocol.ts";

type Result = Extract<Report, { readonly kind: "pair" | "key" }>;
type Present = (challenges: readonly Challenge[]) => Promise<void>;

/** Runs the thread until its result. Rejects with the reason of its failure, of `present`, or of the signal. */
function perform(work: Work, signal?: AbortSignal, present?: Present): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<Result>();
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: work, name: "authority" });
  const cancel = (): void => reject(signal?.reason as Error);
  worker.on("message", (report: Report) => {
    if (report.kind === "failed") reject(new Error(report.reason));
    else if (report.kind !== "challenges") resolve(report);
    else (present?.(report.challenges) ?? Promise.resolve()).then(() => worker.postMessage(null), reject);
  });
  worker.once("error", reject);
  worker.once("exit", () => reject(new Error("The thread that orders certificates has ended.")));
  if (signal?.aborted === true) cancel();
  else signal?.addEventListener("abort", cancel);
  return promise.finally(() => {
    signal?.removeEventListener("abort", cancel);
    void worker.terminate();
  });
}

/** Creates the driver. */
export function createAuthority(): Authority {
  return {
    async order(order, present, signal) {
      const result = await perform({ kind: "order", order }, signal, present);
      if (result.kind !== "pair") throw new Error("The thread returned no certificate.");
      return result.pair;
    },
    async selfSign(names, days) {
      const result = await perform({ kind: "selfSign", names, days });
      if (result.kind !== "pair") throw new Error("The thread returned no certificate.");
      return result.pair;
    },
    async createAccountKey() {
      const result = await perform({ kind: "createAccountKey" });
      if (result.kind !== "key") throw new Error("The thread returned no key.");
      return result.key;
    },
  };
}
