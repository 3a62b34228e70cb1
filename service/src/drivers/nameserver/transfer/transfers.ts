/**
 * Large transfers, composed in a thread of their own (`thread.ts`). The thread starts with the first transfer and ends when there has been
 * none for a while, so that it costs memory only while it is used.
 */
import { Worker } from "node:worker_threads";
import type { FromTransfer, ToTransfer } from "./thread.ts";
import type { ZoneImage } from "./transfer.ts";
import type { Signer } from "./tsig.ts";

/** Messages that a transfer is ahead of its connection: half a megabyte. */
const AHEAD = 32;
const IDLE_MS = 30_000;

/** A message whose memory is released by its reader, because the garbage collector would keep the messages of megabytes. */
export interface LentMessage {
  readonly bytes: Buffer;
  /** Releases the memory. The bytes must not be used afterwards, also not by the system. */
  release(): void;
}

/** Transfers that run in the thread. */
export interface Transfers {
  /**
   * Yields the messages of a transfer (see `transferZone`), or a promise: continue when it is resolved. Throws if the thread has failed.
   * Must be ended by `return` if it is not read to its end.
   */
  transfer(
    image: ZoneImage,
    head: Buffer,
    signer: Signer | null,
    opt?: Buffer,
  ): Generator<LentMessage | Promise<void>, void>;
  close(): void;
}

interface Incoming {
  readonly messages: LentMessage[];
  isEnd: boolean;
  failure: string | null;
  wake: () => void;
}

const startThread = (): Worker =>
  new Worker(new URL("./thread.ts", import.meta.url), { resourceLimits: { maxYoungGenerationSizeMb: 2 } });

const lend = (memory: ArrayBuffer): LentMessage => ({
  bytes: Buffer.from(memory),
  release: () => void memory.transfer(0),
});

/** Creates the transfers; no thread runs yet. Tests replace `start`. */
export function createTransfers(start: () => Worker = startThread, idleMs = IDLE_MS): Transfers {
  const incoming = new Map<number, Incoming>();
  let thread: Worker | null = null;
  let lastId = 0;
  let timer: NodeJS.Timeout | undefined;

  const fail = (failed: Worker, failure: string): void => {
    if (thread !== failed) return;
    thread = null;
    for (const one of incoming.values()) {
      one.failure = failure;
      one.wake();
    }
  };

  const launch = (): Worker => {
    const started = start();
    started.on("message", ({ id, messages, isEnd, failure }: FromTransfer) => {
      const one = incoming.get(id);
      if (one === undefined) return;
      for (const { buffer } of messages) one.messages.push(lend(buffer as ArrayBuffer));
      one.isEnd = isEnd;
      one.failure = failure;
      one.wake();
    });
    started.on("error", (error) => fail(started, String(error)));
    started.on("exit", () => fail(started, "the thread of transfers has ended"));
    return started;
  };

  const stop = (): void => {
    const idle = thread;
    thread = null;
    void idle?.terminate();
  };

  return {
    *transfer(image, head, signer, opt = Buffer.alloc(0)) {
      clearTimeout(timer);
      const current = (thread ??= launch());
      const send = (message: ToTransfer): void => current.postMessage(message);
      const id = ++lastId;
      const one: Incoming = { messages: [], isEnd: false, failure: null, wake() {} };
      incoming.set(id, one);
      try {
        send({ kind: "start", id, count: AHEAD, image, head, opt, signer });
        for (let taken = 0; !one.isEnd || one.messages.length > 0; ) {
          if (one.failure !== null) throw new Error(one.failure);
          const message = one.messages.shift();
          if (message === undefined) {
            yield new Promise<void>((resolve) => {
              one.wake = resolve;
            });
            continue;
          }
          if (++taken % (AHEAD / 2) === 0) send({ kind: "more", id, count: AHEAD / 2 });
          yield message;
        }
      } finally {
        incoming.delete(id);
        if (!one.isEnd) send({ kind: "stop", id });
        if (incoming.size === 0) timer = setTimeout(stop, idleMs).unref();
      }
    },
    close() {
      clearTimeout(timer);
      stop();
    },
  };
}
