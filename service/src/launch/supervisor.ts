/**
 * The parent of the service's two processes, as root: the agent, which drives the host, and the control plane, which serves clients without
 * any right. It reads nothing from the network, decides nothing, and loads little. It starts the programs that the agent needs. If one of
 * the two ends, it starts that one again and leaves the other alone. If the supervisor itself ends, both end at once, and the next start
 * continues where they were. `start.ts` replaces itself by this program, so it has the PID of the service.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { createChildren, type StartRequest } from "../drivers/children.ts";
import { confine, trial, trialText } from "./confine.ts";
import { type AgentSettings, type ControlSettings, readyLine } from "./parent.ts";
import type { Environment, Plan } from "./plan.ts";
import { readFiles, stampOf, watchFiles } from "./tlsfiles.ts";

/** Milliseconds before an ended process is started again: the first pause, which doubles each time, and the longest one. */
const pauses = { first: 100, last: 30_000 };
/** Milliseconds after which a process counts as running well, so that the next pause is the first one again. */
const well = 60_000;
/** Bytes that are read from a child. A hostile one may send any number. */
const most = 64;

type Name = "agent" | "control";
const titles = { agent: "agent", control: "control plane" } as const;

const plan = JSON.parse(process.argv[2] ?? "") as Plan;
const { account, runFolder } = plan;
const agentFolder = join(runFolder, "agent");
const base = join(runFolder, "control");

/** Writes a line as `base/log.ts` does, without loading it. */
function warn(msg: string, detail: object = {}): void {
  const line = { level: 40, time: new Date().toISOString(), process: "supervisor", ...detail, msg };
  if (plan.warns) process.stderr.write(`${JSON.stringify(line)}\n`);
}

/** Creates the folders that both processes use. Only root and the user of the control plane may enter that of the agent's socket. */
function createFolders(): void {
  for (const folder of [runFolder, agentFolder, base]) mkdirSync(folder, { recursive: true });
  chmodSync(runFolder, 0o711);
  chownSync(agentFolder, 0, account.gid);
  chmodSync(agentFolder, 0o710);
  chmodSync(base, 0o700);
}

/** Returns why the host, such as some containers, permits no private root; null: it does. */
function whyNoPrivateRoot(): string | null {
  const [program = "", ...rest] = trial;
  const { status, stderr, error } = spawnSync(program, [...rest, trialText, base], { encoding: "utf8" });
  return status === 0 ? null : (error?.message ?? stderr.trim());
}

/** Continues as a service in one process. Real networks need the same right as a private root. */
async function becomeOneProcess(reason: string): Promise<void> {
  warn(
    "The process that serves clients has all rights of root: this host permits no private mounts, as in a container. Start Brume on the host itself, or let the container mount (CAP_SYS_ADMIN).",
    { reason },
  );
  isStopping = true;
  await end("agent");
  const environment = { ...process.env, BRUME_PROCESSES: "1" } as Record<string, string>;
  process.execve?.(process.execPath, [process.execPath, ...plan.commands.control.slice(1, -1)], environment);
}

function environmentOf({ set, omit }: Environment): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !omit.includes(name));
  return { ...Object.fromEntries(inherited), ...set };
}

createFolders();
const readable = [...plan.readable, agentFolder];
const commands: Readonly<Record<Name, readonly string[]>> = {
  agent: plan.commands.agent,
  control: confine(
    { base, account, lowPorts: plan.lowPorts, readable, writable: plan.controlFolder },
    plan.commands.control,
  ),
};
const settings: Readonly<Record<Name, () => object>> = {
  agent: (): AgentSettings => ({ agent: agentFolder, account }),
  control: (): ControlSettings => ({
    agent: agentFolder,
    isFirst: !halves.control.isReady,
    places: plan.places,
    // Read at each start: the certificate may have been renewed. The user of the control plane may not read the key.
    tls: plan.tls && readFiles(plan.tls),
  }),
};

/** A process that is kept running. `child` is null while it does not run. */
interface Half {
  child: ChildProcess | null;
  pause: number;
  isReady: boolean;
}
const halves: Readonly<Record<Name, Half>> = {
  agent: { child: null, pause: pauses.first, isReady: false },
  control: { child: null, pause: pauses.first, isReady: false },
};
let isStopping = false;

/** Starts a process; the supervisor sends its settings, and is notified when it is ready and when it has ended. */
function start(name: Name): void {
  if (isStopping) return;
  const half = halves[name];
  const begun = performance.now();
  let line = "";
  try {
    line = `${JSON.stringify(settings[name]())}\n`;
  } catch (error) {
    return restart(name, 1, (error as Error).message, begun);
  }
  const [program = "", ...args] = commands[name];
  // In a process group of its own: a Ctrl-C at the terminal reaches only the supervisor, which stops both in order.
  const child = spawn(program, args, {
    env: environmentOf(plan.environments[name]),
    stdio: ["ignore", "inherit", "inherit", "pipe", ...(name === "agent" ? (["ipc"] as const) : [])],
    serialization: "advanced",
    detached: true,
  });
  half.child = child;
  const stream = child.stdio[3] as Socket;
  let text = "";
  stream.on("error", () => {});
  stream.on("data", (bytes: Buffer) => {
    if (text.length < most) text += bytes.toString("latin1", 0, most);
    if (text.startsWith(`${readyLine}\n`)) half.isReady = true;
  });
  stream.write(line);
  const children = createChildren((report) => void (child.connected && child.send(report, () => {})));
  if (name === "agent") child.on("message", (request: StartRequest) => children.handle(request));
  const ended = (code: number | null, why: string): void => {
    if (half.child !== child) return;
    half.child = null;
    children.end();
    restart(name, code, why, begun);
  };
  child.once("error", (error) => ended(1, error.message));
  child.once("exit", (code, signal) => ended(code, signal ?? `exit code ${code}`));
}

/** Starts a process that has ended again, or ends the service: if it is being stopped, or if a first start failed. */
function restart(name: Name, code: number | null, why: string, begun: number): void {
  const half = halves[name];
  if (isStopping) return;
  // At the first start the cause is a setting or the host, which a repetition does not change.
  if (code !== null && !(halves.agent.isReady && halves.control.isReady)) return void stop(code === 0 ? 1 : code);
  if (performance.now() - begun > well) half.pause = pauses.first;
  warn(`The ${titles[name]} ended (${why}). It is started again in ${half.pause / 1000} s.`);
  setTimeout(start, half.pause, name);
  half.pause = Math.min(half.pause * 2, pauses.last);
}

/** Stops one process; resolves to its exit code, null if a signal ended it or it did not run. */
function end(name: Name): Promise<number | null> {
  const { child } = halves[name];
  if (child === null) return Promise.resolve(null);
  return new Promise((resolve) => {
    child.once("exit", resolve);
    child.kill("SIGTERM");
    setTimeout(() => child.kill("SIGKILL"), plan.grace).unref();
  });
}

/** Stops the control plane, which finishes its requests, then the agent. */
async function stop(failed: number | null): Promise<never> {
  isStopping = true;
  const code = await end("control");
  await end("agent");
  return process.exit(failed ?? code ?? 0);
}

let since: number | null = null;
const onSignal = (): void => {
  // Under npm, Ctrl-C sends SIGINT twice at once. Only a signal at least 1 s later ends both immediately.
  if (since !== null) return Date.now() - since < 1000 ? undefined : process.exit(1);
  since = Date.now();
  void stop(null);
};
process.on("SIGTERM", onSignal);
process.on("SIGINT", onSignal);

if (plan.tls !== null)
  watchFiles(
    plan.tls,
    stampOf(plan.tls),
    (tls) => void (halves.control.child?.stdio[3] as Socket | undefined)?.write(`${JSON.stringify(tls)}\n`),
    (reason) => warn("The certificate of the API has changed and could not be read.", { reason }),
  );

// The agent starts while the trial runs.
start("agent");
const reason = whyNoPrivateRoot();
if (reason === null) start("control");
else void becomeOneProcess(reason);
