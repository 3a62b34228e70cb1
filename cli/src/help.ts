/** Help on the terminal: the nouns, the commands of a noun, and one command with its arguments and flags. */
import type { Command, Flag } from "./model/commands.ts";
import { flagsOf, usageOf } from "./model/parse.ts";
import { isSwitch, takesFile, valueWord } from "./model/values.ts";
import { nouns } from "./model/wording.ts";
import type { Style } from "./print/style.ts";
import { align } from "./print/table.ts";

const shown = (commands: readonly Command[]) => commands.filter(({ hidden }) => hidden !== true);
const isSingle = (words: readonly string[]) => words.length === 1;

/** Returns a flag as it is typed: `-o, --output WORD`. */
export function flagText({ name, short, schema, kind, field, place }: Flag): string {
  const word = valueWord(schema);
  const ofFile = word === "TEXT" && place === "body" && takesFile(schema, field) ? "TEXT|@FILE" : word;
  const value = isSwitch(schema)
    ? ""
    : ` ${kind === null || kind === "id" ? ofFile : kind.replace("any-", "").toUpperCase()}`;
  return `${short === undefined ? "    " : `-${short}, `}--${name}${value}`;
}

/** Wraps a text at `width` and indents all lines but the first. */
function wrap(text: string, width: number, indent: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + word.length + 1 > width - indent) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

function list(rows: readonly (readonly [string, string])[], columns: number): string[] {
  const left = Math.min(34, Math.max(...rows.map(([name]) => name.length), 0) + 4);
  return rows.flatMap(([name, text]) => {
    const [first = "", ...more] = wrap(text, columns, left);
    const begin = `  ${name}`;
    const rest = more.map((line) => " ".repeat(left) + line);
    return begin.length + 1 > left && text !== ""
      ? [begin, ...[first, ...more].map((line) => " ".repeat(left) + line)]
      : [`${begin.padEnd(left)}${first}`.trimEnd(), ...rest];
  });
}

/** Returns the lines of `brume --help`. */
export function helpOfAll(commands: readonly Command[], style: Style, columns: number): string[] {
  const single = shown(commands).filter(({ words }) => isSingle(words));
  return [
    "Usage: brume COMMAND [flags]",
    "",
    style.bold("Objects"),
    ...list(Object.entries(nouns), columns),
    "",
    style.bold("Commands"),
    ...list(
      single.map(({ words, summary }) => [words.join(" "), summary] as const),
      columns,
    ),
    "",
    "brume OBJECT lists the commands of an object, and brume COMMAND --help describes one. Objects are given by name or id.",
  ];
}

/** Returns the lines of `brume OBJECT`: its commands. */
export function helpOfNoun(
  words: readonly string[],
  commands: readonly Command[],
  style: Style,
  columns: number,
): string[] {
  const commandsOfNoun = shown(commands).filter((one) => words.every((word, index) => one.words[index] === word));
  const about = nouns[words[0] ?? ""];
  return [
    `Usage: brume ${words.join(" ")} COMMAND [flags]`,
    ...(about === undefined ? [] : ["", `${about[0]?.toUpperCase()}${about.slice(1)}.`]),
    "",
    style.bold("Commands"),
    ...align(commandsOfNoun.map((one) => [`  ${one.words.slice(words.length).join(" ")}`, one.summary])).map((line) =>
      line.slice(0, Math.max(columns, 40)),
    ),
  ];
}

/** Returns the lines of `brume COMMAND --help`. */
export function helpOfCommand(command: Command, style: Style, columns: number): string[] {
  const ownFlags = new Set(command.flags);
  const flags = flagsOf(command);
  const rows = (some: readonly Flag[]) =>
    list(
      some.map((flag) => [flagText(flag), flag.description] as const),
      columns,
    );
  const [mine, common] = [flags.filter((flag) => ownFlags.has(flag)), flags.filter((flag) => !ownFlags.has(flag))];
  return [
    usageOf(command),
    "",
    `${command.summary}.${command.description === "" ? "" : ` ${command.description}`}`,
    ...(command.args.length > 0
      ? [
          "",
          style.bold("Arguments"),
          ...list(
            command.args.map(({ name, description }) => [name, description] as const),
            columns,
          ),
        ]
      : []),
    ...(mine.length > 0 ? ["", style.bold("Flags"), ...rows(mine)] : []),
    "",
    style.bold("Common flags"),
    ...rows(common),
    ...(command.examples ? ["", style.bold("Examples"), ...command.examples.map((one) => `  ${one}`)] : []),
  ];
}
