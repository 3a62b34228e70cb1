/**
 * Finds the reason why a tunnel is down in charon's log, received over VICI. Each line belongs to one attempt (an IKE SA by number). Until
 * the peer is identified the attempt has no tunnel, so its address and identity are kept until a line shows what failed.
 */
import type { TunnelFault } from "../interface.ts";
import { tunnelOf } from "./strongswan.ts";
import { type Message, text } from "./vici.ts";

/** Why a tunnel is down. */
export interface Reason {
  readonly fault: TunnelFault;
  /** One sentence for the user, without the values of our side. */
  readonly detail: string;
}

/** A failure of one attempt. */
export interface Finding {
  /** Tunnel id; null: a peer was refused before its tunnel was known. */
  readonly tunnel: number | null;
  /** Address and identity of the peer, "" if unknown. */
  readonly remote: string;
  readonly identity: string;
  readonly reason: Reason;
  /**
   * The pair of blocks that the host could not install, from an agreement that the peer may have narrowed. Null: the failure is not about a
   * pair.
   */
  readonly pair: { readonly local: string; readonly peer: string } | null;
}

interface Attempt {
  remote: string;
  identity: string;
  offered: string;
  /** A reason was found; later symptoms, such as a timeout, are ignored. */
  refused: boolean;
}

type Explain = (match: RegExpExecArray, attempt: Attempt) => string;

const proposalsDiffer: Explain = (_, { offered }) =>
  offered === "" ? "The peer offers other encryption settings." : `The peer offers ${offered}.`;

const patterns: readonly (readonly [RegExp, TunnelFault, Explain])[] = [
  [
    /^received AUTHENTICATION_FAILED/,
    "authentication_failed",
    () => "The peer refuses the shared key or the identities.",
  ],
  [/shared keys? for .* but MAC mismatched/, "authentication_failed", () => "The peer uses another shared key."],
  [
    /HASH does not match|decryption failed\?|could not decrypt payloads|^(integrity check|message parsing) failed/,
    "authentication_failed",
    () => "The peer uses another shared key.",
  ],
  [
    /^no shared key found|^(no matching peer config|no peer config) found/,
    "authentication_failed",
    (_, { identity }) =>
      identity === ""
        ? "No tunnel is configured for this peer."
        : `The peer identifies itself as ${identity}, for which no tunnel is configured.`,
  ],
  [
    /^constraint check failed: identity '(.*)' required/,
    "authentication_failed",
    () => "The peer identifies itself differently than expected.",
  ],
  [/^IDir '(.*)' does not match to '/, "authentication_failed", ([, id]) => `The peer identifies itself as ${id}.`],
  [
    /^received NO_PROPOSAL_CHOSEN/,
    "no_proposal_chosen",
    () => "The peer accepts none of the encryption settings, or has no tunnel configured for us.",
  ],
  [/^received INVALID_KE_PAYLOAD/, "no_proposal_chosen", () => "The peer wants another Diffie-Hellman group."],
  [
    /^received proposals unacceptable|^no (acceptable |matching )?proposal found/,
    "no_proposal_chosen",
    proposalsDiffer,
  ],
  [/^no IKE config found for /, "no_proposal_chosen", () => "The peer uses the other version of IKE."],
  [
    /^received (TS_UNACCEPTABLE|INVALID_ID_INFORMATION)/,
    "selectors_refused",
    () => "The peer has other networks configured for this tunnel.",
  ],
  [
    /^traffic selectors (.+) === (.+?) ?unacceptable/,
    "selectors_refused",
    ([, ours, theirs]) => `The peer wants ${theirs} on its side and ${ours} on ours.`,
  ],
  [
    /^no matching CHILD_SA config found for (.+) === (.+)/,
    "selectors_refused",
    ([, ours, theirs]) => `The peer wants ${theirs} on its side and ${ours} on ours.`,
  ],
  [
    /^((?:sending )?retransmit \d+ of request|giving up after|peer not responding|establishing IKE_SA failed, peer not)/,
    "peer_unreachable",
    () => "No reply from the peer.",
  ],
  [/^(sending packet failed|error writing to socket)/, "peer_unreachable", () => "Could not send packets to the peer."],
  [
    /^(unable to install|error installing route.*|installing .* failed)/,
    "engine_unavailable",
    ([line]) => `The host could not install the tunnel: ${line}.`,
  ],
];

/** Most attempts that are kept. Every packet to UDP 500 can create one, so the number is limited. */
const most = 256;

/** Creates a reader for the log of one charon. */
export function createDiagnosis(): { read(line: Message): Finding | null } {
  const attempts = new Map<string, Attempt>();
  return {
    /** Reads one `log` event of charon; returns a finding or null. */
    read(line) {
      const entry = text(line, "msg");
      const number = text(line, "ikesa-uniqueid");
      const attempt = attempts.get(number) ?? { remote: "", identity: "", offered: "", refused: false };
      const note = (seen: Partial<Attempt>): null => {
        if (number === "") return null;
        const [oldest = ""] = attempts.keys();
        if (attempts.size >= most && !attempts.has(number)) attempts.delete(oldest);
        attempts.set(number, Object.assign(attempt, seen));
        return null;
      };
      if (/^(initiating .*IKE_SA|establishing CHILD_SA)/.test(entry)) return note({ refused: false });
      const caller = /^(\S+) is initiating an? /.exec(entry)?.[1];
      if (caller !== undefined) return note({ remote: caller });
      const wanted = /^looking for .*peer configs matching .*\.\.\.(\S+?)\[(.*)\]$/.exec(entry);
      if (wanted !== null) return note({ remote: wanted[1] ?? "", identity: wanted[2] ?? "" });
      const offered = /^received proposals: (.*)/.exec(entry)?.[1];
      if (offered !== undefined) return note({ offered });

      for (const [pattern, fault, explain] of patterns) {
        const match = pattern.exec(entry);
        if (match === null) continue;
        const isAftermath = fault === "peer_unreachable" || match[0] === "unable to install";
        if (isAftermath && attempt.refused) return null;
        if (fault !== "peer_unreachable") note({ refused: true });
        const [, local, peer] = /^error installing route with policy (\S+) === (\S+)/.exec(entry) ?? [];
        return {
          tunnel: tunnelOf(text(line, "ikesa-name")),
          remote: attempt.remote || (/\.\.\.([\d.]+)/.exec(entry)?.[1] ?? ""),
          identity: attempt.identity,
          reason: { fault, detail: explain(match, attempt) },
          pair: local === undefined || peer === undefined ? null : { local, peer },
        };
      }
      return null;
    },
  };
}
