/** Reads and checks the headers of a request to the agent, before its body is read. */
import type { IncomingHttpHeaders } from "node:http";
import { headers, protocol } from "./contract/verb.ts";
import { AgentError } from "./error.ts";

/** The checked headers. */
export interface Head {
  readonly request: string;
  readonly fence: number;
  /** Milliseconds until the caller stops waiting; null: as long as the verb takes. */
  readonly deadline: number | null;
}

const requestPattern = /^[A-Za-z0-9-]{1,64}$/;
const numberPattern = /^[0-9]{1,15}$/;

const one = (value: string | readonly string[] | undefined): string => (typeof value === "string" ? value : "");

function numberOf(value: string, name: string): number {
  if (!numberPattern.test(value)) throw new AgentError("input_invalid", `the header ${name} must be a whole number`);
  return Number(value);
}

/** Describes which side is older, and what to do. `theirs`: the version of the caller. */
export function mismatch(theirs: number, release: string): AgentError {
  const older = theirs < protocol ? "control plane" : "host agent";
  return new AgentError(
    "protocol_mismatch",
    `the host agent (release ${release}) speaks protocol ${protocol}, and the control plane speaks protocol ${theirs}: update the ${older} and restart it; servers and networks keep running`,
  );
}

/** Reads the headers. Throws an `AgentError` if one is missing or invalid, and for another protocol. */
export function readHead(sent: IncomingHttpHeaders, release: string): Head {
  const version = one(sent[headers.protocol]);
  if (version !== String(protocol)) throw mismatch(numberOf(version, headers.protocol), release);
  const request = one(sent[headers.request]);
  if (!requestPattern.test(request))
    throw new AgentError("input_invalid", `the header ${headers.request} must have 1-64 letters, digits and hyphens`);
  const fence = numberOf(one(sent[headers.fence]), headers.fence);
  const deadline = sent[headers.deadline] === undefined ? null : one(sent[headers.deadline]);
  return { request, fence, deadline: deadline === null ? null : numberOf(deadline, headers.deadline) };
}
