/** Copies of disks for a backup of the whole installation: `npm run backup -- FOLDER --with-disks` asks for them on the same host. */
import { Type } from "typebox";
import { id, nullable, text } from "./common.ts";
import { operations } from "./operation.ts";

export const DiskCopy = Type.Object(
  {
    ServerID: id(),
    Folder: nullable(text({ description: "On the host, readable by root; null: servers are simulated." })),
  },
  { title: "DiskCopy" },
);

export const diskCopyOperations = operations({
  createDiskCopy: {
    method: "POST",
    path: "/disk-copy",
    access: "account:admin",
    summary: "Keep a server's disks as they are at this moment",
    description:
      "For a backup on the same host. The server may be of any project, on or off, and goes on; where its guest has an agent its file systems are still for the moment. Nothing is copied: closed layers are shared. The folder stays until all disk copies are removed, or the service starts.",
    body: Type.Object({ ServerID: id() }),
    answer: DiskCopy,
    faults: ["server_not_found", "engine_unavailable"],
  },
  deleteDiskCopies: {
    method: "DELETE",
    path: "/disk-copy",
    access: "account:admin",
    summary: "Remove all disk copies",
    answer: null,
  },
});
