/** Reads a command line: finds the command by its words, then arguments and flags. Unknown words get a suggestion. */
import { type ParseArgsConfig, parseArgs } from "node:util";
import { suggest } from "./closest.ts";
import type { Command, Flag } from "./commands.ts";
import { changeFlags, commonFlags, yesFlag } from "./options.ts";
import { operationOf } from "./schema.ts";
import { isSwitch, UsageError } from "./values.ts";
import { synonyms } from "./wording.ts";

/** A command line that belongs to a command. */
export interface Line {
  readonly command: Command;
  readonly args: readonly string[];
  /** Texts of each flag, by its name; a switch has `true` or `false`. */
  readonly flags: ReadonlyMap<string, readonly string[]>;
  /** What follows `--`. */
  readonly after: readonly string[];
}

/** A command line that is only the beginning of commands, such as `brume server`. */
export interface Prefix {
  readonly words: readonly string[];
}

/** Returns all flags of a command: its own, then those of all commands that fit it. */
export function flagsOf(command: Command): Flag[] {
  const isChange = command.operation !== null && isChanging(command.operation);
  const ownFlags = new Set(command.flags.map(({ name }) => name));
  const more = [...(isChange ? changeFlags : []), ...(command.destroys ? [yesFlag] : []), ...commonFlags];
  return [...command.flags, ...more.filter(({ name }) => !ownFlags.has(name))];
}

/** Returns true for an operation that changes something. */
export function isChanging(name: string): boolean {
  const { method, readOnlyPost } = operationOf(name);
  return method !== "GET" && readOnlyPost !== true;
}

const begins = (words: readonly string[], start: readonly string[]) =>
  start.every((word, index) => words[index] === word);

/** Separates the words of the command from the rest. Common flags may precede them. */
function splitWords(argv: readonly string[], commands: readonly Command[]) {
  const words: string[] = [];
  const rest = [...argv];
  const before: string[] = [];
  while (rest[0] !== undefined) {
    const next = rest[0];
    const flag = next.startsWith("-")
      ? commonFlags.find(({ name, short }) => next === `--${name}` || next === `-${short}`)
      : undefined;
    if (flag) before.push(...rest.splice(0, isSwitch(flag.schema) ? 1 : 2));
    else if (/^(-\w.+|--[\w-]+=.*|--no-color)$/.test(next) && words.length === 0) before.push(...rest.splice(0, 1));
    else if (!next.startsWith("-") && commands.some((command) => begins(command.words, [...words, next]))) {
      words.push(next);
      rest.shift();
    } else break;
  }
  return { words, rest: [...before, ...rest] };
}

/** Finds the command of a line. Throws `UsageError` for unknown words. */
function findCommand(
  argv: readonly string[],
  commands: readonly Command[],
): { command: Command | null; words: string[]; rest: string[] } {
  const { words, rest } = splitWords(argv, commands);
  const command = commands.find((one) => one.words.length === words.length && begins(one.words, words)) ?? null;
  if (command !== null) return { command, words, rest };
  const unknown = rest.find((one) => !one.startsWith("-"));
  if (unknown !== undefined) {
    const possible = commands
      .filter((one) => !one.hidden && begins(one.words, words))
      .map((one) => one.words[words.length] ?? "");
    const path = ["brume", ...words].join(" ");
    const hint = suggest(unknown, possible, synonyms[unknown]);
    throw new UsageError(`"${path}" has no command "${unknown}".`, hint || `${path} --help lists the commands.`);
  }
  return { command, words, rest };
}

function configOf(flags: readonly Flag[]): NonNullable<ParseArgsConfig["options"]> {
  const options: NonNullable<ParseArgsConfig["options"]> = {};
  for (const { name, short, schema } of flags) {
    options[name] = {
      type: isSwitch(schema) ? "boolean" : "string",
      multiple: true,
      ...(short !== undefined && { short }),
    };
    if (isSwitch(schema)) options[`no-${name}`] = { type: "boolean", multiple: true };
  }
  return options;
}

/** Reads a command line. Throws `UsageError` for unknown commands and flags, for missing values and for arguments that are too many. */
export function parseLine(argv: readonly string[], commands: readonly Command[]): Line | Prefix {
  const { command, words, rest } = findCommand(argv, commands);
  if (command === null) return { words };
  const flags = flagsOf(command);
  const { tokens } = parseArgs({
    args: rest,
    options: configOf(flags),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const path = `brume ${command.words.join(" ")}`;
  const found = new Map<string, string[]>();
  const args: string[] = [];
  const after: string[] = [];
  const end = tokens.find(({ kind }) => kind === "option-terminator")?.index ?? Number.POSITIVE_INFINITY;
  const takesAfter = command.words[0] === "ssh" || command.words.join(" ") === "context add";
  for (const token of tokens) {
    if (token.kind === "positional") (token.index > end && takesAfter ? after : args).push(token.value);
    if (token.kind !== "option") continue;
    const flag = flags.find(
      ({ name, schema }) => token.name === name || (isSwitch(schema) && token.name === `no-${name}`),
    );
    if (!flag) {
      const hint = suggest(
        token.name,
        flags.map(({ name }) => name),
      ).replace(/(mean|or) /g, "$1 --");
      throw new UsageError(`"${path}" has no flag ${token.rawName}.`, hint || `${path} --help lists the flags.`);
    }
    const texts = found.get(flag.name) ?? [];
    if (isSwitch(flag.schema)) texts.push(token.name === flag.name ? (token.value ?? "true") : "false");
    else if (token.value === undefined || (!token.inlineValue && /^--\w/.test(token.value)))
      throw new UsageError(`${token.rawName} needs a value.`, `${path} --help describes it.`);
    else texts.push(token.value);
    found.set(flag.name, texts);
  }
  const most = command.args.at(-1)?.rest === true ? Number.POSITIVE_INFINITY : command.args.length;
  if (args.length > most)
    throw new UsageError(
      `"${path}" takes ${most === 0 ? "no arguments" : `at most ${most}`}, and "${args[most]}" is too many.`,
      usageOf(command),
    );
  return { command, args, flags: found, after };
}

/** Returns one line: `Usage: brume server get SERVER [flags]`. */
export function usageOf({ words, args, flags }: Command): string {
  const shown = args.map(({ name, required, rest }) => {
    const word = rest === true ? `${name}…` : name;
    return required ? word : `[${word}]`;
  });
  const needed = flags.filter(({ required }) => required).map(({ name }) => `--${name} …`);
  return ["Usage: brume", ...words, ...shown, ...needed, "[flags]"].join(" ");
}
