/**
 * Work that goes on behind an answer: whether it is done, as far as an object shows, and why it came to nothing, the `Error` of
 * actions, servers, images, networks and tunnels (docs/spec.md#errors). Such an error is read later by whoever looks, not answered to
 * whoever asked, so it has a title of its own and no status.
 */
import { type Static, Type } from "typebox";
import { nullable, text } from "./common.ts";

const unsettled = new Set<unknown>(["New", "FromPool", "Deleting", "Postponed", "InProgress"]);

/**
 * Is the work on this object done (docs/spec.md#headers-and-queries-for-changes)? An action has ended, a thing is in place, the last wish
 * is applied.
 */
export function isSettled(answer: unknown): boolean {
  if (typeof answer !== "object" || answer === null) return true;
  const { State, Generation, AppliedGeneration } = answer as Readonly<Record<string, unknown>>;
  return !unsettled.has(State) && Generation === AppliedGeneration;
}

/** Code to title. Programs compare the code. */
export const workFaults = {
  boot_failed: "The server did not start.",
  disk_failed: "The disk could not be prepared.",
  disk_missing: "The disk of the server is missing or damaged.",
  crashed: "The machine of the server ended unexpectedly.",
  backup_failed: "The daily backup failed.",
  network_failed: "The network could not be prepared.",
  host_lost: "The host does not answer.",
  guest_not_ready: "The guest did not report in time.",
  ssh_not_ready: "The guest did not answer on SSH in time.",
  guest_did_not_respond: "The guest did not respond.",
  batch_undone: "Another server of the group failed.",
  superseded: "Something else was asked for.",
  snapshot_failed: "The snapshot could not be taken.",
  apply_failed: "The change could not be applied.",
  authentication_failed: "The peer could not be authenticated.",
  no_proposal_chosen: "The peers have no proposal in common.",
  selectors_refused: "The peers want different networks.",
  peer_unreachable: "The peer does not answer.",
  engine_unavailable: "The engine for this operation is not available.",
} as const satisfies Readonly<Record<string, string>>;

export type WorkCode = keyof typeof workFaults;

const shape = {
  type: text({ description: "`/docs#<code>`" }),
  title: text(),
  detail: text({ description: "One sentence with names and numbers." }),
  code: text({ description: `Such as ${Object.keys(workFaults).slice(0, 3).join(", ")}.` }),
  step: nullable(text({ description: "Name of the step to blame." })),
};

export const WorkError = Type.Object(shape, { title: "WorkError" });
export type WorkError = Static<typeof WorkError>;

/** Of what runs on a machine, which may have said something itself. */
export const MachineError = Type.Object(
  { ...shape, log: nullable(text({ description: "Last 20 lines of the serial console, of a start that failed." })) },
  { title: "MachineError" },
);
export type MachineError = Static<typeof MachineError>;

/** As stored by the work engine. */
export interface StoredError {
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly step: string | null;
  readonly log?: string | null;
}

export const showWorkError = ({ code, title, detail, step }: StoredError): WorkError => ({
  type: `/docs#${code}`,
  title,
  detail,
  code,
  step,
});

export const showMachineError = (error: StoredError): MachineError => ({
  ...showWorkError(error),
  log: error.log ?? null,
});
