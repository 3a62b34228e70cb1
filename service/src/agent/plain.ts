/**
 * Replaces texts of drivers that name paths, programs, command lines or rules of the host by their cause in plain words. The original text is
 * logged on the host, with the id of the request that is in the plain text. Errors keep what callers distinguish.
 */
import { randomUUID } from "node:crypto";
import type { Log } from "../base/log.ts";
import { plainCause, requestReference } from "../base/plaincause.ts";
import { forEachInTurns } from "../base/turn.ts";

/** Replaces texts of the drivers of one host. */
export interface Plain {
  /** Returns the error with a plain message, or the same error. */
  error(error: unknown, verb: string, request: string): unknown;
  /** Resolves to the result with plain details, or to the same result. */
  answer<T>(answer: T, verb: string, request: string): Promise<T>;
}

type Row = Readonly<Record<string, unknown>>;
const isRow = (value: unknown): value is Row => typeof value === "object" && value !== null;

export function createPlain(log: Log): Plain {
  function replace(text: string, verb: string, request: string, error?: unknown): string | null {
    const plain = plainCause(text, requestReference(request));
    if (plain !== null)
      log("warn", `${verb} failed on the host.`, { request, ...(error === undefined ? { detail: text } : { error }) });
    return plain;
  }
  function noText(verb: string, request: string, error: unknown): string {
    log("warn", `${verb} failed on the host without a text.`, { request, error });
    return `the host failed: only the log of the host has the cause (${requestReference(request)})`;
  }

  return {
    error(error, verb, request) {
      const message = error instanceof Error ? error.message.trim() : "";
      const text = message === "" ? noText(verb, request, error) : replace(message, verb, request, error);
      if (text === null) return error;
      const { final, isSilence } = (error ?? {}) as { final?: unknown; isSilence?: unknown };
      return Object.assign(new Error(text, { cause: error }), {
        ...(final === true && { final }),
        ...(isSilence === true && { isSilence }),
      });
    },
    async answer<T>(answer: T, verb: string, request: string): Promise<T> {
      const detailed = (value: unknown): unknown => {
        if (!isRow(value) || typeof value["detail"] !== "string") return value;
        const text = replace(value["detail"], verb, request);
        return text === null ? value : { ...value, detail: text };
      };
      // A host that is ready names its engines there.
      const hostDetail = (value: Row): unknown => (value["ready"] === true ? value : detailed(value));
      // There may be thousands of VMs and networks.
      const list = async (value: unknown, change: (row: Row) => unknown): Promise<unknown> => {
        if (!Array.isArray(value)) return value;
        const changed: unknown[] = [];
        await forEachInTurns(value, (row: unknown) => void changed.push(isRow(row) ? change(row) : row));
        return changed;
      };
      const reasoned = (row: Row): unknown => {
        const reason = isRow(row["reason"]) ? detailed(row["reason"]) : row["reason"];
        return reason === row["reason"] ? row : { ...row, reason };
      };
      const tunnels = (value: unknown): unknown =>
        Array.isArray(value) ? value.map((row: unknown) => (isRow(row) ? reasoned(row) : row)) : value;
      if (!isRow(answer)) return answer;
      if ("machines" in answer)
        return hostDetail({
          ...answer,
          machines: await list(answer["machines"], (row) => {
            const exit = detailed(row["exit"]);
            return detailed(exit === row["exit"] ? row : { ...row, exit });
          }),
        }) as T;
      if ("networks" in answer)
        return hostDetail({
          ...answer,
          networks: await list(answer["networks"], (row) => ({ ...row, tunnels: tunnels(row["tunnels"]) })),
        }) as T;
      const own = detailed(answer) as Row;
      return ("identity" in own ? { ...own, identity: detailed(own["identity"]) } : own) as T;
    },
  };
}

/** Returns the driver with plain errors and results: for a service in one process, whose clients get them without an agent. */
export function plainDriver<Driver extends object>(driver: Driver, group: string, plain: Plain): Driver {
  return new Proxy(driver, {
    get(target, name, receiver) {
      const method: unknown = Reflect.get(target, name, receiver);
      if (typeof method !== "function") return method;
      return (...args: readonly unknown[]): unknown => {
        const result: unknown = Reflect.apply(method, target, args);
        if (!(result instanceof Promise)) return result;
        const verb = `${group}.${String(name)}`;
        const request = randomUUID();
        return result.then(
          (answer: unknown) => plain.answer(answer, verb, request),
          (error: unknown) => Promise.reject(plain.error(error, verb, request) as Error),
        );
      };
    },
  });
}
