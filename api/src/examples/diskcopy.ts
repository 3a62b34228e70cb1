/** Server 17 in a backup of the whole installation. */
import type { Examples } from "./example.ts";

/** Examples of the operations on disk copies. */
export const diskCopyExamples: Examples = {
  createDiskCopy: {
    request: { ServerID: 17 },
    answer: { ServerID: 17, Folder: "/var/lib/brume/servers/17.copy" },
  },
  deleteDiskCopies: {},
};
