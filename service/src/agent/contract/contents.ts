/** The verbs of `Contents` (`drivers/content/interface.ts`): images and disk copies for another host. */
import { Type } from "typebox";
import { count, id, imageName, integer, list, only } from "./values.ts";
import { sizes, times, verbs } from "./verb.ts";

const Of = Type.Union([only({ image: imageName() }), only({ copy: id() })]);

const File = only({
  number: count(),
  /** Inside the content, with at most one folder. The receiver chooses where it stores the file. */
  name: Type.String({ maxLength: 257, pattern: "^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?$" }),
  bytes: count(),
  sha256: Type.String({ pattern: "^[0-9a-f]{64}$" }),
});

/** The verbs, by the name of the method. */
export const contentVerbs = verbs({
  listFiles: {
    summary: "List the files of an image or disk copy with their checksums",
    args: ["of"],
    body: only({ of: Of }),
    answer: list(File, { maxItems: 10_000 }),
    time: times.long,
  },
  openFile: {
    summary: "Read a file of an image or disk copy from a position",
    args: ["of", "file", "from"],
    body: only({ of: Of, file: integer(0, 10_000), from: integer(0, Number.MAX_SAFE_INTEGER) }),
    answer: null,
    time: times.read,
    stream: "read",
  },
  expectFiles: {
    summary: "Begin or continue to receive an image or disk copy, and return what is stored of each file",
    args: ["of", "files"],
    body: only({ of: Of, files: list(File, { maxItems: 10_000 }) }),
    answer: list(count(), { maxItems: 10_000 }),
    time: times.long,
    bytes: sizes.machine,
  },
  writeFile: {
    summary: "Write a file of an expected content from a position",
    args: ["of", "file", "from"],
    body: only({ of: Of, file: integer(0, 10_000), from: integer(0, Number.MAX_SAFE_INTEGER) }),
    answer: null,
    time: times.read,
    stream: "write",
  },
  completeFiles: {
    summary: "Verify the checksums of a received content, and give it its name",
    args: ["of"],
    body: only({ of: Of }),
    answer: null,
    time: times.long,
  },
});
