/** Disk copies for a backup of the whole installation. `npm run backup -- FOLDER --with-disks` uses them on the same host. */
import { id, nullable, object, text } from "./common.ts";
import { operations } from "./operation.ts";

/** A disk copy of a server. */
export const DiskCopy = object("DiskCopy", "A disk copy of a server.", {
  ServerID: id({ description: "Id of the server." }),
  Folder: nullable(text({ description: "Folder on the host, readable by root. `null`: servers are simulated." })),
});

/** Operations that backup scripts use (docs/spec.md#disk-copies). */
export const diskCopyOperations = operations({
  createDiskCopy: {
    method: "POST",
    path: "/disk-copy",
    access: "account:admin",
    summary: "Create a disk copy of a server",
    description:
      "A consistent copy for a backup on the same host. The server may belong to any project and keeps running. If the guest has an agent, its file systems are frozen for a moment. Unchanged layers are shared, so nothing is copied. The folder exists until all disk copies are deleted or the service starts.",
    body: object("CreateDiskCopyRequest", "What to copy.", {
      ServerID: id({ description: "Id of a server of any project." }),
    }),
    answer: DiskCopy,
    errors: ["server_not_found", "engine_unavailable"],
  },
  deleteDiskCopies: {
    method: "DELETE",
    path: "/disk-copy",
    access: "account:admin",
    summary: "Delete all disk copies",
    description: "Unchanged layers are shared with the servers, so only the copies themselves are removed.",
    answer: null,
    errors: ["engine_unavailable"],
  },
});
