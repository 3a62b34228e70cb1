/**
 * Composes the servers feature: its flows, its reconcilers, the commands that queue work, and the observed power state. A command takes
 * the transaction of the request, so the desired state, the task and the events are committed together.
 */
import type { ActionInput, WaitFor } from "@brume/api/action.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Sealer } from "../base/secret.ts";
import type { ImageRow } from "../catalog/table.ts";
import type { Uploads } from "../drivers/content/interface.ts";
import type { Consoles, Images, Machines } from "../drivers/machine/interface.ts";
import type { Flow, Reconciler } from "../engine/flow.ts";
import { createPruneTime, type PruneTime } from "../engine/prunetime.ts";
import { type Only, requestReconcile, type TaskError } from "../engine/task.ts";
import type { LinkRow } from "../network/linktable.ts";
import type { NetworkEnvironment } from "../network/model/networkspec.ts";
import type { Store, Tx } from "../store/db.ts";
import { backupReconciler } from "./backup.ts";
import { type AdoptInput, adoptServer } from "./flow/adopt.ts";
import { cancelWork } from "./flow/cancel.ts";
import type { Cause, FlowContext } from "./flow/context.ts";
import { createFlows, queueCopy, queueCreate } from "./flow/create.ts";
import { deleteFlow, queueDelete, queueDeleteBatch } from "./flow/delete.ts";
import { type CreateImageInput, imageFlows, queueImage, queueImageRemoval } from "./flow/image.ts";
import { type AttachSpec, linkFlows, queueAddNetwork, queueBandwidth, queueRemoveNetwork } from "./flow/links.ts";
import { type PowerType, powerFlows, queuePower } from "./flow/power.ts";
import { queueSlotFlow } from "./flow/queueslot.ts";
import { queueRebuild, rebuildFlow } from "./flow/rebuild.ts";
import { queueBlock, queueUnblock, reconcileFlow } from "./flow/reconcile.ts";
import { queueResize, resizeFlow } from "./flow/resize.ts";
import { changeServer } from "./flow/serverrow.ts";

import { createMachineStatusCache } from "./machinestatus.ts";
import { createHasher } from "./model/password.ts";
import type { ServerSpec } from "./model/plan.ts";
import type { RebuildPlan } from "./model/rebuild.ts";
import type { ResizePlan } from "./model/resize.ts";
import { createOrphans } from "./orphan.ts";
import type { OrphanRow } from "./orphantable.ts";
import { watchServers } from "./reconciler.ts";
import { recountServers } from "./sumtable.ts";
import type { BatchRow, ServerRow } from "./table.ts";
import { uploadReconciler } from "./uploadreconciler.ts";

/** Dependencies of `createServers`. */
export interface ServersOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** Source of the time up to which the age of backups is counted. Default: a new one on `store`. */
  readonly pruneTime?: PruneTime;
  readonly log: Log;
  readonly sealer: Sealer;
  /** Returns `bytes` random bytes, for passwords. */
  readonly random: (bytes: number) => Uint8Array;
  readonly machines: Machines;
  readonly images: Images;
  readonly uploads: Uploads;
  readonly consoles: Pick<Consoles, "readLog">;
  readonly networks: FlowContext["networks"];
  /** The environment that the network feature uses too. */
  readonly surroundings: NetworkEnvironment;
  /** Connects from inside the network to port 22 of the address. Resolves within 2 s to whether it sends an SSH banner. */
  readonly sendsSshBanner: (network: number, address: string) => Promise<boolean>;
}

/** Input of the command `create`. */
export interface NewServerRequest {
  readonly project: number;
  /** Id of the server group that it is created in; null: none. */
  readonly batch: number | null;
  readonly spec: ServerSpec;
  readonly by: Cause | null;
}

type PowerInput = Pick<ActionInput, "Timeout" | "Force"> & { readonly Type: PowerType; readonly WaitFor?: WaitFor };

/** Creates the servers feature. The engine runs its flows and reconcilers; request handlers call its commands. */
export function createServers(options: ServersOptions) {
  const { store, log, machines, pruneTime = createPruneTime(store, options.clock) } = options;
  const byName = new Map<string, Flow>();
  const machineStatus = createMachineStatusCache(machines, options.clock, (id) => {
    store
      .write((tx) => requestReconcile(tx, watch.reconciler, 0))
      .catch((error: unknown) =>
        log("warn", "Could not request a check after a power change; the next periodic check follows.", {
          server: id,
          error,
        }),
      );
  });
  const context: FlowContext = {
    ...options,
    machineStatus,
    hashOf: createHasher(options.sealer),
    flowOf: (name) => byName.get(name),
  };
  const reconcile = reconcileFlow(context);
  const slot = queueSlotFlow(context);
  const creation = { ...createFlows(context, reconcile), slot };
  const power = powerFlows(context);
  const links = linkFlows(context);
  const resize = resizeFlow(context);
  const rebuild = rebuildFlow(context, reconcile);
  const removal = deleteFlow(context);
  const images = imageFlows(context);
  const imaging = { ...images, slot };
  const watch = watchServers(context, reconcile);
  const orphans = createOrphans(context, watch);
  const flows = [
    ...Object.values(creation),
    ...Object.values(power),
    ...Object.values(links),
    resize,
    rebuild,
    removal,
    ...Object.values(images),
    reconcile,
  ] as unknown as readonly Flow[];
  for (const flow of flows) byName.set(flow.name, flow);

  return {
    flows,
    reconcilers: [
      watch.reconciler,
      backupReconciler(context, imaging, pruneTime),
      uploadReconciler(context, images, pruneTime),
      orphans.reconciler,
    ] satisfies readonly Reconciler[],
    /** Sums up the servers, stores the orphans on the host and reserves their ids. To be called before the first request. */
    async noteOrphans() {
      await store.write(recountServers);
      await orphans.note();
    },
    /** True if the VM of the server was on when last observed. */
    power: (id: number): boolean => machineStatus.power(id),
    /** Condition of a VM. While nothing can be stored, for example because the disk is full, it is the observed one. */
    condition(row: Pick<ServerRow, "id" | "condition">): ServerRow["condition"] {
      const seen = store.blocked() === null ? null : machineStatus.of(row.id);
      return seen === null ? row.condition : (seen.trouble ?? "Normal");
    },
    machineStatus,
    close: () => machineStatus.close(),
    /** Functions that queue work on servers and images. Each belongs to the transaction of the request that calls it. */
    commands: {
      /** Creates the row of an orphan from its disk label and the input; a queued reconcile then labels the disk with the new uuid. */
      adopt: (tx: Tx, orphan: OrphanRow, input: AdoptInput, by: Cause | null) =>
        adoptServer(context, tx, reconcile, orphan, input, by),
      /** Requests the removal of orphans in state `Removing`, with their disks. */
      removeOrphan: (tx: Tx) => requestReconcile(tx, orphans.reconciler, 0),
      create: (tx: Tx, request: NewServerRequest) => queueCreate(context, tx, creation.create, request),
      copy: (tx: Tx, request: { source: ServerRow; spec: ServerSpec; by: Cause | null }) =>
        queueCopy(context, tx, creation, request),
      power: (tx: Tx, server: ServerRow, input: PowerInput, by: Cause | null) =>
        queuePower(context, tx, power, server, input, by),
      resize: (tx: Tx, server: ServerRow, plan: ResizePlan, by: Cause | null) =>
        queueResize(context, tx, resize, server, plan, by),
      rebuild: (tx: Tx, server: ServerRow, plan: RebuildPlan, waitFor: WaitFor, by: Cause | null) =>
        queueRebuild(context, tx, rebuild, server, plan, waitFor, by),
      addNetwork: (tx: Tx, server: ServerRow, spec: AttachSpec, by: Cause | null) =>
        queueAddNetwork(context, tx, links, server, spec, by),
      removeNetwork: (tx: Tx, server: ServerRow, link: LinkRow, by: Cause | null) =>
        queueRemoveNetwork(context, tx, links, server, link, by),
      bandwidth: (tx: Tx, server: ServerRow, link: LinkRow, mbit: number, by: Cause | null) =>
        queueBandwidth(context, tx, links, server, link, mbit, by),
      /** Resolves to null if the server is being deleted already. */
      delete: (tx: Tx, server: ServerRow, by: Cause | null) => queueDelete(context, tx, removal, server, by),
      deleteBatch: (tx: Tx, batch: BatchRow, by: Cause | null) => queueDeleteBatch(context, tx, removal, batch, by),
      image: (tx: Tx, server: ServerRow, input: CreateImageInput, by: Cause | null) =>
        queueImage(context, tx, imaging, server, input, by),
      removeImage: (tx: Tx, image: ImageRow, by: Cause | null) => queueImageRemoval(context, tx, images, image, by),
      /** Powers the servers of a project off. To be called in the transaction that blocks it. */
      block: (tx: Tx, project: number, by: Cause | null) => queueBlock(context, tx, reconcile, project, by),
      /** Restores the power state of the servers of a project. To be called in the transaction that unblocks it. */
      unblock: (tx: Tx, project: number, by: Cause | null) => queueUnblock(context, tx, reconcile, project, by),
      /** Cancels the work on a server, all or as `only` selects. Queued tasks end now, a running one is undone; a deletion continues. */
      cancel: (tx: Tx, server: number, why: TaskError, only?: Only) => cancelWork(context, tx, server, why, only),
      /** Changes columns that need no work on the VM: name, labels, protection, backups. */
      edit: (tx: Tx, id: number, change: Parameters<typeof changeServer>[3], by: Cause | null) =>
        changeServer(context, tx, id, change, by),
    },
  };
}

/** The servers feature, as `createServers` returns it. */
export type Servers = ReturnType<typeof createServers>;
