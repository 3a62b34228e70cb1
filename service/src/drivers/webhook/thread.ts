/**
 * Sends webhooks in a thread of its own: an HTTP request costs more time than all else of a delivery, and in the thread of the service this
 * time would delay the requests of clients. The thread starts with the first send.
 */
import { Worker } from "node:worker_threads";
import type { Answer, Sender } from "./interface.ts";
import { type Command, collect, type Done } from "./protocol.ts";
import { createSender, type SenderOptions } from "./sender.ts";

interface Thread {
  readonly worker: Worker;
  readonly waiting: Map<number, (answer: Answer) => void>;
  readonly post: (command: Command) => void;
}

/** Creates a sender whose requests are sent by a thread. Sends in progress when the thread ends are answered as not sent. */
export function createThreadSender(options: Pick<SenderOptions, "allow" | "time">): Sender {
  const { judge, close } = createSender(options);
  let thread: Thread | null = null;
  let ids = 0;

  function open(): Thread {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: options, name: "webhook" });
    worker.unref();
    const waiting: Thread["waiting"] = new Map();
    const post = collect<Command>((commands) => worker.postMessage(commands));
    const current: Thread = { worker, waiting, post };
    const end = (): void => {
      if (thread === current) thread = null;
      for (const done of waiting.values()) done({ status: null, error: "The thread that sends webhooks has ended." });
      waiting.clear();
    };
    worker.on("message", (answers: readonly Done[]) => {
      for (const { id, answer } of answers) waiting.get(id)?.(answer);
    });
    // An uncaught error ends the thread; the event `exit` follows.
    worker.on("error", () => {});
    worker.on("exit", end);
    return current;
  }

  return {
    send(message, signal) {
      thread ??= open();
      const { waiting, post } = thread;
      const id = ++ids;
      const cancel = (): void => post({ cancel: id });
      return new Promise((resolve) => {
        waiting.set(id, (answer) => {
          waiting.delete(id);
          signal.removeEventListener("abort", cancel);
          resolve(answer);
        });
        post({ id, message });
        signal.addEventListener("abort", cancel);
        if (signal.aborted) cancel();
      });
    },
    judge,
    close() {
      close();
      void thread?.worker.terminate();
    },
  };
}
