/** Starts programs in a namespace and exchanges lines with them; all end with the test file. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";

export interface SpaceProcess {
  /** Resolves to the next line of its output; rejects if it ended without one. */
  line(): Promise<string>;
  send(line: string): void;
  /** Resolves to the rest of its output after it has ended by itself. */
  rest(): Promise<string>;
  /** Interrupts it, as Ctrl-C does. */
  stop(): void;
  end(): void;
}

/** Starts the command in the namespace. */
export function startIn(space: string, argv: readonly string[]): SpaceProcess {
  const child = spawn("ip", ["netns", "exec", space, ...argv], { stdio: ["pipe", "pipe", "inherit"] });
  const kill = () => void child.kill("SIGKILL");
  process.once("exit", kill);
  child.once("exit", () => process.off("exit", kill));
  child.stdin.on("error", () => {});
  let lines: AsyncIterator<string> | undefined;
  return {
    async line() {
      lines ??= createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      const next: IteratorResult<string, unknown> = await lines.next();
      if (next.done === true) throw new Error(`${argv.join(" ")} ended without another line`);
      return next.value;
    },
    send: (line) => void child.stdin.write(`${line}\n`),
    rest: () => text(child.stdout),
    stop: () => void child.kill("SIGINT"),
    end: kill,
  };
}

const endpoint = join(import.meta.dirname, "endpoint.ts");

/** Starts one of the modes of `endpoint.ts`. */
export const startEndpoint = (space: string, ...args: readonly string[]): SpaceProcess =>
  startIn(space, [process.execPath, endpoint, ...args]);
