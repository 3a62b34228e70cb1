/** What flows of servers have in their hands, what they find out, and how they say what went wrong. */
import { taskErrors, type WorkCode } from "@brume/api/work.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Sealer } from "../../base/secret.ts";
import type { Consoles, Identity, Images, Machines } from "../../drivers/machine/interface.ts";
import { type Flow, type Reconciler, type Step, StepError } from "../../engine/flow.ts";
import type { TaskError } from "../../engine/task.ts";
import type { NetworkEnvironment } from "../../network/model/networkspec.ts";
import type { NetworkStatusCache } from "../../network/statuscache.ts";
import type { Store } from "../../store/db.ts";
import type { MachineStatusCache } from "../machinestatus.ts";
import type { Sizes } from "../model/resize.ts";
import type { ServerRow } from "../table.ts";

export interface FlowContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly sealer: Sealer;
  /** Of the administrator's password, as in /etc/shadow. */
  readonly hashOf: (server: ServerRow) => string;
  /** Random bytes, of passwords. */
  readonly random: (bytes: number) => Uint8Array;
  readonly machines: Machines;
  readonly images: Images;
  readonly consoles: Pick<Consoles, "readLog">;
  readonly machineStatus: MachineStatusCache;
  readonly networks: { readonly live: Pick<NetworkStatusCache, "of">; readonly apply: Reconciler };
  readonly surroundings: NetworkEnvironment;
  /** Whether port 22 of the address, asked inside the network, greets as SSH does. Ends within two seconds. */
  readonly greetsSsh: (network: number, address: string) => Promise<boolean>;
  /** By name: of a task that was canceled before its turn came. */
  readonly flowOf: (name: string) => Flow | undefined;
}

/** Who asked for it; null: the service itself. */
export interface Cause {
  readonly token: number | null;
  readonly request: string | null;
}

/** What steps of servers' flows find out. */
export interface Facts {
  readonly by: Cause | null;
  /** The link that the flow makes. */
  readonly link: number;
  /** As it was before the step. */
  readonly wasOn: boolean;
  readonly was: Sizes;
  /** Of the start that the step made. */
  readonly boot: number;
  /** Of the disk of an image. */
  readonly gb: number;
  /** Whether an image tells who its server was. */
  readonly identity: Identity;
  /** Version that a rebuild has made. */
  readonly disk: number;
  /** That the server was in. */
  readonly networks: readonly number[];
}

export type ServerStep<Input> = Step<Input, Facts>;
export const stepErrorOf = (code: WorkCode, detail: string, options: ConstructorParameters<typeof StepError>[3] = {}) =>
  new StepError(code, taskErrors[code], detail, options);

export const errorFor = (code: WorkCode, detail: string, step: string | null = null): TaskError => ({
  code,
  title: taskErrors[code],
  detail,
  step,
});

/** The server's process said nothing, so it is not known whether the work was done. */
const isSilence = (cause: unknown): boolean =>
  cause instanceof Error && "isSilence" in cause && cause.isSilence === true;

const mostCharacters = 300;

/** What no second try mends says so itself. */
const isFinal = (cause: unknown): boolean => cause instanceof Error && "final" in cause && cause.final === true;

/** What fails in it fails with this code, the sentence, and the first line of what went wrong. */
export async function attempt<T>(
  code: WorkCode,
  sentence: string,
  work: () => Promise<T>,
  log: () => Promise<string | null> = async () => null,
): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof StepError) throw cause;
    const reason = cause instanceof Error ? (cause.message.split("\n")[0] ?? "") : String(cause);
    const final = isFinal(cause);
    throw stepErrorOf(
      isSilence(cause) ? "host_lost" : final && code === "boot_failed" ? "disk_missing" : code,
      `${sentence}: ${reason.slice(0, mostCharacters)}`,
      { cause, final, log: await log() },
    );
  }
}
