/**
 * A client of the QEMU Machine Protocol (QMP): JSON messages in lines over a socket. A monitor accepts one client at a time, so this
 * connection is also an exclusive claim on the VM. Input is untrusted: a guest may have broken out of its process. Invalid input closes the
 * socket.
 */
import type { Duplex } from "node:stream";

/** An asynchronous event of QEMU. */
export interface QmpEvent {
  readonly name: string;
  readonly data: unknown;
  /** Milliseconds since 1970, by the clock of the host. */
  readonly at: number;
}

/** An open monitor connection. */
export interface Qmp {
  /**
   * Runs a command and resolves to its result. Rejects with a `QmpError` if QEMU refuses it, and with a `SilenceError` after `limit` ms
   * (10,000 by default).
   */
  run(command: string, args?: object, limit?: number): Promise<unknown>;
  /** Subscribes to events; returns a function that unsubscribes. */
  onEvent(listener: (event: QmpEvent) => void): () => void;
  /** Resolves when the connection is closed by either side. */
  readonly closed: Promise<void>;
  close(): void;
}

/** QEMU refused a command. `kind` is QAPI's error class: `GenericError`, `CommandNotFound`, `DeviceNotFound` … */
export class QmpError extends Error {
  readonly kind: string;
  constructor(command: string, kind: string, detail: string) {
    super(`QEMU refuses ${command}: ${detail}`);
    this.name = "QmpError";
    this.kind = kind;
  }
}

/** A response timed out; it is unknown whether the command was carried out. */
export class SilenceError extends Error {
  override readonly name = "SilenceError";
  readonly isSilence = true;
}

/** Maximum length of an unfinished line in characters, far more than any response needs. */
const maxLine = 4 * 2 ** 20;

/** Returns the value at a path of keys and indices, or undefined. Use it for all untrusted JSON. */
export function pick(value: unknown, ...path: readonly (string | number)[]): unknown {
  let at = value;
  for (const key of path) {
    if (typeof at !== "object" || at === null) return undefined;
    at = (at as Record<string | number, unknown>)[key];
  }
  return at;
}

/** Returns the finite number at the path, or 0. */
export const numberAt = (value: unknown, ...path: readonly (string | number)[]): number => {
  const found = pick(value, ...path);
  return typeof found === "number" && Number.isFinite(found) ? found : 0;
};
/** Returns the string at the path, or "". */
export const textAt = (value: unknown, ...path: readonly (string | number)[]): string => {
  const found = pick(value, ...path);
  return typeof found === "string" ? found : "";
};
/** Returns the array at the path, or []. */
export const listAt = (value: unknown, ...path: readonly (string | number)[]): readonly unknown[] => {
  const found = pick(value, ...path);
  return Array.isArray(found) ? found : [];
};

/** Splits a stream into lines. The returned function returns false when an unfinished line is too long. */
export function splitLines(take: (line: string) => void): (chunk: string) => boolean {
  let rest = "";
  return (chunk) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(line);
    return rest.length <= maxLine;
  };
}

interface PendingCall {
  readonly command: string;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Starts the protocol on an open socket; resolves after the banner of QEMU and `qmp_capabilities`. Rejects after `limit` ms: another
 * client holds this monitor, or QEMU hangs.
 */
export async function createQmp(socket: Duplex, limit = 5000): Promise<Qmp> {
  const pending = new Map<number, PendingCall>();
  const listeners = new Set<(event: QmpEvent) => void>();
  let last = 0;
  let isClosed = false;
  let bannerReceived = () => {};
  const banner = new Promise<void>((resolve) => {
    bannerReceived = resolve;
  });

  const closed = new Promise<void>((resolve) => {
    socket.on("close", () => {
      isClosed = true;
      for (const { command, reject } of pending.values())
        reject(new Error(`QEMU closed its monitor before it responded to ${command}`));
      pending.clear();
      resolve();
    });
  });

  function receive(line: string): void {
    if (line.trim() === "") return;
    const message = JSON.parse(line) as unknown;
    const event = pick(message, "event");
    if (pick(message, "QMP") !== undefined) return bannerReceived();
    if (typeof event === "string") {
      const at =
        numberAt(message, "timestamp", "seconds") * 1000 + numberAt(message, "timestamp", "microseconds") / 1000;
      for (const listener of listeners) listener({ name: event, data: pick(message, "data"), at: Math.floor(at) });
      return;
    }
    const id = numberAt(message, "id");
    const call = pending.get(id);
    if (call === undefined) return;
    const error = pick(message, "error");
    if (error === undefined) call.resolve(pick(message, "return"));
    else call.reject(new QmpError(call.command, textAt(error, "class"), textAt(error, "desc")));
  }

  const split = splitLines(receive);
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
      if (isClosed) return reject(new Error(`QEMU closed its monitor before ${command} was sent`));
      const id = ++last;
      const end =
        <Value>(settle: (value: Value) => void) =>
        (value: Value) => {
          clearTimeout(timer);
          pending.delete(id);
          settle(value);
        };
      const timer = setTimeout(
        () => call.reject(new SilenceError(`QEMU did not respond to ${command} within ${limit} ms`)),
        limit,
      );
      const call: PendingCall = { command, resolve: end(resolve), reject: end(reject) };
      pending.set(id, call);
      socket.write(`${JSON.stringify({ execute: command, ...(args && { arguments: args }), id })}\n`);
    });

  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new SilenceError(`the monitor sent no banner within ${limit} ms`)), limit);
  });
  try {
    await Promise.race([banner, timeout, closed]);
    if (isClosed) throw new Error("the monitor was closed before it sent its banner");
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
