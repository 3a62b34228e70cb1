/** Runs one command line and returns its exit code. Every error ends here, with its cause and remedy on standard error. */
import { readFile } from "node:fs/promises";
import { showError } from "./errors.ts";
import { helpOfAll, helpOfCommand, helpOfNoun } from "./help.ts";
import type { Host } from "./host.ts";
import { type Command, operationCommands } from "./model/commands.ts";
import { changeFlags, commonFlags, type Options, readOptions, yesFlag } from "./model/options.ts";
import { flagsOf, type Line, parseLine } from "./model/parse.ts";
import { parseValue } from "./model/values.ts";
import { createPrinter } from "./print/output.ts";
import { createStyle, safe } from "./print/style.ts";
import { createSession } from "./session.ts";
import { loaders, specialCommands } from "./special.ts";

/** Returns all commands: those of the contract and the special ones, which win. */
export function allCommands(): Command[] {
  const specialWords = new Set(specialCommands.map(({ words }) => words.join(" ")));
  const derived = operationCommands().filter(({ words }) => !specialWords.has(words.join(" ")));
  const all = [...derived, ...specialCommands].map((command) => [command.words.join(" "), command] as const);
  return all.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, command]) => command);
}

const commonNames = new Set([...commonFlags, ...changeFlags, yesFlag].map(({ name }) => name));

async function optionsOf(line: Line): Promise<Options> {
  const values = new Map<string, unknown>();
  for (const flag of flagsOf(line.command)) {
    const texts = line.flags.get(flag.name);
    if (flag.place !== "option" || texts === undefined || !commonNames.has(flag.name)) continue;
    values.set(flag.name, await parseValue(`--${flag.name}`, flag.field, flag.schema, texts, async () => ""));
  }
  return readOptions(values);
}

/** Separates a request for help from the rest of a line. What follows `--` belongs to another program. */
function splitHelp(argv: readonly string[]): { readonly args: string[]; readonly isHelp: boolean } {
  const end = argv.indexOf("--");
  const [own, other] = end < 0 ? [argv, []] : [argv.slice(0, end), argv.slice(end)];
  const args = (own[0] === "help" ? own.slice(1) : own).filter((one) => one !== "--help" && one !== "-h");
  return { args: [...args, ...other], isHelp: args.length < own.length };
}

/** Runs the line. */
export async function run(argv: readonly string[], host: Host): Promise<number> {
  if (argv[0] === "--version" || argv[0] === "version") {
    host.out.write(`brume ${host.version}\n`);
    return 0;
  }
  const commands = allCommands();
  const plain = createPrinter(host, readOptions(new Map()));
  const columns = Math.min(host.out.columns || 100, 120);
  let command: Command | null = null;
  let url = () => "http://localhost/";
  try {
    const { args, isHelp } = splitHelp(argv);
    const line = parseLine(args, commands);
    if (!("command" in line)) {
      const { words } = line;
      plain.lines(
        words.length === 0
          ? helpOfAll(commands, plain.style, columns)
          : helpOfNoun(words, commands, plain.style, columns),
      );
      return 0;
    }
    ({ command } = line);
    if (isHelp) {
      plain.lines(helpOfCommand(command, plain.style, columns));
      return 0;
    }
    const options = await optionsOf(line);
    const print = createPrinter(host, options);
    const readText = (path: string) =>
      path === "-" ? host.input.readAll() : readFile(path.replace(/^~(?=\/)/, host.home), "utf8");
    const session = createSession(host, line, options, print, readText, commands);
    ({ url } = session);
    const load = loaders[command.words.join(" ")];
    if (load) {
      const special = await load();
      return (await special.run(session)) ?? 0;
    }
    const { perform } = await import("./perform.ts");
    await perform(session);
    return 0;
  } catch (error) {
    const cause = host.signal.aborted ? new DOMException("", "AbortError") : error;
    const { exit, message, lines, remedy, reference = "" } = showError(cause, command, url());
    const style = createStyle(host.err.isTerminal && !host.env["NO_COLOR"]);
    const last = remedy !== "" ? `remedy: ${remedy}\n` : reference !== "" ? `reference: ${reference}\n` : "";
    host.err.write(`${style.red("error:")} ${safe(message)}\n${lines.map((one) => `  ${safe(one)}\n`).join("")}`);
    host.err.write(last.replace(/^\w+:/, (word) => style.bold(word)));
    // Exit code 2 of `brume plan` means that there is something to do.
    return exit === 2 && command?.words[0] === "plan" ? 1 : exit;
  }
}
