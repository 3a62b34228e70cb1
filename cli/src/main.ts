/** The program `brume`: connects the command line to the process. It is the only module that reads the environment. */
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Host, Input, Output } from "./host.ts";
import { request } from "./request.ts";
import { run } from "./run.ts";

const folder = dirname(dirname(fileURLToPath(import.meta.url)));
const above = dirname(folder);
const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string };

const outputOf = (stream: NodeJS.WriteStream): Output => ({
  write: (text) => void stream.write(text),
  isTerminal: stream.isTTY,
  get columns() {
    return stream.columns ?? 0;
  },
  get rows() {
    return stream.rows ?? 24;
  },
});

/** Returns a stream that drops everything: readline writes to it what a user types. */
async function openSink(): Promise<NodeJS.WritableStream> {
  const { Writable } = await import("node:stream");
  return new Writable({ write: (_chunk, _encoding, done) => done() });
}

const input: Input = {
  get isTerminal() {
    return process.stdin.isTTY;
  },
  async readAll() {
    const parts: Buffer[] = [];
    for await (const part of process.stdin) parts.push(part as Buffer);
    return Buffer.concat(parts).toString("utf8");
  },
  async ask(prompt, isSecret = false) {
    const { createInterface } = await import("node:readline/promises");
    const shown = process.stderr;
    const output = isSecret ? await openSink() : shown;
    const lines = createInterface({ input: process.stdin, output, ...(isSecret && { terminal: true }) });
    // After the interface is open, because until then the terminal shows what one types.
    if (isSecret) shown.write(prompt);
    try {
      return await lines.question(prompt, { signal: stopped.signal });
    } finally {
      lines.close();
      if (isSecret) shown.write("\n");
    }
  },
  raw(take) {
    if (process.stdin.isTTY) process.stdin.setRawMode(true);
    process.stdin.on("data", take);
    process.stdin.resume();
    return () => {
      process.stdin.off("data", take);
      if (process.stdin.isTTY) process.stdin.setRawMode(false);
      process.stdin.pause();
    };
  },
};

const stopped = new AbortController();
process.once("SIGINT", () => stopped.abort(new DOMException("Ctrl-C", "AbortError")));
// A closed pipe, as with `brume … | head`, is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
// Messages that nothing reads do not end the command, and do not change its exit code.
process.stderr.on("error", () => {});

const host: Host = {
  env: process.env,
  home: homedir(),
  installation: existsSync(join(above, "service/src/main.ts")) ? above : null,
  version,
  out: outputOf(process.stdout),
  err: outputOf(process.stderr),
  input,
  signal: stopped.signal,
  now: Date.now,
  fetch: request,
  async run(program, args) {
    const { spawn } = await import("node:child_process");
    return new Promise((resolve, reject) => {
      const child = spawn(program, args, { stdio: "inherit" });
      child.once("error", reject);
      child.once("exit", (code, signal) => resolve(code ?? (signal === null ? 1 : 128)));
    });
  },
  async capture(program, args) {
    const [{ execFile }, { promisify }] = await Promise.all([import("node:child_process"), import("node:util")]);
    return (await promisify(execFile)(program, [...args], { timeout: 30_000 })).stdout;
  },
};

// The bundle is CommonJS, which has no await outside functions.
async function main(): Promise<void> {
  process.exitCode = await run(process.argv.slice(2), host);
  if (stopped.signal.aborted) process.exit();
}

void main();
