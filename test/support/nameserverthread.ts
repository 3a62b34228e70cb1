/**
 * The built-in name server without a thread of its own, for the hundreds of services that a test process starts: a thread takes 50 ms of processor
 * time to start, most of it to load the same modules again. Messages are copied as between threads. Tests with `openServer` of `dnstools.ts` and those of
 * whole processes use the thread.
 */
import { EventEmitter } from "node:events";
import { MessageChannel } from "node:worker_threads";
import type { Thread } from "../../service/src/drivers/nameserver/builtin/builtin.ts";
import {
  type FromWorker,
  type Serving,
  serve,
  type ToWorker,
  type WorkerOptions,
} from "../../service/src/drivers/nameserver/builtin/worker.ts";

/** Starts a name server as `createBuiltin` starts its thread. */
export function serveInThisThread(options: WorkerOptions): Thread {
  const events = new EventEmitter();
  const { port1: near, port2: far } = new MessageChannel();
  near.on("message", (message) => events.emit("message", message));
  const starting = serve(options, (message) => far.postMessage(message)).then(
    (serving) => {
      far.on("message", serving.receive);
      return serving;
    },
    (error: unknown): Serving | null => {
      const { code = "", message } = error as NodeJS.ErrnoException;
      far.postMessage({ kind: "unable", code, message } satisfies FromWorker);
      return null;
    },
  );
  return {
    on: events.on.bind(events) as Thread["on"],
    postMessage: (message: ToWorker, transfer) => near.postMessage(message, transfer),
    async terminate() {
      (await starting)?.close();
      near.close();
      far.close();
      events.emit("exit", 0);
      return 0;
    },
  };
}
