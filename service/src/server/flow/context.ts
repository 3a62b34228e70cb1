/** Types that all flows of servers share: their dependencies, who requested the work, and the facts that their steps store. */
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Sealer } from "../../base/secret.ts";
import type { Uploads } from "../../drivers/content/interface.ts";
import type { Consoles, Identity, Images, Machines } from "../../drivers/machine/interface.ts";
import type { Flow, Step } from "../../engine/flow.ts";
import type { NetworkEnvironment } from "../../network/model/networkspec.ts";
import type { NetworkReconciler } from "../../network/portchanges.ts";
import type { NetworkStatusCache } from "../../network/statuscache.ts";
import type { Store } from "../../store/db.ts";
import type { MachineStatusCache } from "../machinestatus.ts";
import type { Sizes } from "../model/resize.ts";
import type { ServerRow } from "../table.ts";

/** Dependencies of the flows and reconcilers of servers. */
export interface FlowContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly sealer: Sealer;
  /** Hash of the administrator's password, in the format of /etc/shadow. */
  readonly hashOf: (server: ServerRow) => string;
  /** Returns `bytes` random bytes, for passwords. */
  readonly random: (bytes: number) => Uint8Array;
  readonly machines: Machines;
  readonly images: Images;
  readonly uploads: Uploads;
  readonly consoles: Pick<Consoles, "readLog">;
  readonly machineStatus: MachineStatusCache;
  /** Observed status of the networks, and the reconciler that applies their desired state. */
  readonly networks: { readonly live: Pick<NetworkStatusCache, "portOf">; readonly apply: NetworkReconciler };
  readonly surroundings: NetworkEnvironment;
  /** Connects from inside the network to port 22 of the address. Resolves within 2 s to whether it sends an SSH banner. */
  readonly sendsSshBanner: (network: number, address: string) => Promise<boolean>;
  /** Returns the flow of a task by its name, for tasks that are canceled before they start. */
  readonly flowOf: (name: string) => Flow | undefined;
}

/** The token and the request that caused a change. Null instead of a cause: the service itself. */
export interface Cause {
  readonly token: number | null;
  readonly request: string | null;
}

/** A network, and its generation after a change of its links. */
export interface RaisedNetwork {
  readonly network: number;
  readonly generation: number;
}

/** The image that a disk was created from, as the row of its server names it. */
export type DiskOrigin = Pick<ServerRow, "image_id" | "image_name" | "family" | "guest">;

/** Results of steps that later steps of the same flow read. Stored in task rows, so the keys keep their names. */
export interface Facts {
  readonly by: Cause | null;
  /** Id of the link that the flow adds. */
  readonly link: number;
  /** Generation of its network with which the link was added or changed. */
  readonly generation: number;
  /** Whether the server was on before the step. */
  readonly wasOn: boolean;
  /** Sizes before the step. */
  readonly was: Sizes;
  /** Boot number that the step started. */
  readonly boot: number;
  /** Smallest disk of a server that is created from the image, in GB. */
  readonly gb: number;
  /** Whether the identity of the guest was removed from the image. */
  readonly identity: Identity;
  /** Image of the disk in the snapshot. */
  readonly origin: DiskOrigin;
  /** Disk version that a rebuild created. */
  readonly disk: number;
  /** Ids of the networks that the server was linked to. */
  readonly networks: readonly number[];
  /** Generations of these networks without its links. */
  readonly left: readonly RaisedNetwork[];
}

/** A step of a server flow. */
export type ServerStep<Input> = Step<Input, Facts>;
