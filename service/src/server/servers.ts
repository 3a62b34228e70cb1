/**
 * Servers as a whole, for whoever puts the service together: their flows, their reconcilers, what orders work on them, and whether they are
 * on. Every order takes the transaction of the request, so that the wish, its task and its events are stored together or not at all.
 */
import type { ActionInput, WaitFor } from "@brume/api/action.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Sealer } from "../base/secret.ts";
import type { ImageRow } from "../catalog/table.ts";
import type { Consoles, Images, Machines } from "../drivers/machine/interface.ts";
import type { Flow, Reconciler } from "../engine/flow.ts";
import { createPruneTime, type PruneTime } from "../engine/prunetime.ts";
import { type Only, requestReconcile, type TaskError } from "../engine/task.ts";
import type { NetworkEnvironment } from "../network/model/networkspec.ts";
import type { NetworkStatusCache } from "../network/statuscache.ts";
import type { LinkRow } from "../network/table.ts";
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
import { changeServer } from "./flow/steps.ts";
import { createMachineStatusCache } from "./machinestatus.ts";
import { createHasher } from "./model/password.ts";
import type { ServerSpec } from "./model/plan.ts";
import type { RebuildPlan } from "./model/rebuild.ts";
import type { ResizePlan } from "./model/resize.ts";
import { createOrphans } from "./orphan.ts";
import type { OrphanRow } from "./orphantable.ts";
import { serverReconciler } from "./reconciler.ts";
import type { BatchRow, ServerRow } from "./table.ts";

export interface ServersOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** What the age of backups is counted up to. */
  readonly pruneTime?: PruneTime;
  readonly log: Log;
  readonly sealer: Sealer;
  /** Random bytes, of passwords. */
  readonly random: (bytes: number) => Uint8Array;
  readonly machines: Machines;
  readonly images: Images;
  readonly consoles: Pick<Consoles, "readLog">;
  readonly networks: { readonly live: Pick<NetworkStatusCache, "of">; readonly apply: Reconciler };
  /** The same that networks are given. */
  readonly surroundings: NetworkEnvironment;
  /** Whether port 22 of an address greets as SSH does, asked inside the network. Ends within two seconds. */
  readonly greetsSsh: (network: number, address: string) => Promise<boolean>;
}

export interface NewServerRequest {
  readonly project: number;
  /** The group it is made in. */
  readonly batch: number | null;
  readonly spec: ServerSpec;
  readonly by: Cause | null;
}

type PowerOrder = Pick<ActionInput, "Timeout" | "Force"> & { readonly Type: PowerType; readonly WaitFor?: WaitFor };

export function createServers(options: ServersOptions) {
  const { store, log, machines, pruneTime = createPruneTime(store, options.clock) } = options;
  const byName = new Map<string, Flow>();
  const machineStatus = createMachineStatusCache(machines, options.clock, () => {
    store
      .write((tx) => requestReconcile(tx, watch, 0))
      .catch((error: unknown) => log("warn", "A change of power was not noted, and is at the next look.", { error }));
  });
  const tools: FlowContext = {
    ...options,
    machineStatus,
    hashOf: createHasher(options.sealer),
    flowOf: (name) => byName.get(name),
  };
  const settle = reconcileFlow(tools);
  const turn = queueSlotFlow(tools);
  const making = { ...createFlows(tools, settle), turn };
  const power = powerFlows(tools);
  const links = linkFlows(tools);
  const resize = resizeFlow(tools);
  const rebuild = rebuildFlow(tools, settle);
  const removal = deleteFlow(tools);
  const images = imageFlows(tools);
  const imaging = { ...images, turn };
  const watch = serverReconciler(tools, settle);
  const orphans = createOrphans(tools);
  const flows = [
    ...Object.values(making),
    ...Object.values(power),
    ...Object.values(links),
    resize,
    rebuild,
    removal,
    ...Object.values(images),
    settle,
  ] as unknown as readonly Flow[];
  for (const flow of flows) byName.set(flow.name, flow);

  return {
    flows,
    reconcilers: [
      watch,
      backupReconciler(tools, imaging, pruneTime),
      orphans.reconciler,
    ] satisfies readonly Reconciler[],
    /** Before the first request: what is on the host and in no row keeps its number. */
    noteOrphans: () => orphans.note(),
    /** Whether the server is on, as observed. */
    power: (id: number): boolean => machineStatus.power(id),
    machineStatus,
    close: () => machineStatus.close(),
    order: {
      /** The row has what the disk has and what was known of it; in its turn the disk is marked as the row's. */
      adopt: (tx: Tx, orphan: OrphanRow, spec: AdoptInput, by: Cause | null) =>
        adoptServer(tools, tx, settle, orphan, spec, by),
      /** The orphan is removed with its disks, soon. */
      removeOrphan: (tx: Tx) => requestReconcile(tx, orphans.reconciler, 0),
      create: (tx: Tx, spec: NewServerRequest) => queueCreate(tools, tx, making.create, spec),
      copy: (tx: Tx, spec: { source: ServerRow; spec: ServerSpec; by: Cause | null }) =>
        queueCopy(tools, tx, making, spec),
      power: (tx: Tx, server: ServerRow, order: PowerOrder, by: Cause | null) =>
        queuePower(tools, tx, power, server, order, by),
      resize: (tx: Tx, server: ServerRow, plan: ResizePlan, by: Cause | null) =>
        queueResize(tools, tx, resize, server, plan, by),
      rebuild: (tx: Tx, server: ServerRow, plan: RebuildPlan, waitFor: WaitFor, by: Cause | null) =>
        queueRebuild(tools, tx, rebuild, server, plan, waitFor, by),
      addNetwork: (tx: Tx, server: ServerRow, spec: AttachSpec, by: Cause | null) =>
        queueAddNetwork(tools, tx, links, server, spec, by),
      removeNetwork: (tx: Tx, server: ServerRow, link: LinkRow, by: Cause | null) =>
        queueRemoveNetwork(tools, tx, links, server, link, by),
      bandwidth: (tx: Tx, server: ServerRow, link: LinkRow, mbit: number, by: Cause | null) =>
        queueBandwidth(tools, tx, links, server, link, mbit, by),
      /** Null when that has been ordered already. */
      delete: (tx: Tx, server: ServerRow, by: Cause | null) => queueDelete(tools, tx, removal, server, by),
      deleteBatch: (tx: Tx, batch: BatchRow, by: Cause | null) => queueDeleteBatch(tools, tx, removal, batch, by),
      image: (tx: Tx, server: ServerRow, spec: CreateImageInput, by: Cause | null) =>
        queueImage(tools, tx, imaging, server, spec, by),
      removeImage: (tx: Tx, image: ImageRow, by: Cause | null) => queueImageRemoval(tools, tx, images, image, by),
      /** In the transaction that blocks or frees a project. */
      block: (tx: Tx, project: number, by: Cause | null) => queueBlock(tools, tx, settle, project, by),
      unblock: (tx: Tx, project: number, by: Cause | null) => queueUnblock(tools, tx, settle, project, by),
      /** All work on a server, or some of it. What waits ends at once, what runs is undone; a deletion goes on. */
      cancel: (tx: Tx, server: number, why: TaskError, only?: Only) => cancelWork(tools, tx, server, why, only),
      /** What takes no time (name, labels, protection, backups): the row, its version, its event. */
      edit: (tx: Tx, id: number, change: Parameters<typeof changeServer>[3], by: Cause | null) =>
        changeServer(tools, tx, id, change, by),
    },
  };
}

export type Servers = ReturnType<typeof createServers>;
