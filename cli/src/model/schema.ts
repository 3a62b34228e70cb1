/** The keywords of JSON Schema that the contract uses, as far as the command line reads them. */
import { contract as values } from "@brume/api/contract.ts";
import type { Operation } from "@brume/api/operation.ts";

/** A schema of the contract. */
export interface Schema {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly enum?: readonly (string | number)[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly "x-labels"?: boolean;
  readonly "x-ignored"?: boolean;
  readonly "x-verbatim"?: boolean;
  readonly "x-either"?: boolean;
  readonly "x-word"?: boolean;
}

/** Operations by operation id. The build replaces this table by its value, whose parts are read when they are used (`scripts/build-cli.ts`). */
export const contract: Readonly<Record<string, Operation>> = values;

/** All operation ids. */
export const operationNames: readonly string[] = Object.keys(contract);

/** Returns the operation. Throws for an unknown id. */
export function operationOf(name: string): Operation {
  const operation = contract[name];
  if (operation === undefined) throw new TypeError(`the contract has no operation ${name}`);
  return operation;
}

/** Returns the fields of a request or response. */
export const fieldsOf = (schema: unknown): Readonly<Record<string, Schema>> =>
  (schema as Schema | undefined | null)?.properties ?? {};

/** Returns the title of the object that an operation returns, also in a list; empty: it has none. */
export function titleOf(operation: Operation): string {
  const answer: Schema | null = operation.answer;
  return answer?.items?.title ?? answer?.title ?? "";
}

/** Converts `IsHighPerformance` to `high-performance`, `SshKeys` to `ssh-keys`, `DCLocation` to `location`, `isBackupActive` to `backup`. */
export function kebab(name: string): string {
  return name
    .replace(/^[iI]s(?=[A-Z])/, "")
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1-$2")
    .toLowerCase();
}
