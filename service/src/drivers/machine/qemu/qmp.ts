/**
 * The monitor of one running server: QEMU's Machine Protocol, JSON texts in lines over a socket. A monitor has one client at a time,
 * so whoever holds this holds the server. What comes in is believed to be JSON and nothing more: a process that a guest has broken
 * out of may say anything here, and gets a closed socket for it.
 */
import type { Duplex } from "node:stream";

export interface QmpEvent {
  readonly name: string;
  readonly data: unknown;
  /** Milliseconds since 1970, by the clock of the machine. */
  readonly at: number;
}

export interface Qmp {
  /** Resolves to what the command returns; rejects with a `QmpError`, and after `limit` milliseconds (10,000 by default). */
  run(command: string, args?: object, limit?: number): Promise<unknown>;
  onEvent(listener: (event: QmpEvent) => void): () => void;
  /** Resolves when the other end is gone, or `close` was called. */
  readonly closed: Promise<void>;
  close(): void;
}

/** QEMU refused. `kind` is QAPI's class: `GenericError`, `CommandNotFound`, `DeviceNotFound` … */
export class QmpError extends Error {
  readonly kind: string;
  constructor(command: string, kind: string, detail: string) {
    super(`QEMU refuses ${command}: ${detail}`);
    this.name = "QmpError";
    this.kind = kind;
  }
}

/** Nothing came for as long as an answer may take: what has become of the command is not known. */
export class SilenceError extends Error {
  override readonly name = "SilenceError";
  readonly isSilence = true;
}

/** Far more than any answer here has. */
const longest = 4 * 2 ** 20;

/** The value at a path of keys and indices, or undefined: the one way to look into what came from outside. */
export function pick(value: unknown, ...path: readonly (string | number)[]): unknown {
  let at = value;
  for (const key of path) {
    if (typeof at !== "object" || at === null) return undefined;
    at = (at as Record<string | number, unknown>)[key];
  }
  return at;
}

export const numberAt = (value: unknown, ...path: readonly (string | number)[]): number => {
  const found = pick(value, ...path);
  return typeof found === "number" && Number.isFinite(found) ? found : 0;
};
export const textAt = (value: unknown, ...path: readonly (string | number)[]): string => {
  const found = pick(value, ...path);
  return typeof found === "string" ? found : "";
};
export const listAt = (value: unknown, ...path: readonly (string | number)[]): readonly unknown[] => {
  const found = pick(value, ...path);
  return Array.isArray(found) ? found : [];
};

/** Gives out whole lines; false when one grows beyond all measure. */
export function splitLines(take: (line: string) => void): (chunk: string) => boolean {
  let rest = "";
  return (chunk) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(line);
    return rest.length <= longest;
  };
}

interface Waiting {
  readonly command: string;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Resolves when QEMU has greeted. Silence means that somebody else holds this monitor, or that QEMU hangs. */
export async function createQmp(socket: Duplex, limit = 5000): Promise<Qmp> {
  const waiting = new Map<number, Waiting>();
  const listeners = new Set<(event: QmpEvent) => void>();
  let last = 0;
  let over = false;
  let greeted = () => {};
  const greeting = new Promise<void>((resolve) => {
    greeted = resolve;
  });

  const closed = new Promise<void>((resolve) => {
    socket.on("close", () => {
      over = true;
      for (const { command, reject } of waiting.values()) reject(new Error(`QEMU ended before it answered ${command}`));
      waiting.clear();
      resolve();
    });
  });

  function hear(line: string): void {
    if (line.trim() === "") return;
    const message = JSON.parse(line) as unknown;
    const event = pick(message, "event");
    if (pick(message, "QMP") !== undefined) return greeted();
    if (typeof event === "string") {
      const at =
        numberAt(message, "timestamp", "seconds") * 1000 + numberAt(message, "timestamp", "microseconds") / 1000;
      for (const listener of listeners) listener({ name: event, data: pick(message, "data"), at: Math.floor(at) });
      return;
    }
    const id = numberAt(message, "id");
    const call = waiting.get(id);
    if (call === undefined) return;
    const error = pick(message, "error");
    if (error === undefined) call.resolve(pick(message, "return"));
    else call.reject(new QmpError(call.command, textAt(error, "class"), textAt(error, "desc")));
  }

  const split = splitLines(hear);
  socket.on("error", () => {});
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    try {
      if (!split(chunk)) socket.destroy();
    } catch {
      socket.destroy();
    }
  });

  const run: Qmp["run"] = (command, args, limit = 10_000) =>
    new Promise((resolve, reject) => {
      if (over) return reject(new Error(`QEMU ended before ${command}`));
      const id = ++last;
      const end =
        <Value>(settle: (value: Value) => void) =>
        (value: Value) => {
          clearTimeout(timer);
          waiting.delete(id);
          settle(value);
        };
      const timer = setTimeout(
        () => call.reject(new SilenceError(`QEMU did not answer ${command} in ${limit} ms`)),
        limit,
      );
      const call: Waiting = { command, resolve: end(resolve), reject: end(reject) };
      waiting.set(id, call);
      socket.write(`${JSON.stringify({ execute: command, ...(args && { arguments: args }), id })}\n`);
    });

  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new SilenceError(`the monitor did not greet in ${limit} ms`)), limit);
  });
  try {
    await Promise.race([greeting, silence, closed]);
    if (over) throw new Error("the monitor was closed before it greeted");
    await run("qmp_capabilities");
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
  }
  return {
    run,
    onEvent(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    closed,
    close: () => void socket.destroy(),
  };
}
