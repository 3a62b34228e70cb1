/** Flags that every command takes. */
import type { Flag } from "./commands.ts";
import type { Schema } from "./schema.ts";

/** Returns a flag of a command that is no field of the API. `more` replaces properties. */
export const flag = (name: string, schema: Schema, description: string, more: Partial<Flag> = {}): Flag => ({
  field: name,
  place: "option",
  schema,
  kind: null,
  name,
  required: false,
  description,
  ...more,
});

/** Forms of the output. */
const formats = ["table", "wide", "json", "yaml", "name"] as const;
/** Form of the output. */
export type Format = (typeof formats)[number];

const yes = { type: "boolean" } as const;
const text = { type: "string" } as const;

/** Flags of all commands. */
export const commonFlags: readonly Flag[] = [
  flag(
    "output",
    { type: "string", enum: formats },
    "Form of the output: `table` and `wide` for people; `json` and `yaml` as the API returns it; `name` for other commands.",
    { short: "o" },
  ),
  flag("quiet", yes, "Print only errors.", { short: "q" }),
  flag("context", text, "Use this installation instead of the current one.", { short: "c" }),
  flag("color", yes, "Use colours. Default: on a terminal, unless `NO_COLOR` is set."),
  flag("help", yes, "Show the help of the command.", { short: "h" }),
];

/** Flags of commands that change something. */
export const changeFlags: readonly Flag[] = [
  flag(
    "wait",
    yes,
    "Wait until the change has taken effect, and show its steps. This is the default; `--no-wait` does not wait.",
  ),
  flag(
    "timeout",
    { type: "integer", minimum: 1, maximum: 86_400 },
    "Wait at most this number of seconds. Default 900.",
  ),
  flag("dry-run", yes, "Validate only; change nothing."),
  flag("strict", yes, "Reject fields that the service would ignore."),
  flag("file", text, "Read the fields of the request from this JSON or YAML file; `-` is standard input. Flags win.", {
    short: "f",
  }),
];

/** The flag of commands that prompt. */
export const yesFlag = flag("yes", yes, "Do not prompt before the change.", { short: "y" });

/** What the common flags select. */
export interface Options {
  readonly output: Format;
  readonly quiet: boolean;
  readonly context: string | null;
  readonly color: boolean | null;
  readonly help: boolean;
  readonly wait: boolean;
  /** Seconds. */
  readonly timeout: number;
  readonly dryRun: boolean;
  readonly strict: boolean;
  readonly file: string | null;
  readonly yes: boolean;
}

/** Returns the options from the values of the flags. */
export function readOptions(values: ReadonlyMap<string, unknown>): Options {
  const get = <T>(name: string, otherwise: T): T => (values.has(name) ? (values.get(name) as T) : otherwise);
  return {
    output: get<Format>("output", "table"),
    quiet: get("quiet", false),
    context: get<string | null>("context", null),
    color: get<boolean | null>("color", null),
    help: get("help", false),
    wait: get("wait", true),
    timeout: get("timeout", 900),
    dryRun: get("dry-run", false),
    strict: get("strict", false),
    file: get<string | null>("file", null),
    yes: get("yes", false),
  };
}
