/** Completion for shells. The scripts call `brume __complete WORD…` with the words up to the cursor; it prints one candidate per line. */
import type { Command, Field } from "../model/commands.ts";
import { flagsOf } from "../model/parse.ts";
import { isSwitch, UsageError } from "../model/values.ts";
import { namesOf } from "../resolve.ts";
import { type Run, type Session, textArgument } from "../session.ts";

const scripts: Readonly<Record<string, string>> = {
  bash: `_brume() {
  local IFS=$'\\n'
  COMPREPLY=($(brume __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *[=,] ]] && compopt -o nospace
}
complete -o default -F _brume brume
`,
  zsh: `#compdef brume
_brume() {
  local -a candidates
  candidates=("\${(@f)$(brume __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n $candidates ]] && compadd -a candidates || _files
}
compdef _brume brume
`,
  fish: `complete -c brume -f -a '(brume __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
};

/** `brume completion SHELL`. */
export const script: Run = async (session) => {
  const shell = textArgument(session, 0);
  const text = scripts[shell];
  if (text === undefined)
    throw new UsageError(`There is no completion for "${shell}".`, `One of ${Object.keys(scripts).join(", ")}.`);
  session.host.out.write(text);
};

/** Values of a field: the choices of its schema, or names of objects. `null`: any text. */
async function valuesOf(session: Session, { kind, schema }: Field): Promise<string[]> {
  const choices = schema.enum ?? schema.items?.enum;
  if (choices) return choices.map(String);
  if (isSwitch(schema)) return ["true", "false"];
  if (kind === null || kind === "id") return [];
  // A shell waits for this: no answer is better than a late one.
  const late = new Promise<string[]>((resolve) => void setTimeout(() => resolve([]), 1500).unref());
  const names = session.any().then((client) => namesOf(client, kind));
  return Promise.race([names, late]).catch(() => []);
}

/** Returns the candidates for the last word. */
async function candidates(session: Session, words: readonly string[]): Promise<string[]> {
  const before = words.slice(0, -1);
  const last = words.at(-1) ?? "";
  const commands = session.commands.filter(({ hidden }) => hidden !== true);
  const fits = (command: Command) => command.words.every((word, index) => before[index] === word);
  const command = commands.filter(fits).toSorted((a, b) => b.words.length - a.words.length)[0];
  if (!command) {
    const possible = commands.filter((one) => before.every((word, index) => one.words[index] === word));
    return [...new Set(possible.map((one) => one.words[before.length] ?? ""))];
  }
  const flags = flagsOf(command);
  const rest = before.slice(command.words.length);
  const flagOf = (word: string | undefined) =>
    flags.find(({ name, short }) => word === `--${name}` || word === `-${short}`);
  const open = flagOf(rest.at(-1));
  if (open && !isSwitch(open.schema)) return valuesOf(session, open);
  if (last.startsWith("-"))
    return flags.flatMap(({ name, schema }) =>
      isSwitch(schema) && name !== "help" ? [`--${name}`, `--no-${name}`] : [`--${name}`],
    );
  const given = rest.filter((word, index) => {
    const flag = flagOf(rest[index - 1]);
    return !word.startsWith("-") && !(flag && !isSwitch(flag.schema));
  });
  const argument = command.args[given.length];
  return argument ? valuesOf(session, argument) : [];
}

/** `brume __complete -- WORD…`. Prints nothing on an error: a shell cannot show it. */
export const complete: Run = async (session) => {
  const words = session.line.args;
  const last = words.at(-1) ?? "";
  const head = last.includes(",") ? last.slice(0, last.lastIndexOf(",") + 1) : "";
  const found = await candidates(session, words);
  const lines = found.map((one) => head + one).filter((one) => one.startsWith(last) && !/[\n\r]/.test(one));
  if (lines.length > 0) session.host.out.write(`${lines.join("\n")}\n`);
};
