/**
 * Orphans: servers, images and snapshots on the host that the database does not know, for example after a restore. They stay powered
 * off until an operator adopts or deletes them.
 */
import type { Static } from "typebox";
import { families } from "./catalog.ts";
import {
  date,
  id,
  integer,
  list,
  listQuery,
  name,
  nullable,
  object,
  optional,
  optionalId,
  text,
  word,
} from "./common.ts";
import { operations } from "./operation.ts";

/** Values of `Kind`. `Snapshot`: the unfinished disk of an image. */
export const orphanKinds = ["Server", "Image", "Snapshot"] as const;

/** A server, image or snapshot on the host that the database does not contain. */
export const Orphan = object("Orphan", "A server, image or snapshot on the host that the database does not contain.", {
  ID: id({ description: "Id of the orphan." }),
  Kind: word(orphanKinds, {
    description:
      "`Server` and `Image` can be adopted. `Snapshot`: left by an interrupted creation of an image. It can only be deleted.",
  }),
  Number: id({ description: "Id of the server or image before it became an orphan, and again after adoption." }),
  Name: text({ description: "Former name; empty if it is not known." }),
  Family: word(families, { description: "Operating system family." }),
  CPU: integer(0, 64, { description: "Number of virtual CPUs; 0 if it is not known." }),
  RAM: integer(0, 1_048_576, { description: "MB; 0 if it is not known." }),
  HDD: integer(0, 4096, { description: "GB." }),
  Bytes: integer(0, Number.MAX_SAFE_INTEGER, { description: "Bytes used on the host." }),
  State: word(["Held", "Removing"], { description: "`Held`: kept. `Removing`: its disks are being deleted." }),
  DateFound: date({ description: "When the orphan was found." }),
});
/** TypeScript type of this schema. */
export type Orphan = Static<typeof Orphan>;

const orphanParam = { id: "orphan_not_found" } as const;

/** Operations to list, adopt and delete orphans. */
export const orphanOperations = operations({
  listOrphans: {
    method: "GET",
    path: "/orphan",
    access: "account:admin",
    summary: "List orphans",
    description: "Orphans stay powered off until an operator adopts or deletes them.",
    query: listQuery({}),
    answer: list(Orphan),
    list: true,
  },
  readOrphan: {
    method: "GET",
    path: "/orphan/{id}",
    access: "account:admin",
    summary: "Get an orphan",
    description: "Returns what is known about the orphan.",
    params: orphanParam,
    answer: Orphan,
  },
  adoptOrphan: {
    method: "POST",
    path: "/orphan/{id}/adopt",
    access: "account:admin",
    summary: "Adopt an orphan",
    description:
      "A server returns powered off with its id, its disk, a new address and a new password. Its guest gets a new identity at the next boot. An image becomes an image of the project. Both count in the quotas of the project, a server in the capacity of the host as well.",
    params: orphanParam,
    body: object("AdoptOrphanRequest", "What the orphan becomes.", {
      Name: optional(name({ description: "Default: the former name, or the id." })),
      ProjectID: optionalId({
        description: "Project that gets the server or image. Default: the project of the token.",
      }),
      ImageID: optionalId({
        description:
          "Image of a server, for its next rebuild. Default: the image that its disk was made from; required if the project has none such.",
      }),
    }),
    answer: object("Adopted", "Exactly one of the two is set.", {
      ServerID: nullable(id({ description: "Id of the adopted server. `null`: an image was adopted." })),
      ImageID: nullable(id({ description: "Id of the adopted image. `null`: a server was adopted." })),
    }),
    errors: [
      "action_not_allowed",
      "image_not_ready",
      "network_full",
      "quota_exceeded",
      "no_capacity",
      "engine_unavailable",
    ],
  },
  deleteOrphan: {
    method: "DELETE",
    path: "/orphan/{id}",
    access: "account:admin",
    summary: "Delete an orphan and its disks",
    description: "This cannot be undone. The disks are deleted in the background; the orphan is listed until then.",
    params: orphanParam,
    answer: null,
  },
});
