/** The verbs of `Uploads` (`drivers/content/interface.ts`): files of clients, before they are imported. */
import { count, imageName, only } from "./values.ts";
import { times, verbs } from "./verb.ts";

/** The verbs, by the name of the method. */
export const uploadVerbs = verbs({
  openUpload: {
    summary: "Write a file that a client uploads, from a position",
    args: ["name", "from", "bytes"],
    body: only({ name: imageName(), from: count(), bytes: count() }),
    answer: null,
    time: times.read,
    stream: "write",
  },
  syncUpload: {
    summary: "Sync an uploaded file, and return how much of it is on disk",
    args: ["name", "least"],
    body: only({ name: imageName(), least: count() }),
    answer: count(),
    time: times.change,
  },
  removeUpload: {
    summary: "Remove an uploaded file",
    args: ["name"],
    body: only({ name: imageName() }),
    answer: null,
    time: times.change,
  },
});
