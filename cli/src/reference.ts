/** The reference of all commands as a page in Markdown (`docs/cli.md`) and as a manual page (`man brume`), from the table of commands. */
import { exitCodes } from "./errors.ts";
import { flagText } from "./help.ts";
import type { Command, Flag } from "./model/commands.ts";
import { changeFlags, commonFlags, yesFlag } from "./model/options.ts";
import { usageOf } from "./model/parse.ts";
import { nouns } from "./model/wording.ts";

const sentence = (text: string) =>
  text === "" ? "" : `${text[0]?.toUpperCase()}${text.slice(1)}${/[.!?`]$/.test(text) ? "" : "."}`;
const escapeCell = (text: string) => text.replaceAll("|", "\\|").replaceAll("<", "&lt;");

/** Commands by noun; those with one word are under an empty noun. */
function groupsOf(commands: readonly Command[]): [string, Command[]][] {
  const shown = commands.filter(({ hidden }) => hidden !== true);
  const single = shown.filter(({ words }) => words.length === 1);
  const names = Object.keys(nouns).filter((noun) => shown.some(({ words }) => words.length > 1 && words[0] === noun));
  return [
    ["", single],
    ...names.map((noun): [string, Command[]] => [
      noun,
      shown.filter(({ words }) => words.length > 1 && words[0] === noun),
    ]),
  ];
}

const flagRows = (flags: readonly Flag[]) =>
  flags.map(
    (flag) =>
      `| \`${escapeCell(flagText(flag).trim())}\` | ${escapeCell(flag.description)}${flag.required ? " Required." : ""} |`,
  );

function describeCommand(command: Command): string[] {
  const { args, flags, summary, description, examples } = command;
  const rows = [
    ...args.map(({ name, description }) => `| \`${name}\` | ${escapeCell(description)} |`),
    ...flagRows(flags),
  ];
  return [
    `### brume ${command.words.join(" ")}`,
    "",
    [sentence(summary), sentence(description)]
      .filter((text) => text !== "")
      .join(" ")
      .replaceAll("<", "&lt;"),
    "",
    "```",
    usageOf(command).replace("Usage: ", ""),
    ...(examples ?? []),
    "```",
    "",
    ...(rows.length > 0 ? ["| argument or flag | meaning |", "|---|---|", ...rows, ""] : []),
  ];
}

/** Returns the text of docs/cli.md. */
export function renderPage(commands: readonly Command[]): string {
  const groups = groupsOf(commands);
  return [
    "# The command brume",
    "",
    "`brume` reaches the API from a terminal. In a clone it is `npx brume`, and after `npm start` as root also `brume` from any folder. It finds the installation of its",
    "clone by itself; `brume context add` stores others. `node scripts/cli-reference.ts` writes this page from the table of commands.",
    "",
    "Objects are given by name or id, a domain by its Unicode or ASCII name. A change waits until it has taken effect; on a terminal one line shows its steps. A deletion prompts, and needs `--yes` without a terminal.",
    "`--output json` and `yaml` are the responses of the API, unchanged; `name` prints one name per line. Values with several fields are JSON or YAML, or `@FILE`.",
    "",
    "## Installations and tokens",
    "",
    "The first of these that is present is used:",
    "",
    "1. `--context NAME`",
    "2. the variables `BRUME_URL` and `BRUME_TOKEN`",
    "3. the variable `BRUME_CONTEXT`",
    "4. the current context (`brume context use`)",
    "5. the installation of the clone: its token is in the data folder (`BRUME_DATA`, else `data` in the settings file, else `data/`)",
    "",
    "Contexts are in `~/.config/brume/contexts.json`, which only its user can read. Instead of a token, a context can have a program that prints it.",
    "",
    "## Exit codes",
    "",
    "| code | meaning |",
    "|---|---|",
    ...exitCodes.map(([code, meaning]) => `| ${code} | ${meaning} |`),
    "",
    "## Common flags",
    "",
    "| flag | meaning |",
    "|---|---|",
    ...flagRows(commonFlags),
    "",
    "Commands that change something also take these; the last one only if the command prompts:",
    "",
    "| flag | meaning |",
    "|---|---|",
    ...flagRows([...changeFlags, yesFlag]),
    "",
    ...groups.flatMap(([noun, own]) => [
      noun === "" ? "## Commands" : `## ${noun}`,
      "",
      ...(noun === "" ? [] : [sentence(nouns[noun] ?? ""), ""]),
      ...own.flatMap(describeCommand),
    ]),
  ]
    .join("\n")
    .replace(/\n+$/, "\n");
}

/** Escapes a text for troff. */
const roff = (text: string) =>
  text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("`", "")
    .replace(/^([.'])/, "\\&$1");

/** Returns the manual page (man(7)). */
export function renderManual(commands: readonly Command[], version: string): string {
  const flag = (one: Flag) => [".TP", `.B ${roff(flagText(one).trim())}`, roff(one.description)];
  return [
    `.TH BRUME 1 "" "brume ${version}" "User Commands"`,
    ".SH NAME",
    "brume \\- servers, networks and DNS from a terminal",
    ".SH SYNOPSIS",
    ".B brume",
    ".I COMMAND",
    "[flags]",
    ".SH DESCRIPTION",
    "Objects are given by name or id, a domain by its Unicode or ASCII name. A change waits until it has taken effect. A deletion prompts.",
    ".SH COMMON FLAGS",
    ...[...commonFlags, ...changeFlags, yesFlag].flatMap(flag),
    ".SH COMMANDS",
    ...groupsOf(commands).flatMap(([, own]) =>
      own.flatMap((command) => [
        `.SS ${roff(usageOf(command).replace("Usage: ", ""))}`,
        roff([sentence(command.summary), sentence(command.description)].filter((text) => text !== "").join(" ")),
        ...command.args.flatMap(({ name, description }) => [".TP", `.I ${roff(name)}`, roff(description)]),
        ...command.flags.flatMap(flag),
      ]),
    ),
    ".SH EXIT STATUS",
    ...exitCodes.flatMap(([code, meaning]) => [".TP", `.B ${code}`, roff(meaning)]),
    ".SH FILES",
    ".TP",
    ".I ~/.config/brume/contexts.json",
    "installations and tokens; only its user can read it",
    "",
  ].join("\n");
}
