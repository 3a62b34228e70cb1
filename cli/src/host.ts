/** What the command line needs from the computer that it runs on. Tests replace it; `main.ts` connects it to the process. */

/** The environment of one call. */
export interface Host {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Home folder of the user. */
  readonly home: string;
  /** Folder of the installation that this program is part of, or null for a package. */
  readonly installation: string | null;
  readonly version: string;
  /** Standard output and error, and whether they are terminals. */
  readonly out: Output;
  readonly err: Output;
  readonly input: Input;
  /** Aborts when the user presses Ctrl-C. */
  readonly signal: AbortSignal;
  readonly now: () => number;
  readonly fetch?: typeof fetch;
  /** Runs a program with the terminal of this one; resolves to its exit code. No shell is involved. */
  run(program: string, args: readonly string[]): Promise<number>;
  /** Runs a program and resolves to its output. Rejects with its error output if it fails. */
  capture(program: string, args: readonly string[]): Promise<string>;
}

/** A stream that is written to. */
export interface Output {
  write(text: string): void;
  readonly isTerminal: boolean;
  /** Width in characters; 0: unknown. */
  readonly columns: number;
  readonly rows: number;
}

/** Standard input. */
export interface Input {
  readonly isTerminal: boolean;
  /** Reads everything up to the end. */
  readAll(): Promise<string>;
  /** Writes the prompt to standard error, and resolves to the next line, which the terminal does not show if it is a secret. */
  ask(prompt: string, isSecret?: boolean): Promise<string>;
  /** Passes every key to `take` without echo until the returned function is called. */
  raw(take: (data: Uint8Array) => void): () => void;
}
