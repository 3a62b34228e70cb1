/**
 * The table of commands, derived from the contract: one command for each operation, with arguments and flags from its schemas. Commands
 * that are no single operation are in `special.ts`. Parser, help, completion, reference page and man pages read this table.
 */
import type { Operation } from "@brume/api/operation.ts";
import { type Kind, kindOfField, kindOfMissing } from "./kinds.ts";
import { fieldsOf, kebab, operationNames, operationOf, type Schema } from "./schema.ts";
import {
  actions,
  destructive,
  type FieldWording,
  fields as fieldWording,
  flags as flagWording,
  phrases,
  updateDefaults,
  variants,
  verbs,
  words,
} from "./wording.ts";

/** Where a value is sent; `option`: it is for the command line itself. */
export type Place = "path" | "query" | "body" | "option";

/** A value of a command line. */
export interface Field {
  /** Field of the request, or name of the option. */
  readonly field: string;
  readonly place: Place;
  readonly schema: Schema;
  readonly description: string;
  /** The value names an object of this kind; null: it is a plain value. */
  readonly kind: Kind | null;
}

/** An argument without a flag. */
export interface Argument extends Field {
  /** Name in help, in capitals. */
  readonly name: string;
  readonly required: boolean;
  /** The value is the name of a file; its content is sent. */
  readonly file: boolean;
  /** Takes all further arguments. */
  readonly rest?: boolean;
}

/** A flag: `--name VALUE`, or `--name` and `--no-name` for a boolean. */
export interface Flag extends Field {
  readonly name: string;
  readonly short?: string;
  readonly required: boolean;
}

/** A command: its words, what it takes and what it does. */
export interface Command {
  readonly words: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly args: readonly Argument[];
  readonly flags: readonly Flag[];
  /** Operation id; null for a special command. */
  readonly operation: string | null;
  /** Fields that the command itself sets. */
  readonly body?: Readonly<Record<string, unknown>>;
  /** It deletes or overwrites data: it prompts first. */
  readonly destroys: boolean;
  readonly examples?: readonly string[];
  /** It is not shown in help. */
  readonly hidden?: boolean;
}

const ownDescriptions: Readonly<Record<string, string>> = {
  name: "Only objects with this name; `*` matches any characters.",
  state: "Only objects in this state, or in one of several, separated by commas.",
  limit: "At most this number of objects.",
};

/** Words of the command of an operation: from the table of wordings, or verb and noun of the operation id. */
function wordsOf(name: string): string[] {
  const exception = words[name];
  if (exception !== undefined) return exception.split(" ");
  const record = /^(create|update)Record([A-Z]+)$/.exec(name);
  if (record) return ["record", record[1] ?? "", (record[2] ?? "").toLowerCase()];
  const [, verb = "", noun = ""] = /^([a-z]+)(.*)$/.exec(name) ?? [];
  const isList = verb === "list";
  return [isList ? kebab(noun).replace(/s$/, "") : kebab(noun) || verb, verbs[verb] ?? verb];
}

function describe(schema: Schema, more = ""): string {
  const text = more || (schema.description ?? "");
  const choices = schema.enum ?? schema.items?.enum;
  if (!choices || choices.some((choice) => text.includes(String(choice)))) return text;
  return `${text === "" ? "" : `${text} `}One of ${choices.join(", ")}.`.replace(
    /^One of/,
    schema.items ? "Any of" : "One of",
  );
}

/** Returns a description without its sentences about the default. */
const withoutDefault = (text: string): string => text.replaceAll(/ ?\bDefault [^]*?\.(?= |$)/g, "").trim();

/** Returns the required fields that have no flag of their own and no other form. */
const isRequired = (schema: Schema, name: string) => schema.required?.includes(name) === true;

function bodyFlag(name: string, schema: Schema, place: Place, wording: FieldWording, required: boolean): Flag {
  const kind = kindOfField[name] ?? null;
  return {
    field: name,
    place,
    schema,
    name: wording.flag ?? flagWording[name] ?? kebab(name),
    kind: place === "body" || /^[A-Z]/.test(name) ? kind : (queryKinds[name] ?? null),
    required,
    description: describe(schema, wording.description),
  };
}

const queryKinds: Readonly<Record<string, Kind>> = { token: "token", project: "project" };

function pathArguments(operation: Operation): Argument[] {
  return Object.entries(operation.params ?? {}).map(([field, code]) => {
    const kind = kindOfMissing[code] ?? "id";
    const name = kind === "id" ? code.replace(/_not_found$/, "") : kind.replace(/^(public-)?network$/, "network");
    return {
      field,
      place: "path",
      schema: { type: "integer" },
      kind,
      name: name.replaceAll("-", "_").toUpperCase(),
      required: true,
      file: false,
      description: kind === "id" ? "Id." : "Name or id.",
    };
  });
}

/** What a command is, without its words. */
type Derived = Omit<Command, "words" | "operation" | "body">;

/** Returns a command that is derived when its fields are read: a command line needs one command, but the words of all. */
function lazyCommand(
  words: readonly string[],
  operation: string,
  derive: () => Derived,
  body?: Readonly<Record<string, unknown>>,
): Command {
  let derived: Derived | null = null;
  const read = () => (derived ??= derive());
  return {
    words,
    operation,
    ...(body !== undefined && { body }),
    get summary() {
      return read().summary;
    },
    get description() {
      return read().description;
    },
    get args() {
      return read().args;
    },
    get flags() {
      return read().flags;
    },
    get destroys() {
      return read().destroys;
    },
  };
}

function deriveCommand(name: string): Derived {
  const operation = operationOf(name);
  const wording = fieldWording[name] ?? {};
  const args = pathArguments(operation);
  const flags: Flag[] = [];
  const take = (schema: unknown, place: "query" | "body") => {
    for (const [field, one] of Object.entries(fieldsOf(schema))) {
      const { argument, hidden = false, file = false, ...more } = wording[field] ?? {};
      const isTaken = [...args, ...flags].some((taken) => taken.field === field && taken.place !== "path");
      if (hidden || isTaken || one["x-ignored"] === true || field === "cursor") continue;
      if (argument === undefined) {
        const exception = place === "query" ? ownDescriptions[field] : undefined;
        const required = place === "body" && isRequired(schema as Schema, field);
        const taken = bodyFlag(
          field,
          one,
          place,
          exception === undefined ? more : { ...more, description: exception },
          required,
        );
        const isKept = operation.method === "PUT" && updateDefaults[name]?.includes(field) !== true;
        flags.push(isKept ? { ...taken, description: withoutDefault(taken.description) } : taken);
        continue;
      }
      args.push({
        field,
        place,
        schema: one,
        kind: field === "ID" ? "id" : (kindOfField[field] ?? null),
        name: argument.replace(/[[\]]/g, ""),
        required: !argument.startsWith("["),
        file,
        description: describe(one, more.description),
      });
    }
  };
  take(operation.body, "body");
  if (operation.body === undefined || operation.method === "GET" || operation.method === "POST")
    take(operation.query, "query");
  return {
    summary: operation.summary,
    description: phrases.reduce((text, [api, own]) => text.replaceAll(api, own), operation.description ?? ""),
    args: orderArguments(name, args),
    flags,
    destroys: operation.method === "DELETE" || destructive.has(name),
  };
}

/** A record is `DOMAIN NAME …`, also where the contract lists the owner later. */
function orderArguments(name: string, args: Argument[]): Argument[] {
  if (!name.startsWith("createRecord")) return args;
  const rank = ({ name }: Argument) => ["DOMAIN", "NAME"].indexOf(name) >>> 0;
  return args.toSorted((a, b) => rank(a) - rank(b));
}

/** `brume server power-on NAME` and its siblings: the operation `startAction` with a fixed type. */
const actionCommands = (): Command[] =>
  actions.map(([verb, type, fields, summary]) => {
    const derive = () => {
      const start = deriveCommand("startAction");
      const flags = start.flags.filter(({ field }) => fields.includes(field));
      return { ...start, summary, description: "", flags, destroys: false };
    };
    return lazyCommand(["server", verb], "startAction", derive, { Type: type });
  });

const variantCommands = (): Command[] =>
  variants.map(([name, line, body, summary]) => {
    const derive = () => ({ ...deriveCommand(name), summary, description: "", flags: [], destroys: false });
    return lazyCommand(line.split(" "), name, derive, body);
  });

/** Returns one command for each operation of the contract, and those with fixed fields. */
export function operationCommands(): Command[] {
  const derived = operationNames.map((name) => lazyCommand(wordsOf(name), name, () => deriveCommand(name)));
  return [...derived, ...actionCommands(), ...variantCommands()];
}
