/** The processes of a service with an agent and a control plane, and pings that notice every lost packet. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";

/** Returns the arguments of a process, "" if it has ended meanwhile. */
function readCommand(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

/** PIDs of the supervisor's children, by their argument. */
export function halvesOf(supervisor: number): Readonly<Record<string, number>> {
  const pids = readFileSync(`/proc/${supervisor}/task/${supervisor}/children`, "utf8").trim().split(" ");
  return Object.fromEntries(
    pids.flatMap((pid) => {
      const words = readCommand(pid).split("\0").filter(Boolean);
      const role = words.at(-1) ?? "";
      return words.some((word) => word.endsWith("/main.js")) ? [[role, Number(pid)]] : [];
    }),
  );
}

/** Pings an address ten times a second from a namespace. `end` resolves to the numbers of pings that had no answer within a second. */
export function startPing(space: string, address: string): { end(): Promise<readonly number[]> } {
  const argv = [`--net=/run/netns/${space}`, "ping", "-n", "-i", "0.1", address];
  const child: ChildProcess = spawn("nsenter", argv, { stdio: ["ignore", "pipe", "ignore"] });
  let output = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (output += text));
  return {
    async end() {
      // The last ping gets its answer.
      await new Promise((done) => setTimeout(done, 1000));
      child.kill("SIGINT");
      await new Promise((done) => child.once("close", done));
      const [, sent = "0"] = /^(\d+) packets transmitted/m.exec(output) ?? [];
      const answered = new Set([...output.matchAll(/icmp_seq=(\d+) ttl/g)].map(([, number]) => Number(number)));
      assert.ok(Number(sent) > 10, output.slice(-300));
      // The last one may have been sent just before the end.
      return Array.from({ length: Number(sent) - 1 }, (_, index) => index + 1).filter(
        (number) => !answered.has(number),
      );
    },
  };
}
