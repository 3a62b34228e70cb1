/**
 * The thread that composes the messages of large transfers from snapshots of zones, so that a transfer of a million records does not delay
 * queries. It has a low priority. Each transfer is a few messages ahead of the connection that sends them, and transfers take turns.
 */
import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { transferZone, type ZoneImage } from "./transfer.ts";
import type { Signer } from "./tsig.ts";

/** Requests to the thread. `count` is the number of messages that may be composed in addition. */
export type ToTransfer =
  | {
      readonly kind: "start";
      readonly id: number;
      readonly count: number;
      readonly image: ZoneImage;
      readonly head: Uint8Array;
      readonly opt: Uint8Array;
      readonly signer: Signer | null;
    }
  | { readonly kind: "more"; readonly id: number; readonly count: number }
  | { readonly kind: "stop"; readonly id: number };

/** Messages of a transfer in order; `failure` ends it. */
export interface FromTransfer {
  readonly id: number;
  readonly messages: readonly Uint8Array[];
  readonly isEnd: boolean;
  readonly failure: string | null;
}

/** Messages of one transfer in one turn. */
const TURN = 8;
/** Niceness of the thread (setpriority(2) applies to a thread on Linux). */
const NICE = 10;

interface Running {
  readonly messages: Iterator<Buffer, void>;
  credit: number;
}

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Returns bytes that are all of their memory, so that it can be passed to another thread. */
const alone = (bytes: Buffer): Uint8Array =>
  bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);

/** Returns the handler of requests; `send` passes on what was composed. */
function serve(send: (portion: FromTransfer) => void): (message: ToTransfer) => void {
  const running = new Map<number, Running>();
  let isPlanned = false;

  const plan = (): void => {
    if (isPlanned) return;
    isPlanned = true;
    setImmediate(work);
  };

  const take = (id: number, transfer: Running): void => {
    const messages: Uint8Array[] = [];
    let isEnd = false;
    let failure: string | null = null;
    try {
      while (!isEnd && transfer.credit > 0 && messages.length < TURN) {
        const { done, value } = transfer.messages.next();
        isEnd = done === true;
        if (value === undefined) continue;
        messages.push(alone(value));
        transfer.credit--;
      }
    } catch (error) {
      failure = String((error as Error).stack ?? error);
    }
    if (isEnd || failure !== null) running.delete(id);
    send({ id, messages, isEnd, failure });
  };

  const work = (): void => {
    isPlanned = false;
    for (const [id, transfer] of running) if (transfer.credit > 0) take(id, transfer);
    for (const { credit } of running.values()) if (credit > 0) return plan();
  };

  return (message) => {
    if (message.kind === "start") {
      const { id, count, image, head, opt, signer } = message;
      const threadSigner = signer && {
        key: { ...signer.key, secret: asBuffer(signer.key.secret) },
        prior: signer.prior && asBuffer(signer.prior),
      };
      const seconds = () => Math.floor(Date.now() / 1000);
      const messages = transferZone(image, asBuffer(head), threadSigner, seconds, asBuffer(opt));
      running.set(id, { messages, credit: count });
    } else if (message.kind === "more") {
      const transfer = running.get(message.id);
      if (transfer !== undefined) transfer.credit += message.count;
    } else {
      running.delete(message.id);
    }
    plan();
  };
}

if (parentPort !== null) {
  const owner = parentPort;
  try {
    setPriority(0, NICE);
  } catch {
    // Without the priority a transfer competes with the other threads for the processor.
  }
  const handle = serve((portion) =>
    owner.postMessage(
      portion,
      portion.messages.map(({ buffer }) => buffer as ArrayBuffer),
    ),
  );
  owner.on("message", handle);
}
