/** The verbs of `Images` and `Consoles` (`drivers/machine/interface.ts`). */
import { Type } from "typebox";
import { family, HeldImage, HeldName, ImageSize, OperatorImage, Progress } from "./machinestatus.ts";
import {
  boolean,
  count,
  id,
  imageName,
  integer,
  line,
  many,
  measure,
  nullable,
  only,
  optional,
  prose,
} from "./values.ts";
import { times, verbs } from "./verb.ts";

const checksum = () => Type.String({ pattern: "^[0-9A-Fa-f]{64}$" });

/** A web address, the name of a file in the import folder of the host, or the size of the upload with the name of the image. None is a path. */
const Origin = Type.Union([
  only({ url: Type.String({ maxLength: 4096, pattern: "^https?://[\\u0021-\\u007e]+$" }), sha256: checksum() }),
  only({
    file: Type.String({ maxLength: 255, pattern: "^(?!\\.{1,2}$)[^/\\u0000-\\u001f\\u007f-\\u009f]+$" }),
    sha256: nullable(checksum()),
  }),
  only({ upload: count(), sha256: nullable(checksum()) }),
]);

const title = () => line(256);
const Refused = only({ refused: prose() });

/** The verbs of `Images`, by the name of the method. */
export const imageVerbs = verbs({
  listOperatorImages: {
    summary: "List the images of the operator",
    args: [],
    body: only({}),
    answer: many(OperatorImage),
    time: times.read,
  },
  ensureFetched: {
    summary: "Fetch an image of the operator",
    args: ["name"],
    body: only({ name: imageName() }),
    answer: imageName(),
    time: times.transfer,
    extra: "transfer",
    note: Progress,
  },
  ensureImported: {
    summary: "Make an image of a foreign disk",
    args: ["name", "about", "origin"],
    body: only({
      name: imageName(),
      about: only({ title: title(), family: family(), minRam: integer(0, 1 << 24) }),
      origin: Origin,
    }),
    answer: Type.Union([only({ hdd: measure() }), Refused]),
    time: times.transfer,
    extra: "transfer",
    note: Progress,
  },
  checkOrigin: {
    summary: "Check the origin of an image without fetching it",
    args: ["origin"],
    body: only({ origin: Origin }),
    answer: nullable(Refused),
    time: times.read,
  },
  ensureSnapshot: {
    summary: "Take a snapshot of a server's disk for an image",
    args: ["id", "name"],
    body: only({ id: id(), name: imageName() }),
    answer: null,
    time: times.change,
  },
  ensureImage: {
    summary: "Write a snapshot as an independent image",
    args: ["id", "name", "about"],
    body: only({ id: id(), name: imageName(), about: only({ title: title(), keepsIdentity: optional(boolean()) }) }),
    answer: ImageSize,
    time: times.transfer,
    extra: "signal",
  },
  removeImage: {
    summary: "Remove an image and its snapshot",
    args: ["name"],
    body: only({ name: imageName() }),
    answer: null,
    time: times.change,
  },
  listImages: {
    summary: "List the names of images and snapshots",
    args: [],
    body: only({}),
    answer: many(HeldName),
    time: times.read,
  },
  readImages: {
    summary: "Read images and snapshots",
    args: ["names"],
    body: only({ names: Type.Array(imageName(), { maxItems: 500 }) }),
    answer: many(HeldImage),
    time: times.read,
  },
});

/** The verbs of `Consoles`, by the name of the method. */
export const consoleVerbs = verbs({
  readLog: {
    summary: "Read the serial log of a server",
    args: ["id", "spec"],
    body: only({
      id: id(),
      spec: optional(only({ previous: optional(boolean()), tail: optional(integer(0, 1_000_000)) })),
    }),
    answer: nullable(prose(1 << 26)),
    time: times.read,
  },
  openSerial: {
    summary: "Connect to the serial console of a server",
    args: ["id"],
    body: only({ id: id() }),
    answer: null,
    time: times.read,
    stream: "both",
  },
  openVnc: {
    summary: "Connect to the screen of a server",
    args: ["id"],
    body: only({ id: id() }),
    answer: null,
    time: times.read,
    stream: "both",
  },
});
