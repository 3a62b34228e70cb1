/** Handlers of disk copies, which backup scripts use. They store nothing, so all work is done before the transaction. */

import { join } from "node:path";
import type { diskCopyOperations } from "@brume/api/diskcopy.ts";
import { ApiError } from "../base/error.ts";
import { afterPreparing, type Handlers } from "../http/handler.ts";
import type { ServerContext } from "./context.ts";
import { readHost, requireEngine } from "./hostcapacity.ts";

export function diskCopyRoutes(context: ServerContext): Handlers<keyof typeof diskCopyOperations> {
  const { machines, servers } = context;
  return {
    createDiskCopy: afterPreparing({
      async prepare({ body, dryRun }) {
        const id = body.ServerID;
        requireEngine(await readHost(context));
        if ((servers.machineStatus.of(id)?.disks.length ?? 0) === 0)
          throw new ApiError("server_not_found", `Server ${id} has no disk on this host.`);
        return dryRun ? null : machines.holdDisks(id);
      },
      async change({ body }, _tx, folder) {
        const path = folder === null ? null : join(context.serversFolder, folder);
        return { answer: { ServerID: body.ServerID, Folder: path }, changes: [] };
      },
    }),
    deleteDiskCopies: afterPreparing({
      prepare: async ({ dryRun }) => (dryRun ? undefined : machines.releaseDisks()),
      change: async () => ({ answer: undefined, changes: [] }),
    }),
  };
}
