/** Commands that are no single operation: what they take, and the module of each, which is loaded when it runs. */
import type { Argument, Command, Flag } from "./model/commands.ts";
import type { Kind } from "./model/kinds.ts";
import type { Schema } from "./model/schema.ts";
import type { Run } from "./session.ts";

/** Modules by the words of the command. */
export const loaders: Readonly<Record<string, () => Promise<{ run: Run }>>> = {
  "context add": () => import("./special/context.ts").then((m) => ({ run: m.add })),
  "context list": () => import("./special/context.ts").then((m) => ({ run: m.list })),
  "context use": () => import("./special/context.ts").then((m) => ({ run: m.use })),
  "context remove": () => import("./special/context.ts").then((m) => ({ run: m.remove })),
};

const argument = (name: string, kind: Kind | null, description: string, more: Partial<Argument> = {}): Argument => ({
  field: name.toLowerCase(),
  place: "option",
  schema: { type: "string" },
  kind,
  name,
  required: true,
  file: false,
  description,
  ...more,
});

const flag = (name: string, schema: Schema, description: string, more: Partial<Flag> = {}): Flag => ({
  field: name,
  place: "option",
  schema,
  kind: null,
  name,
  required: false,
  description,
  ...more,
});

const special = (
  words: string,
  summary: string,
  description: string,
  more: Partial<Pick<Command, "args" | "flags" | "examples" | "hidden" | "destroys">> = {},
): Command => ({
  words: words.split(" "),
  summary,
  description,
  args: [],
  flags: [],
  operation: null,
  destroys: false,
  ...more,
});

const text: Schema = { type: "string" };
const contextName = argument("NAME", null, "Name of the context.");

/** All special commands. */
export const specialCommands: readonly Command[] = [
  special(
    "context add",
    "Add an installation, or replace it",
    "Prompts for the token, or reads it from standard input. After `--`, a program with arguments is stored that prints the token instead. The first context becomes the current one.",
    {
      args: [contextName],
      flags: [flag("url", text, "URL of the API, such as `https://cloud.example.com`.", { required: true })],
      examples: [
        "brume context add work --url https://cloud.example.com",
        "brume context add work --url https://cloud.example.com -- pass show brume/work",
      ],
    },
  ),
  special("context list", "List the installations", "The local installation needs no context. Tokens are never shown."),
  special("context use", "Make an installation the current one", "`local` is the installation on this host.", {
    args: [contextName],
  }),
  special("context remove", "Remove an installation from the list", "", { args: [contextName] }),
];
