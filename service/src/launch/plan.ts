/** What `start.ts` decides and `supervisor.ts`, a process of its own, carries out: plain data. */
import type { Account } from "./account.ts";

/** The processes to start, and their rights. */
export interface Plan {
  /** Folder for files of running programs. */
  readonly runFolder: string;
  /** Folder of the control plane. */
  readonly controlFolder: string;
  readonly account: Account;
  /** Whether the control plane listens on a port below 1024. */
  readonly lowPorts: boolean;
  /** Paths that the control plane may read. */
  readonly readable: readonly string[];
  /** Command line of each process. */
  readonly commands: { readonly agent: readonly string[]; readonly control: readonly string[] };
  /** Settings for each process, and the names of those that it does not receive. */
  readonly environments: { readonly agent: Environment; readonly control: Environment };
  /** Paths of the API's certificate and key. */
  readonly tls: { readonly certificate: string; readonly key: string } | null;
  /** Where the settings come from, without folders. */
  readonly places: Readonly<Record<string, string>>;
  /** Milliseconds that each process gets to stop. */
  readonly grace: number;
  /** Whether warnings are logged. */
  readonly warns: boolean;
}

/** Changes of the environment for a child. */
export interface Environment {
  readonly set: Readonly<Record<string, string>>;
  readonly omit: readonly string[];
}
