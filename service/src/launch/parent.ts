/**
 * The connection between the supervisor and a process that it started: file descriptor 3, a stream. The supervisor sends one line of JSON
 * with the settings that must not be in the environment or in a readable file. It sends further lines when such settings change. The process
 * returns one line when it is ready.
 * The end of the stream means that the supervisor has ended, however it ended.
 */
import { Socket } from "node:net";
import { createInterface } from "node:readline";
import type { Account } from "./account.ts";

const descriptor = 3;
/** The line that a child writes when it serves. */
export const readyLine = "ready";
/** Name of the agent's socket in its folder. */
export const socketName = "socket";

/** What the agent process receives from the supervisor. */
export interface AgentSettings {
  /** Folder of its socket. */
  readonly agent: string;
  /** The user that may connect. */
  readonly account: Account;
}

/** Settings of the control plane. */
export interface ControlSettings {
  /** Folder with the agent's socket. */
  readonly agent: string;
  /** Whether this is its first start, which prints the introduction. */
  readonly isFirst: boolean;
  /** Where the settings come from: the variables that it receives do not show it. */
  readonly places: Readonly<Record<string, string>>;
  /** PEM texts of the API's certificate and key. */
  readonly tls: KeyTexts | null;
}

/** PEM texts of the API's certificate and key. The supervisor sends them again when the files have changed. */
export interface KeyTexts {
  readonly certificate: string;
  readonly key: string;
}

/** The supervisor, as its child sees it. */
export interface Parent<Settings> {
  readonly settings: Settings;
  /** Reports that the process is ready. */
  ready(): void;
  /** Calls the listener with each later line, for example changed settings, also with those that have already arrived. */
  onMessage(listener: (message: unknown) => void): void;
}

/** Connects to the supervisor. `lost` is called when it has ended. */
export function connectParent<Settings>(lost: () => void): Promise<Parent<Settings>> {
  const stream = new Socket({ fd: descriptor, readable: true, writable: true });
  const { promise, resolve, reject } = Promise.withResolvers<Parent<Settings>>();
  stream.on("error", lost);
  stream.on("close", lost);
  stream.on("end", lost);
  const lines = createInterface({ input: stream });
  /** Lines that arrived before there was a listener: until the process is ready, a certificate may change. */
  const early: string[] = [];
  let take = (line: string): void => void early.push(line);
  lines.once("line", (line) => {
    lines.on("line", (later) => take(later));
    try {
      resolve({
        settings: JSON.parse(line) as Settings,
        ready: () => void stream.write(`${readyLine}\n`),
        onMessage(listener) {
          take = (later) => listener(JSON.parse(later));
          for (const later of early.splice(0)) take(later);
        },
      });
    } catch (error) {
      reject(error);
    }
  });
  return promise;
}
