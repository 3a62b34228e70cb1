/** The running calls of an agent: their number is bounded, and each can be aborted by its id, by its deadline and by a newer fence. */
import { AgentError } from "./error.ts";

/** Limits of what one agent does at once. */
export interface CallLimits {
  /** Running calls. */
  readonly running: number;
  /** Calls in one second. */
  readonly perSecond: number;
  /** Event streams, and all other streams, such as consoles, each. */
  readonly streams: number;
  /** Bytes of the bodies of all calls that are being received or run. */
  readonly bytes: number;
}

/** Limits far above what a control plane needs. */
export const defaultLimits: CallLimits = { running: 512, perSecond: 10_000, streams: 256, bytes: 128 << 20 };

/** What its handler needs to know of a call. */
export interface RunningCall {
  readonly signal: AbortSignal;
  abort(reason: AgentError): void;
  /** Frees its place. */
  end(): void;
}

/** Limits and cancels the calls of one agent. */
export interface Calls {
  /** Counts a request before its body is read, also one that is refused later. Throws `busy` beyond the calls in one second. */
  admit(): void;
  /** Counts bytes of a body. Throws `busy` beyond the limit. The caller passes them to `release` when the call has ended. */
  hold(bytes: number): void;
  release(bytes: number): void;
  /** Adds a call. Throws `busy` beyond the running calls, and `input_invalid` if a call of this id runs already. */
  begin(id: string, fence: number, ms: number): RunningCall;
  /** Aborts the call of this id, also if it arrives later than this. */
  cancel(id: string): void;
  /** Aborts all calls with a number below this one. */
  fenceOff(number: number): void;
  /** Aborts all calls. Later calls are refused. */
  stop(): void;
  readonly count: number;
}

const canceled = (): AgentError => new AgentError("aborted", "the caller canceled the call");

/** Creates an empty set. `now` returns milliseconds. */
export function createCalls({ running, perSecond, bytes: mostBytes }: CallLimits, now: () => number): Calls {
  const all = new Map<string, RunningCall & { readonly fence: number }>();
  /** Ids that were canceled before their call arrived: they come over different connections. */
  const early = new Set<string>();
  let second = 0;
  let inSecond = 0;
  let held = 0;
  let isStopping = false;
  return {
    admit() {
      const current = Math.floor(now() / 1000);
      if (current !== second) [second, inSecond] = [current, 0];
      inSecond++;
      if (inSecond > perSecond) throw new AgentError("busy", `the host agent got ${perSecond} calls in this second`);
    },
    hold(bytes) {
      if (held + bytes > mostBytes)
        throw new AgentError("busy", `the host agent holds ${mostBytes} bytes of requests already`);
      held += bytes;
    },
    release: (bytes) => void (held -= bytes),
    begin(id, fence, ms) {
      if (isStopping) throw new AgentError("stopping", "the host agent is stopping");
      if (all.has(id)) throw new AgentError("input_invalid", "a request with this id is running already");
      if (all.size >= running) throw new AgentError("busy", `the host agent runs ${running} calls already`);
      const controller = new AbortController();
      const abort = (reason: AgentError): void => controller.abort(reason);
      const timer = setTimeout(
        () => abort(new AgentError("deadline_exceeded", `the call did not end within ${ms} ms`)),
        ms,
      ).unref();
      const call = {
        fence,
        signal: controller.signal,
        abort,
        end() {
          clearTimeout(timer);
          all.delete(id);
        },
      };
      all.set(id, call);
      if (early.delete(id)) call.abort(canceled());
      return call;
    },
    cancel(id) {
      const call = all.get(id);
      if (call !== undefined) return call.abort(canceled());
      early.add(id);
      for (const oldest of early) if (early.size > running) early.delete(oldest);
    },
    fenceOff(number) {
      for (const call of all.values())
        if (call.fence < number) call.abort(new AgentError("stale_fence", "a newer control plane uses this host"));
    },
    stop() {
      isStopping = true;
      for (const call of all.values()) call.abort(new AgentError("stopping", "the host agent is stopping"));
    },
    get count() {
      return all.size;
    },
  };
}
