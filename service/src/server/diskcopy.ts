/** Disk copies for a backup: nothing is stored of them, so that what is asked of the machine is asked before the transaction. */
import type { diskCopyOperations } from "@brume/api/diskcopy.ts";
import { Fault } from "../base/fault.ts";
import { afterPreparing, type Handlers } from "../http/handler.ts";
import { type Desk, holdEngine, lookAtHost } from "./desk.ts";

export function diskCopyRoutes(desk: Desk): Handlers<keyof typeof diskCopyOperations> {
  const { machines, servers } = desk;
  return {
    createDiskCopy: afterPreparing({
      async prepare({ body, dryRun }) {
        const id = body.ServerID;
        holdEngine(await lookAtHost(desk));
        if ((servers.sight.of(id)?.disks.length ?? 0) === 0)
          throw new Fault("server_not_found", `There is no server ${id} with a disk on this host.`);
        return dryRun ? null : machines.holdDisks(id);
      },
      async change({ body }, _tx, folder) {
        return { answer: { ServerID: body.ServerID, Folder: folder }, happenings: [] };
      },
    }),
    deleteDiskCopies: afterPreparing({
      prepare: async ({ dryRun }) => (dryRun ? undefined : machines.releaseDisks()),
      change: async () => ({ answer: undefined, happenings: [] }),
    }),
  };
}
