/** Binds the verbs of the contract to drivers: finds a verb by the path of a request, checks the input and calls the method. */

import { createChecker } from "./check.ts";
import { fromBody, toAnswer } from "./codec.ts";
import { contract, type Drivers } from "./contract/contract.ts";
import { sizes, type Verb } from "./contract/verb.ts";
import { AgentError } from "./error.ts";
import type { Plain } from "./plain.ts";
import { createKeptPorts } from "./portlist.ts";

/** What a running call can use besides its input. */
export interface Call {
  readonly signal: AbortSignal;
  /** Reports a note to the caller. */
  readonly note: (note: unknown) => void;
  /** Id of the request. */
  readonly request: string;
}

/** A verb and its method. */
export interface BoundVerb {
  /** `machines.ensureDisk`. */
  readonly name: string;
  readonly verb: Verb;
  /** Largest body in bytes. */
  readonly bytes: number;
  /** Checks the input. Throws `input_invalid`. */
  check(input: unknown): Readonly<Record<string, unknown>>;
  /** Calls the method with a checked input. */
  run(input: Readonly<Record<string, unknown>>, call: Call): Promise<unknown>;
}

type Method = (...args: readonly unknown[]) => Promise<unknown>;

/** Refuses a checked input that is not of this installation; the message is one sentence. */
export type Refuse = (name: string, input: Readonly<Record<string, unknown>>) => string | null;

/** Options of `bindVerbs`. */
export interface BindOptions {
  /** Driver interfaces, and the verbs of the session. */
  readonly targets: Readonly<Record<keyof Drivers | "session", object>>;
  readonly deviceOf: (nic: number) => string;
  readonly refuse: Refuse;
  readonly plain: Plain;
}

/** Returns all verbs by path. */
export function bindVerbs({ targets, deviceOf, refuse, plain }: BindOptions): ReadonlyMap<string, BoundVerb> {
  const found = new Map<string, BoundVerb>();
  const kept = createKeptPorts();
  for (const [group, table] of Object.entries(contract))
    for (const [method, verb] of Object.entries(table) as [string, Verb][]) {
      const name = `${group}.${method}`;
      const target = targets[group as keyof typeof targets] as Readonly<Record<string, Method>>;
      const checker = createChecker(verb.body, name);
      found.set(pathOf(group, method), {
        name,
        verb,
        bytes: verb.bytes ?? sizes.plain,
        check(input) {
          const checked = checker.check(input) as Readonly<Record<string, unknown>>;
          const refusal = refuse(name, checked);
          if (refusal !== null) throw new AgentError("input_invalid", `${name}: ${refusal}`);
          return checked;
        },
        async run(input, call) {
          const args = verb.args.map((arg) => fromBody(input[arg], deviceOf, kept));
          try {
            const result = await target[method]?.(...args, ...extraOf(verb, call));
            if (verb.generation) refuseOlder(name, input, result);
            return toAnswer(await plain.answer(result, name, call.request));
          } catch (error) {
            throw plain.error(error, name, call.request);
          }
        },
      });
    }
  return found;
}

/** Returns the path of a verb. */
export const pathOf = (group: string, method: string): string => `/${group}/${method}`;

function extraOf(verb: Verb, { signal, note }: Call): readonly unknown[] {
  if (verb.extra === "signal") return [signal];
  if (verb.extra === "repair") return [note];
  if (verb.extra === "transfer")
    return [{ signal, progress: (done: number, total: number | null) => note({ done, total }) }];
  return [];
}

/** Throws `stale_generation` if the driver kept a newer generation than that of the spec. */
function refuseOlder(name: string, { spec }: Readonly<Record<string, unknown>>, applied: unknown): void {
  const { id, generation } = spec as { readonly id: number; readonly generation: number };
  if (typeof applied === "number" && applied > generation)
    throw new AgentError("stale_generation", `${name}: ${id} has generation ${applied}, newer than ${generation}`, {
      applied,
    });
}
