/** Flags that every command takes. */
import type { Flag } from "./commands.ts";
import type { Schema } from "./schema.ts";

const option = (name: string, schema: Schema, description: string, short?: string): Flag => ({
  field: name,
  place: "option",
  schema,
  kind: null,
  name,
  required: false,
  description,
  ...(short !== undefined && { short }),
});

/** Forms of the output. */
export const formats = ["table", "wide", "json", "yaml", "name"] as const;
/** Form of the output. */
export type Format = (typeof formats)[number];

const yes = { type: "boolean" } as const;
const text = { type: "string" } as const;

/** Flags of all commands. */
export const commonFlags: readonly Flag[] = [
  option(
    "output",
    { type: "string", enum: formats },
    "Form of the output: `table` and `wide` for people; `json` and `yaml` as the API returns it; `name` for other commands.",
    "o",
  ),
  option("quiet", yes, "Print only errors.", "q"),
  option("context", text, "Use this installation instead of the current one.", "c"),
  option("color", yes, "Use colours. Default: on a terminal, unless `NO_COLOR` is set."),
  option("help", yes, "Show the help of the command.", "h"),
];

/** Flags of commands that change something. */
export const changeFlags: readonly Flag[] = [
  option(
    "wait",
    yes,
    "Wait until the change has taken effect, and show its steps. This is the default; `--no-wait` does not wait.",
  ),
  option(
    "timeout",
    { type: "integer", minimum: 1, maximum: 86_400 },
    "Wait at most this number of seconds. Default 900.",
  ),
  option("dry-run", yes, "Validate only; change nothing."),
  option("strict", yes, "Reject fields that the service would ignore."),
  option(
    "file",
    text,
    "Read the fields of the request from this JSON or YAML file; `-` is standard input. Flags win.",
    "f",
  ),
];

/** The flag of commands that prompt. */
export const yesFlag = option("yes", yes, "Do not prompt before the change.", "y");

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
