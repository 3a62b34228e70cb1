/**
 * Calls verbs of the agent: input to a request, response to a result or an error. A result is passed on only after the events that happened
 * before it, so a caller never learns of a start later than of what it caused.
 */
import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import { pathOf } from "./bound.ts";
import { type Checker, createChecker } from "./check.ts";
import { fromAnswer, toBody } from "./codec.ts";
import { headers, protocol, type Verb } from "./contract/verb.ts";
import { AgentError, fromWire, WireError } from "./error.ts";
import type { Reply } from "./response.ts";
import type { Transport } from "./transport.ts";

/** Dependencies of `createCaller`. */
export interface CallerOptions {
  readonly transport: Transport;
  readonly fence: () => number;
  /** Resolves when the events up to this number were published, or cannot be expected soon. */
  readonly reach: (event: number) => Promise<void> | undefined;
}

/** Calls verbs by their group, name and description. */
export interface Caller {
  call(group: string, method: string, verb: Verb, given: readonly unknown[]): Promise<unknown>;
  headers(): Record<string, string>;
}

/** Milliseconds after the deadline in which the agent responds itself. */
const grace = 5000;

/** Returns the error in a response; `away` if it is no error of the agent. */
export function readRefusal({ status, text }: Reply): AgentError {
  try {
    return fromWire(createChecker(WireError, "the error of the host agent").check(JSON.parse(text)) as WireError);
  } catch (cause) {
    return new AgentError("away", `the host agent sent status ${status} without an error that can be read`, { cause });
  }
}

export function createCaller({ transport, fence, reach }: CallerOptions): Caller {
  const checkers = new Map<Verb, { readonly answer: Checker | null; readonly note: Checker | null }>();
  const checkersOf = (verb: Verb, name: string) => {
    const found = checkers.get(verb) ?? {
      answer: verb.answer && createChecker(verb.answer, `result of ${name}`),
      note: verb.note ? createChecker(verb.note, `note of ${name}`) : null,
    };
    checkers.set(verb, found);
    return found;
  };
  const baseHeaders = (): Record<string, string> => ({
    [headers.protocol]: String(protocol),
    [headers.request]: randomUUID(),
    [headers.fence]: String(fence()),
  });

  function cancel(request: string): void {
    const body = JSON.stringify({ request });
    const sent = { path: pathOf("session", "cancel"), headers: baseHeaders(), body, time: grace };
    transport.send(sent).catch(() => {});
  }

  async function openStream(path: string, body: string): Promise<Duplex> {
    const opened = await transport.open({
      path: `${path}?input=${encodeURIComponent(body)}`,
      headers: { ...baseHeaders(), connection: "Upgrade", upgrade: "brume-bytes" },
      time: grace * 6,
    });
    if ("status" in opened) throw readRefusal(opened);
    return opened;
  }

  /** Sends the request and resolves to its result and the number of the last event before it. */
  async function exchange(
    path: string,
    verb: Verb,
    sent: { readonly headers: Record<string, string>; readonly body: string },
    onNote: (note: unknown) => void,
  ): Promise<{ readonly answer: unknown; readonly event: number }> {
    const time = verb.time + grace;
    if (verb.note === undefined) {
      const reply = await transport.send({ path, ...sent, time });
      if (reply.status !== 200) throw readRefusal(reply);
      return { answer: JSON.parse(reply.text), event: Number(reply.headers[headers.event]) };
    }
    const onLine = (line: string): void => {
      if (line.startsWith('{"note":')) onNote((JSON.parse(line) as { readonly note: unknown }).note);
    };
    const reply = await transport.send({ path, ...sent, time, onLine });
    if (reply.status !== 200) throw readRefusal(reply);
    const last = JSON.parse(reply.text) as {
      readonly answer?: unknown;
      readonly error?: unknown;
      readonly event: number;
    };
    if (last.error !== undefined) throw readRefusal({ ...reply, text: JSON.stringify(last.error) });
    return { answer: last.answer, event: last.event };
  }

  return {
    headers: baseHeaders,
    async call(group, method, verb, given) {
      const path = pathOf(group, method);
      const body = JSON.stringify(Object.fromEntries(verb.args.map((name, at) => [name, toBody(given[at])])));
      if (verb.stream) return openStream(path, body);
      const checks = checkersOf(verb, `${group}.${method}`);
      const { signal, onNote } = extraOf(verb, given[verb.args.length]);
      const sent = { headers: baseHeaders(), body };
      const stop = (): void => cancel(sent.headers[headers.request] ?? "");
      if (signal?.aborted) stop();
      else signal?.addEventListener("abort", stop, { once: true });
      try {
        const { answer, event } = await exchange(path, verb, sent, (note) => onNote(checks.note?.check(note)));
        await reach(event);
        return checks.answer === null ? undefined : fromAnswer(`${group}.${method}`, checks.answer.check(answer));
      } catch (error) {
        if (!(error instanceof AgentError)) throw error;
        if (error.code === "stale_generation" && error.applied !== undefined) return error.applied;
        if (error.code === "aborted" && signal?.aborted) throw signal.reason;
        throw error;
      } finally {
        signal?.removeEventListener("abort", stop);
      }
    },
  };
}

/** Returns the signal and the receiver of notes from the argument after the data. */
function extraOf(
  verb: Verb,
  extra: unknown,
): { readonly signal?: AbortSignal; readonly onNote: (note: unknown) => void } {
  const nothing = { onNote: () => {} };
  if (extra === undefined) return nothing;
  if (verb.extra === "signal") return { ...nothing, signal: extra as AbortSignal };
  if (verb.extra === "repair") return { onNote: extra as (part: unknown) => void };
  const { signal, progress } = extra as {
    readonly signal?: AbortSignal;
    readonly progress?: (done: number, total: number | null) => void;
  };
  const onNote = (note: unknown): void => {
    const { done, total } = note as { readonly done: number; readonly total: number | null };
    progress?.(done, total);
  };
  return { ...(signal && { signal }), onNote };
}
