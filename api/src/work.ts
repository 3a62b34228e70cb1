/**
 * Background work: the `Error` of actions, servers, images, networks and tunnels (docs/spec.md#errors). Such
 * an error is stored in the object and not returned as an error response, so it has a title and no HTTP status.
 */
import type { Static } from "typebox";
import { nullable, object, text } from "./common.ts";

/** Error codes of background work and their titles. Programs compare the code. */
export const taskErrors = {
  boot_failed: "The server did not start.",
  disk_failed: "The disk could not be prepared.",
  disk_missing: "The disk of the server is missing or damaged.",
  crashed: "The VM of the server ended unexpectedly.",
  backup_failed: "The daily backup failed.",
  network_failed: "The network could not be prepared.",
  host_lost: "The host does not answer.",
  guest_not_ready: "The guest did not report in time.",
  ssh_not_ready: "The guest did not answer on SSH in time.",
  guest_did_not_respond: "The guest did not respond.",
  batch_undone: "Another server of the group failed.",
  superseded: "The action was superseded by a later request.",
  snapshot_failed: "The snapshot could not be taken.",
  apply_failed: "The change could not be applied.",
  authentication_failed: "The peer could not be authenticated.",
  no_proposal_chosen: "The peers have no proposal in common.",
  selectors_refused: "The peers want different networks.",
  peer_unreachable: "The peer does not answer.",
  engine_unavailable: "The engine for this operation is not available.",
  deadline_exceeded: "The time for this work is over.",
  internal: "An unexpected error happened.",
} as const satisfies Readonly<Record<string, string>>;

/** Code of an error of background work. */
export type WorkCode = keyof typeof taskErrors;

const shape = {
  type: text({ description: "Reference page of the error: `/docs#<code>`." }),
  title: text({ description: "The fixed sentence of this code." }),
  detail: text({ description: "One sentence with the names and numbers of this case." }),
  code: text({ description: `Code of the error, such as \`${Object.keys(taskErrors).slice(0, 3).join("`, `")}\`.` }),
  step: nullable(text({ description: "Name of the failed step. `null`: the work has no steps." })),
};

/** Error of background work. */
export const WorkError = object(
  "WorkError",
  "Why background work failed. Programs compare `code`. `null`: there is no error.",
  shape,
);
/** TypeScript type of this schema. */
export type WorkError = Static<typeof WorkError>;

/** Error of a server or of one of its actions, with the last lines of the serial console. */
export const MachineError = object(
  "MachineError",
  "Why a server or its action failed. Programs compare `code`. `null`: there is no error.",
  {
    ...shape,
    log: nullable(
      text({ description: "Last 20 lines of the serial console of a failed boot. `null`: there is no log." }),
    ),
  },
);
/** TypeScript type of this schema. */
export type MachineError = Static<typeof MachineError>;

/** An error as the workflow engine stores it. */
export interface StoredError {
  readonly code: WorkCode;
  readonly title: string;
  readonly detail: string;
  readonly step: string | null;
  readonly log?: string | null;
}

/** Converts a stored error to its form in responses. */
export const showWorkError = ({ code, title, detail, step }: StoredError): WorkError => ({
  type: `/docs#${code}`,
  title,
  detail,
  code,
  step,
});

/** Converts a stored error of a server to its form in responses. */
export const showMachineError = (error: StoredError): MachineError => ({
  ...showWorkError(error),
  log: error.log ?? null,
});
