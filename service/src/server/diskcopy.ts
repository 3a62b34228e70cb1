/** Handlers of disk copies, which backup scripts use. They store nothing, so all work is done before the transaction. */

import { join } from "node:path";
import type { diskCopyOperations } from "@brume/api/diskcopy.ts";
import { ApiError } from "../base/error.ts";
import type { Log } from "../base/log.ts";
import { reasonOf } from "../base/reason.ts";
import { afterPreparing, type Handlers } from "../http/handler.ts";
import type { ServerContext } from "./context.ts";
import { readHost, requireEngine } from "./hostcapacity.ts";

/** Runs work of the driver. Throws `engine_unavailable` with the sentence and the cause if it fails. */
const onHost = <T>(log: Log, sentence: string, work: () => Promise<T>): Promise<T> =>
  work().catch((error: unknown) => {
    log("warn", `${sentence}.`, { error });
    throw new ApiError("engine_unavailable", `${sentence}: ${reasonOf(error)}. Repeat the request later.`);
  });

export function diskCopyRoutes(context: ServerContext): Handlers<keyof typeof diskCopyOperations> {
  const { machines, servers, log } = context;
  return {
    createDiskCopy: afterPreparing({
      async prepare({ body, dryRun }) {
        const id = body.ServerID;
        requireEngine(await readHost(context));
        if ((servers.machineStatus.of(id)?.disks.length ?? 0) === 0)
          throw new ApiError("server_not_found", `Server ${id} has no disk on this host.`);
        return dryRun ? null : onHost(log, `Server ${id} could not be copied`, () => machines.holdDisks(id));
      },
      async change({ body }, _tx, folder) {
        const path = folder === null ? null : join(context.serversFolder, folder);
        return { answer: { ServerID: body.ServerID, Folder: path }, changes: [] };
      },
    }),
    deleteDiskCopies: afterPreparing({
      prepare: async ({ dryRun }) =>
        dryRun ? undefined : onHost(log, "The disk copies could not be removed", () => machines.releaseDisks()),
      change: async () => ({ answer: undefined, changes: [] }),
    }),
  };
}
