/** One live line on the terminal while a change takes effect: the running step, all steps, percent, time. Without a terminal: nothing. */
import type { Action } from "@brume/api/action.ts";
import type { Host } from "./host.ts";
import type { Options } from "./model/options.ts";
import { createStyle, safe, widthOf } from "./print/style.ts";

/** A line that is replaced until it ends. */
export interface Progress {
  /** Shows a text after the subject: `web-1: Disk …`. */
  show(text: string): void;
  /** Shows the steps of an action. */
  action(action: Action): void;
  /** Removes the line. */
  end(): void;
}

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const marks: Readonly<Record<string, string>> = {
  Completed: "✓",
  Failed: "✗",
  Undone: "↶",
  InProgress: "…",
  Pending: "·",
};

/** Returns the steps of an action in one line: `✓ Reserve  … Disk 40 %  · Network  · Boot`. */
export function describeAction({ Steps, State, Progress: percent }: Action): string {
  if (State === "Postponed") return "waits for other actions of the server";
  const steps = Steps.map(({ Name, State: state, Detail }) => {
    const detail = state === "InProgress" && Detail !== "" ? ` (${Detail})` : "";
    return `${marks[state] ?? "·"} ${Name}${detail}`;
  });
  return `${percent}%  ${steps.join("  ")}`;
}

/** Creates the line of a subject, such as the name of a server. */
export function createProgress({ err, now, env }: Host, options: Options, subject: string): Progress {
  const isLive = err.isTerminal && !options.quiet && env["TERM"] !== "dumb";
  const style = createStyle(isLive && (options.color ?? !env["NO_COLOR"]));
  const start = now();
  let text = "";
  let frame = 0;
  let timer: ReturnType<typeof setInterval> | null = null;

  function draw() {
    const seconds = Math.floor((now() - start) / 1000);
    const width = Math.max(20, (err.columns || 80) - 1);
    let line = `${subject}: ${text}  ${seconds} s`;
    while (widthOf(line) > width - 2) line = line.slice(0, -1);
    frame = (frame + 1) % frames.length;
    err.write(`\r\u001B[K${style.green(frames[frame] ?? "")} ${safe(line)}`);
  }

  function show(next: string) {
    if (!isLive) return;
    text = next;
    timer ??= setInterval(draw, 120);
    draw();
  }

  return {
    show,
    action: (action) => show(describeAction(action)),
    end() {
      if (timer === null) return;
      clearInterval(timer);
      timer = null;
      err.write("\r\u001B[K");
    },
  };
}
