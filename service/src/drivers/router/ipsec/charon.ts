/**
 * Manages one charon of strongSwan in one namespace. After a restart of the service it finds a running charon by its socket, so tunnels are
 * not interrupted; otherwise it starts one. It reports the end of the process at once. The socket file stays after a crash, and a daemon
 * that hangs still accepts connections, so only a response proves that it runs.
 */
import { mkdir, rm, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { endOfLog } from "../../../base/logfile.ts";
import type { Exec } from "../../exec.ts";
import type { Confine } from "../linux/confine.ts";
import { stopDaemons, waitForStart } from "../linux/daemon.ts";
import { awaitHandshakes } from "./state.ts";
import { renderDaemon } from "./strongswan.ts";
import { connectVici, type Vici } from "./vici.ts";

/** Options of `createCharon`. */
export interface CharonOptions {
  readonly exec: Exec;
  /** Folder for socket, configuration and output of this daemon; created with mode 700, removed by `stop`. */
  readonly folder: string;
  readonly namespace: string;
  readonly kernelEsp: boolean;
  readonly confine: Confine;
  /** Milliseconds that `stop` waits at most for handshakes in progress. */
  readonly handshakeLimit: number;
  /** Called with each new connection before it is used, to subscribe to events. */
  readonly onConnect: (vici: Vici) => Promise<void>;
  /** Called when the daemon or the connection to it ended without `stop` or `release`. */
  readonly onLost: () => void;
}

/** The daemon of one namespace. */
export interface Charon {
  /** Returns the connection to the daemon, which it finds or starts first. Calls must not overlap. */
  connect(): Promise<Vici>;
  /** Returns the current connection, null while there is none. */
  current(): Vici | null;
  /** Notifies the peers, ends the daemon and removes its files. Resolves also when there is none. */
  stop(): Promise<void>;
  /** Closes the connection; the daemon continues to run. */
  release(): void;
}

/** Name of the program. */
export const program = "charon-systemd";
/** Folder of its libraries and plugins, which it loads by name. */
export const programData = ["/usr/lib/ipsec"];
/** Seconds in which the kernel keeps the number of a security association that is being negotiated, as charon sets it. */
const acquireLimit = 165;

/** Creates the manager; it starts nothing yet. */
export function createCharon(options: CharonOptions): Charon {
  const { exec, folder, namespace, kernelEsp, confine, handshakeLimit, onConnect, onLost } = options;
  const socket = join(folder, "charon.vici");
  const output = join(folder, "charon.out");
  let live: Vici | null = null;

  const end = (signal: "SIGTERM" | "SIGKILL"): Promise<void> => stopDaemons(exec, namespace, program, folder, signal);

  /** Connects to a running daemon; null if none listens or responds. */
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
    const enter = ["ip", "netns", "exec", namespace];
    // Charon sets this itself, but does not see the file.
    if (kernelEsp) await exec.run([...enter, "sysctl", "-eqw", `net.core.xfrm_acq_expires=${acquireLimit}`]);
    const child = await exec.startDetached([...enter, ...(await confine([], folder))], {
      environment: { STRONGSWAN_CONF: configuration },
      output,
    });
    const vici = await waitForStart(exec, child, find);
    if (vici !== null) return vici;
    const printed = endOfLog(output, 1000);
    exec.signal(child, "SIGKILL");
    throw new Error(`charon in ${namespace} did not start: ${printed || "no output"}`);
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
      const vici = live ?? (await find());
      live = null;
      if (vici !== null) await awaitHandshakes(vici, () => true, performance.now(), handshakeLimit).catch(() => {});
      vici?.close();
      await end("SIGTERM");
      await rm(folder, { recursive: true, force: true });
      // The folder is shared with other engines of the namespace; the last one removes it.
      await rmdir(dirname(folder)).catch(() => {});
    },
    release() {
      const vici = live;
      live = null;
      vici?.close();
    },
  };
}
