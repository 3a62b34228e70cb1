/**
 * Servers as a whole, for whoever puts the service together: their flows, their keepers, what orders work on them, and whether they are
 * on. Every order takes the transaction of the request, so that the wish, its task and its events are stored together or not at all.
 */
import type { Order, WaitFor } from "@brume/api/action.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Sealer } from "../base/secret.ts";
import type { ImageRow } from "../catalog/table.ts";
import type { Consoles, Images, Machines } from "../drivers/machine/port.ts";
import type { Flow, Keeper } from "../engine/flow.ts";
import { createPruneTime, type PruneTime } from "../engine/prunetime.ts";
import { nudge, type Only, type TaskError } from "../engine/task.ts";
import type { Surroundings } from "../network/image.ts";
import type { Live } from "../network/live.ts";
import type { LinkRow } from "../network/table.ts";
import type { Store, Tx } from "../store/db.ts";
import { backupKeeper } from "./backup.ts";
import { type AdoptWish, adoptServer } from "./flow/adopt.ts";
import { cancelWork } from "./flow/cancel.ts";
import { createFlows, orderCopy, orderCreate } from "./flow/create.ts";
import { deleteFlow, orderDelete, orderDeleteBatch } from "./flow/delete.ts";
import { type ImageWish, imageFlows, orderImage, orderImageRemoval } from "./flow/image.ts";
import { type JoinWish, linkFlows, orderAddNetwork, orderBandwidth, orderRemoveNetwork } from "./flow/links.ts";
import { orderPower, type PowerType, powerFlows } from "./flow/power.ts";
import { orderRebuild, rebuildFlow } from "./flow/rebuild.ts";
import { orderResize, resizeFlow } from "./flow/resize.ts";
import { orderBlock, orderUnblock, settleFlow } from "./flow/settle.ts";
import { changeServer } from "./flow/steps.ts";
import type { Cause, FlowTools } from "./flow/tools.ts";
import { turnFlow } from "./flow/turn.ts";
import { watchKeeper } from "./keeper.ts";
import { createOrphans } from "./orphan.ts";
import type { OrphanRow } from "./orphantable.ts";
import { createHasher } from "./password.ts";
import type { ServerSpec } from "./plan.ts";
import type { RebuildPlan } from "./rebuild.ts";
import type { ResizePlan } from "./resize.ts";
import { createSight } from "./sight.ts";
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
  readonly networks: { readonly live: Pick<Live, "of">; readonly apply: Keeper };
  /** The same that networks are given. */
  readonly surroundings: Surroundings;
  /** Whether port 22 of an address greets as SSH does, asked inside the network. Ends within two seconds. */
  readonly greetsSsh: (network: number, address: string) => Promise<boolean>;
}

export interface Making {
  readonly project: number;
  /** The group it is made in. */
  readonly batch: number | null;
  readonly spec: ServerSpec;
  readonly by: Cause | null;
}

type PowerOrder = Pick<Order, "Timeout" | "Force"> & { readonly Type: PowerType; readonly WaitFor?: WaitFor };

export function createServers(options: ServersOptions) {
  const { store, log, machines, pruneTime = createPruneTime(store, options.clock) } = options;
  const byName = new Map<string, Flow>();
  const sight = createSight(machines, options.clock, () => {
    store
      .write((tx) => nudge(tx, watch, 0))
      .catch((error: unknown) => log("warn", "A change of power was not noted, and is at the next look.", { error }));
  });
  const tools: FlowTools = {
    ...options,
    sight,
    hashOf: createHasher(options.sealer),
    flowOf: (name) => byName.get(name),
  };
  const settle = settleFlow(tools);
  const turn = turnFlow(tools);
  const making = { ...createFlows(tools, settle), turn };
  const power = powerFlows(tools);
  const links = linkFlows(tools);
  const resize = resizeFlow(tools);
  const rebuild = rebuildFlow(tools, settle);
  const removal = deleteFlow(tools);
  const images = imageFlows(tools);
  const imaging = { ...images, turn };
  const watch = watchKeeper(tools, settle);
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
    keepers: [watch, backupKeeper(tools, imaging, pruneTime), orphans.keeper] satisfies readonly Keeper[],
    /** Before the first request: what is on the host and in no row keeps its number. */
    noteOrphans: () => orphans.note(),
    /** Whether the server is on, as observed. */
    power: (id: number): boolean => sight.power(id),
    sight,
    close: () => sight.close(),
    order: {
      /** The row has what the disk has and what was known of it; in its turn the disk is marked as the row's. */
      adopt: (tx: Tx, orphan: OrphanRow, wish: AdoptWish, by: Cause | null) =>
        adoptServer(tools, tx, settle, orphan, wish, by),
      /** The orphan is removed with its disks, soon. */
      removeOrphan: (tx: Tx) => nudge(tx, orphans.keeper, 0),
      create: (tx: Tx, wish: Making) => orderCreate(tools, tx, making.create, wish),
      copy: (tx: Tx, wish: { source: ServerRow; spec: ServerSpec; by: Cause | null }) =>
        orderCopy(tools, tx, making, wish),
      power: (tx: Tx, server: ServerRow, order: PowerOrder, by: Cause | null) =>
        orderPower(tools, tx, power, server, order, by),
      resize: (tx: Tx, server: ServerRow, plan: ResizePlan, by: Cause | null) =>
        orderResize(tools, tx, resize, server, plan, by),
      rebuild: (tx: Tx, server: ServerRow, plan: RebuildPlan, waitFor: WaitFor, by: Cause | null) =>
        orderRebuild(tools, tx, rebuild, server, plan, waitFor, by),
      addNetwork: (tx: Tx, server: ServerRow, wish: JoinWish, by: Cause | null) =>
        orderAddNetwork(tools, tx, links, server, wish, by),
      removeNetwork: (tx: Tx, server: ServerRow, link: LinkRow, by: Cause | null) =>
        orderRemoveNetwork(tools, tx, links, server, link, by),
      bandwidth: (tx: Tx, server: ServerRow, link: LinkRow, mbit: number, by: Cause | null) =>
        orderBandwidth(tools, tx, links, server, link, mbit, by),
      /** Null when that has been ordered already. */
      delete: (tx: Tx, server: ServerRow, by: Cause | null) => orderDelete(tools, tx, removal, server, by),
      deleteBatch: (tx: Tx, batch: BatchRow, by: Cause | null) => orderDeleteBatch(tools, tx, removal, batch, by),
      image: (tx: Tx, server: ServerRow, wish: ImageWish, by: Cause | null) =>
        orderImage(tools, tx, imaging, server, wish, by),
      removeImage: (tx: Tx, image: ImageRow, by: Cause | null) => orderImageRemoval(tools, tx, images, image, by),
      /** In the transaction that blocks or frees a project. */
      block: (tx: Tx, project: number, by: Cause | null) => orderBlock(tools, tx, settle, project, by),
      unblock: (tx: Tx, project: number, by: Cause | null) => orderUnblock(tools, tx, settle, project, by),
      /** All work on a server, or some of it. What waits ends at once, what runs is undone; a deletion goes on. */
      cancel: (tx: Tx, server: number, why: TaskError, only?: Only) => cancelWork(tools, tx, server, why, only),
      /** What takes no time (name, labels, protection, backups): the row, its version, its event. */
      edit: (tx: Tx, id: number, change: Parameters<typeof changeServer>[3], by: Cause | null) =>
        changeServer(tools, tx, id, change, by),
    },
  };
}

export type Servers = ReturnType<typeof createServers>;
