/**
 * Orphans: servers, images and snapshots that are on the host and that the database does not know, as after a restore. They are kept,
 * switched off, until an operator adopts or removes them.
 */
import { type Static, Type } from "typebox";
import { families } from "./catalog.ts";
import { date, id, integer, list, listQuery, name, nullable, optional, optionalId, text, word } from "./common.ts";
import { operations } from "./operation.ts";

export const orphanKinds = ["Server", "Image", "Snapshot"] as const;

export const Orphan = Type.Object(
  {
    ID: id(),
    Kind: word(orphanKinds, {
      description: "A snapshot is what an image was to be written from: it can only be removed.",
    }),
    Number: id({ description: "Id that the server or image had, and has again when it is adopted." }),
    Name: text({ description: "Name that it had, as far as that is known." }),
    Family: word(families),
    CPU: integer(0, 64, { description: "0 where it is not known." }),
    RAM: integer(0, 1_048_576, { description: "MB; 0 where it is not known." }),
    HDD: integer(0, 4096, { description: "GB." }),
    Bytes: integer(0, Number.MAX_SAFE_INTEGER, { description: "Space that it takes on the host." }),
    State: word(["Held", "Removing"]),
    DateFound: date(),
  },
  { title: "Orphan" },
);
export type Orphan = Static<typeof Orphan>;

const orphanParam = { id: "orphan_not_found" } as const;

export const orphanOperations = operations({
  listOrphans: {
    method: "GET",
    path: "/orphan",
    access: "account:admin",
    summary: "List what is on the host and not in the database",
    query: listQuery({}),
    answer: list(Orphan),
    list: true,
  },
  readOrphan: {
    method: "GET",
    path: "/orphan/{id}",
    access: "account:admin",
    summary: "Read an orphan",
    params: orphanParam,
    answer: Orphan,
  },
  adoptOrphan: {
    method: "POST",
    path: "/orphan/{id}/adopt",
    access: "account:admin",
    summary: "Take an orphan into a project",
    description:
      "A server comes back switched off with its number, its disk, a new address and a new password; its guest is given a new identity at its next start. An image comes back as an own image.",
    params: orphanParam,
    body: Type.Object({
      Name: optional(name({ description: "Default: the name that it had, or its number." })),
      ProjectID: optionalId({ description: "Default: the project of the token." }),
    }),
    answer: Type.Object(
      { ServerID: nullable(id()), ImageID: nullable(id()) },
      { title: "Adopted", description: "One of them is set." },
    ),
    faults: ["action_not_allowed", "network_full"],
  },
  deleteOrphan: {
    method: "DELETE",
    path: "/orphan/{id}",
    access: "account:admin",
    summary: "Remove an orphan with its disks",
    description:
      "It cannot be brought back. The answer leaves when that is ordered; the orphan is gone when it is done.",
    params: orphanParam,
    answer: null,
  },
});
