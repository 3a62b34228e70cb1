/**
 * One charon of strongSwan in one namespace, as long as somebody wants it: found again by its socket after a restart of the service
 * (its tunnels never notice), started where there is none, missed at once when it dies. Its socket file stays after a crash, and a
 * daemon that hangs still takes connections, so only an answer counts.
 */
import { mkdir, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Exec } from "../../exec.ts";
import { stopDaemons } from "../linux/daemon.ts";
import { awaitHandshakes } from "./state.ts";
import { renderDaemon } from "./strongswan.ts";
import { connectVici, type Vici } from "./vici.ts";

export interface CharonOptions {
  readonly exec: Exec;
  /** For socket, configuration and output of this one daemon; made with mode 700, removed by `stop`. */
  readonly folder: string;
  readonly namespace: string;
  readonly kernelEsp: boolean;
  /** Sees each new connection before anybody else, to listen to events. */
  readonly onConnect: (vici: Vici) => Promise<void>;
  /** The daemon, or our connection to it, ended without being asked to. */
  readonly onLost: () => void;
}

export interface Charon {
  /** The connection to the running daemon, which is found or started first. Calls must not overlap. */
  connect(): Promise<Vici>;
  /** The connection as it is, null while there is none. */
  current(): Vici | null;
  /** Says goodbye to the peers, ends the daemon and removes its files. Nothing to end is fine. */
  stop(): Promise<void>;
  /** Forgets the daemon, which goes on. */
  release(): void;
}

const program = "charon-systemd";
const startLimit = 5000;

export function createCharon({ exec, folder, namespace, kernelEsp, onConnect, onLost }: CharonOptions): Charon {
  const socket = join(folder, "charon.vici");
  const output = join(folder, "charon.out");
  let live: Vici | null = null;

  const end = (signal: "SIGTERM" | "SIGKILL"): Promise<void> => stopDaemons(exec, namespace, program, folder, signal);

  /** Null: nobody listens there, or nobody answers. */
  const find = async (): Promise<Vici | null> => {
    const vici = await connectVici(socket).catch(() => null);
    if (vici === null) return null;
    try {
      await vici.call("version", {}, 2000);
      return vici;
    } catch {
      vici.close();
      return null;
    }
  };

  const start = async (): Promise<Vici> => {
    await end("SIGKILL");
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await Promise.all([rm(socket, { force: true }), rm(output, { force: true })]);
    const configuration = join(folder, "strongswan.conf");
    await writeFile(configuration, renderDaemon({ socket, kernelEsp }), { mode: 0o600 });
    const child = await exec.startDetached(["ip", "netns", "exec", namespace, program], {
      environment: { STRONGSWAN_CONF: configuration },
      output,
    });
    for (let waited = 0; waited < startLimit && exec.isAlive(child); waited += 20) {
      const vici = await find();
      if (vici !== null) return vici;
      await sleep(20);
    }
    const said = (await readFile(output, "utf8").catch(() => "")).trim().slice(-1000);
    exec.signal(child, "SIGKILL");
    throw new Error(`charon in ${namespace} does not start: ${said || "it is silent"}`);
  };

  return {
    async connect() {
      if (live !== null) return live;
      const vici = (await find()) ?? (await start());
      await onConnect(vici);
      live = vici;
      vici.onClose(() => {
        if (live !== vici) return;
        live = null;
        onLost();
      });
      return vici;
    },
    current: () => live,
    async stop() {
      const vici = live;
      live = null;
      if (vici !== null) await awaitHandshakes(vici, () => true).catch(() => {});
      vici?.close();
      await end("SIGTERM");
      await rm(folder, { recursive: true, force: true });
      // Shared with other engines of the namespace; the last one takes it away.
      await rmdir(dirname(folder)).catch(() => {});
    },
    release() {
      const vici = live;
      live = null;
      vici?.close();
    },
  };
}
