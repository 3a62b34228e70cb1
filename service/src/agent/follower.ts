/**
 * Follows the event stream of an agent. It reconnects within half a second, continues after the last event, and publishes each event once.
 * If events are lost, because the agent restarted, it compares an observation with what it knows and publishes what has changed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../base/log.ts";
import type { MachinesStatus, PowerEvent } from "../drivers/machine/interface.ts";
import { readRefusal } from "./caller.ts";
import { createChecker } from "./check.ts";
import { eventsPath, StreamEvent, StreamStart } from "./contract/session.ts";
import { AgentError } from "./error.ts";
import type { Transport } from "./transport.ts";

/** Dependencies of `createFollower`. */
export interface FollowerOptions {
  readonly transport: Transport;
  readonly headers: () => Record<string, string>;
  readonly log: Log;
  /** Observes all servers, after events were lost. */
  readonly observe: () => Promise<MachinesStatus>;
  /** Called when the stream is open again after it was lost, and again if it rejects; `isNew`: the agent has restarted. */
  readonly returned: (isNew: boolean) => Promise<void>;
}

/** Publishes the events of an agent. */
export interface Follower {
  /** Resolves when the stream is open for the first time. Rejects if the agent refuses it. */
  start(): Promise<void>;
  readonly isUp: boolean;
  onPower(listener: (event: PowerEvent) => void): () => void;
  onDevice(listener: (device: string) => void): () => void;
  /** Resolves when all events up to this number were published, the stream is lost, or a second has passed. */
  reach(event: number): Promise<void> | undefined;
  /** Number of the last published event. */
  readonly last: number;
  /** Notes an observation that began after event `since`, so that later losses are found. */
  saw(status: MachinesStatus, since: number): void;
  close(): void;
}

const firstPause = 50;
const longestPause = 400;
/** Longest pause in milliseconds before a failed recovery is repeated. */
const longestRepeat = 5000;
/** Milliseconds without a line after which the agent counts as away; it sends one every 2 s. */
const silence = 10_000;
const longestWait = 1000;

/** Creates the follower of one agent. */
export function createFollower({ transport, headers, log, observe, returned }: FollowerOptions): Follower {
  const startLine = createChecker(StreamStart, "the start of the event stream");
  const eventLine = createChecker(StreamEvent, "an event");
  const powerListeners = new Set<(event: PowerEvent) => void>();
  const deviceListeners = new Set<(device: string) => void>();
  /** What was published or observed last, by server. */
  const seen = new Map<number, { readonly boot: number; readonly isOn: boolean }>();
  /** Number of the last event, by server. */
  let eventOf = new Map<number, number>();
  const ending = new AbortController();
  let waiting: { readonly event: number; readonly resolve: () => void }[] = [];
  let epoch: string | null = null;
  /** The last epoch whose return was handled; null: none. */
  let returnedEpoch: string | null = null;
  /** Events were lost, and no observation has replaced them. */
  let isMissing = false;
  let last = 0;
  let isUp = false;
  /** The start of the newest stream. */
  let newest: StreamStart | null = null;

  function publish<T>(listeners: ReadonlySet<(value: T) => void>, value: T): void {
    for (const listener of listeners) {
      try {
        listener(value);
      } catch (error) {
        log("error", "A listener for events of the host agent failed.", { error });
      }
    }
  }
  function publishPower(event: PowerEvent): void {
    seen.set(event.id, { boot: event.boot, isOn: event.exit === null });
    publish(powerListeners, event);
  }
  function release(): void {
    const ready = waiting.filter(({ event }) => !isUp || event <= last);
    waiting = waiting.filter(({ event }) => isUp && event > last);
    for (const { resolve } of ready) resolve();
  }

  /** True if an event of the server was published after the event `since`: an observation may be older. */
  const isNewer = (id: number, since: number): boolean => (eventOf.get(id) ?? 0) > since;

  function saw({ machines }: MachinesStatus, since: number): void {
    const present = new Set(machines.map(({ id }) => id));
    for (const id of seen.keys()) if (!present.has(id) && !isNewer(id, since)) seen.delete(id);
    for (const { id, boot, power } of machines) if (!isNewer(id, since)) seen.set(id, { boot, isOn: power !== "off" });
  }

  /** Publishes the starts and ends that an observation shows and no event reported. */
  async function findLost(): Promise<void> {
    const before = new Map(seen);
    const since = last;
    const { machines } = await observe();
    const found = new Map(machines.map((machine) => [machine.id, machine]));
    for (const [id, { boot, isOn }] of before) {
      const machine = found.get(id);
      if (isNewer(id, since) || !isOn || (machine !== undefined && machine.power !== "off")) continue;
      const exit = machine?.exit ?? { reason: "died", at: Date.now(), detail: "" };
      publishPower({ id, boot: machine?.boot ?? boot, exit });
    }
    for (const { id, boot, power } of machines) {
      const known = before.get(id);
      if (!isNewer(id, since) && power !== "off" && (known?.isOn !== true || known.boot !== boot))
        publishPower({ id, boot, exit: null });
    }
  }

  /** Follows one connection until it ends. */
  async function follow(opened: () => void): Promise<void> {
    const controller = new AbortController();
    const stop = (): void => controller.abort();
    ending.signal.addEventListener("abort", stop, { once: true });
    let timer = setTimeout(stop, silence);
    let isFirst = true;
    const onLine = (line: string): void => {
      clearTimeout(timer);
      timer = setTimeout(stop, silence);
      timer.unref();
      const value: unknown = JSON.parse(line);
      if (isFirst) {
        isFirst = false;
        begin(startLine.check(value) as StreamStart, opened);
      } else take(eventLine.check(value) as StreamEvent);
    };
    try {
      const query = new URLSearchParams({ ...(epoch !== null && { epoch }), after: String(last) });
      const path = `${eventsPath}?${query.toString()}`;
      const reply = await transport.send({ path, headers: headers(), onLine, signal: controller.signal });
      if (reply.status !== 200) throw readRefusal(reply);
    } finally {
      clearTimeout(timer);
      ending.signal.removeEventListener("abort", stop);
      // Without a sign of life, running calls will get no response either.
      if (controller.signal.aborted)
        transport.reset(new AgentError("away", "the host agent does not respond", { isSilence: true }));
    }
  }

  function begin(start: StreamStart, opened: () => void): void {
    const isAgain = epoch !== null;
    if (epoch !== start.epoch) eventOf = new Map();
    [epoch, last, isUp, newest] = [start.epoch, start.last, true, start];
    opened();
    if (isAgain) void recover(start);
    else returnedEpoch = epoch;
  }

  /**
   * Catches up after a lost connection, and repeats what fails while this stream lasts. The next stream continues it, because the agent
   * does not report the same loss again.
   */
  async function recover(start: StreamStart): Promise<void> {
    isMissing ||= !start.isComplete;
    let hasReturned = false;
    for (let pause = firstPause; isUp && newest === start; pause = Math.min(pause * 2, longestRepeat)) {
      if (isMissing) {
        isMissing = false;
        await findLost().catch((error: unknown) => {
          isMissing = true;
          log("warn", "Could not observe servers after the host agent came back; retrying.", { error });
        });
      }
      if (!hasReturned)
        try {
          await returned(start.epoch !== returnedEpoch);
          [hasReturned, returnedEpoch] = [true, start.epoch];
        } catch (error) {
          log("warn", "Could not continue after the host agent came back; retrying.", { error });
        }
      if (hasReturned && !isMissing) return;
      await sleep(pause, undefined, { ref: false });
    }
  }

  function take(event: StreamEvent): void {
    if ("alive" in event || event.number <= last) return;
    last = event.number;
    if ("power" in event) {
      eventOf.set(event.power.id, last);
      publishPower(event.power);
    } else publish(deviceListeners, event.device);
    release();
  }

  async function run(opened: () => void, failed: (error: unknown) => void): Promise<void> {
    for (let pause = firstPause; !ending.signal.aborted; pause = Math.min(pause * 2, longestPause)) {
      try {
        await follow(() => {
          pause = firstPause;
          opened();
        });
      } catch (error) {
        failed(error);
        if (isUp && !ending.signal.aborted) log("warn", "The host agent is away; trying to reach it again.", { error });
      }
      isUp = false;
      release();
      if (!ending.signal.aborted) await sleep(pause, undefined, { ref: false });
    }
  }

  return {
    start() {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      void run(resolve, reject);
      return promise;
    },
    get isUp() {
      return isUp;
    },
    get last() {
      return last;
    },
    onPower(listener) {
      powerListeners.add(listener);
      return () => void powerListeners.delete(listener);
    },
    onDevice(listener) {
      deviceListeners.add(listener);
      return () => void deviceListeners.delete(listener);
    },
    reach(event) {
      if (!isUp || !(event > last)) return undefined;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push({ event, resolve });
      const timer = setTimeout(resolve, longestWait);
      return promise.finally(() => clearTimeout(timer));
    },
    saw,
    close() {
      ending.abort();
      isUp = false;
      release();
    },
  };
}
