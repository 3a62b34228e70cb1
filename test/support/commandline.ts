/** Runs the command line inside the test process, on a service of the test. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Host, Output } from "../../cli/src/host.ts";
import { run } from "../../cli/src/run.ts";

/** Result of a call. */
export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** What a call gets besides its arguments. */
export interface Situation {
  /** Standard input; a list: the answers to prompts on a terminal. */
  readonly input?: string | readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Output and error are terminals of this width. */
  readonly terminal?: number;
  /** Folder of the installation that the command belongs to; default: none. */
  readonly installation?: string;
  readonly signal?: AbortSignal;
  /** Sends the requests; default: the global one. */
  readonly fetch?: typeof fetch;
  /** Records programs instead of running them; returns the exit code. */
  readonly run?: (program: string, args: readonly string[]) => number;
  readonly capture?: (program: string, args: readonly string[]) => string;
  readonly onOut?: (text: string) => void;
  readonly onErr?: (text: string) => void;
  /** Receives the function that types keys, while the command reads them. */
  readonly onKeys?: (type: (text: string) => void) => void;
}

/** Calls the command line. */
export type CommandLine = ((line: string | readonly string[], situation?: Situation) => Promise<Outcome>) & {
  /** Home folder of the calls. */
  readonly home: string;
  readonly close: () => void;
};

/** Creates a caller whose local installation is at `url`. */
export function createCommandLine(url: string, token: string): CommandLine {
  const configFolder = mkdtempSync(join(tmpdir(), "brume-cli-"));
  const call = async (line: string | readonly string[], situation: Situation = {}): Promise<Outcome> => {
    let out = "";
    let err = "";
    const { terminal = 0, input = "" } = situation;
    const output = (take: (text: string) => void): Output => ({
      write: take,
      isTerminal: terminal > 0,
      columns: terminal,
      rows: 24,
    });
    const answers = typeof input === "string" ? [] : [...input];
    let unread = String(input);
    const host: Host = {
      env: { BRUME_URL: url, BRUME_TOKEN: token, ...situation.env },
      home: configFolder,
      installation: situation.installation ?? null,
      version: "0.0.0",
      out: output((text) => {
        out += text;
        situation.onOut?.(text);
      }),
      err: output((text) => {
        err += text;
        situation.onErr?.(text);
      }),
      input: {
        isTerminal: typeof input !== "string",
        // A stream has nothing more after its end.
        async readAll() {
          const text = unread;
          unread = "";
          return text;
        },
        async ask(prompt) {
          err += prompt;
          return answers.shift() ?? "";
        },
        raw(take) {
          situation.onKeys?.((text) => take(Buffer.from(text)));
          return () => {};
        },
      },
      signal: situation.signal ?? new AbortController().signal,
      now: Date.now,
      ...(situation.fetch && { fetch: situation.fetch }),
      run: async (program, args) => situation.run?.(program, args) ?? 0,
      capture: async (program, args) => situation.capture?.(program, args) ?? "",
    };
    const argv = typeof line === "string" ? line.split(" ").filter((word) => word !== "") : line;
    return { code: await run(argv, host), out, err };
  };
  return Object.assign(call, {
    home: configFolder,
    close: () => rmSync(configFolder, { recursive: true, force: true }),
  });
}
