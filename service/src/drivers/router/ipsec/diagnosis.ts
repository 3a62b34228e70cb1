/**
 * Why a tunnel is down, read from charon's own log as it comes over VICI. Each line belongs to one attempt (an IKE SA by number);
 * before the peer has said who it is the attempt has no name, so what it told about itself is kept until a line says what failed.
 */
import type { TunnelFault } from "../interface.ts";
import { tunnelOf } from "./strongswan.ts";
import { type Message, text } from "./vici.ts";

export interface Reason {
  readonly fault: TunnelFault;
  /** One sentence, without our own values. */
  readonly detail: string;
}

export interface Finding {
  /** Null: a peer called and was refused before a tunnel was found for it. */
  readonly tunnel: number | null;
  /** The caller's address and identity, "" where it did not say. */
  readonly remote: string;
  readonly identity: string;
  readonly reason: Reason;
  /** The pair of blocks that this machine refuses: of an agreement that the peer may have narrowed. Null: it is not about one. */
  readonly pair: { readonly local: string; readonly peer: string } | null;
}

interface Attempt {
  remote: string;
  identity: string;
  offered: string;
  /** Something was said that tells why; what follows from it, such as silence, tells less. */
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
      identity === "" ? "The peer is not known here." : `The peer calls itself ${identity}, which is not known here.`,
  ],
  [
    /^constraint check failed: identity '(.*)' required/,
    "authentication_failed",
    () => "The peer calls itself otherwise than expected.",
  ],
  [/^IDir '(.*)' does not match to '/, "authentication_failed", ([, id]) => `The peer calls itself ${id}.`],
  [
    /^received NO_PROPOSAL_CHOSEN/,
    "no_proposal_chosen",
    () => "The peer accepts none of the encryption settings, or no tunnel is set up for us there.",
  ],
  [/^received INVALID_KE_PAYLOAD/, "no_proposal_chosen", () => "The peer wants another Diffie-Hellman group."],
  [
    /^received proposals unacceptable|^no (acceptable |matching )?proposal found/,
    "no_proposal_chosen",
    proposalsDiffer,
  ],
  [/^no IKE config found for /, "no_proposal_chosen", () => "The peer calls with the other version of IKE."],
  [
    /^received (TS_UNACCEPTABLE|INVALID_ID_INFORMATION)/,
    "selectors_refused",
    () => "The peer has other networks set up for this tunnel.",
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
    () => "The peer does not answer.",
  ],
  [/^(sending packet failed|error writing to socket)/, "peer_unreachable", () => "No packet leaves for the peer."],
  [
    /^(unable to install|error installing route.*|installing .* failed)/,
    "engine_unavailable",
    ([line]) => `This machine refuses the tunnel: ${line}.`,
  ],
];

/** Attempts remembered at once: whoever sends packets to UDP 500 makes one, so there must be an end. */
const most = 256;

export function createDiagnosis(): { read(line: Message): Finding | null } {
  const attempts = new Map<string, Attempt>();
  return {
    /** `line` is charon's `log` event. */
    read(line) {
      const said = text(line, "msg");
      const number = text(line, "ikesa-uniqueid");
      const attempt = attempts.get(number) ?? { remote: "", identity: "", offered: "", refused: false };
      const note = (seen: Partial<Attempt>): null => {
        if (number === "") return null;
        const [oldest = ""] = attempts.keys();
        if (attempts.size >= most && !attempts.has(number)) attempts.delete(oldest);
        attempts.set(number, Object.assign(attempt, seen));
        return null;
      };
      if (/^(initiating .*IKE_SA|establishing CHILD_SA)/.test(said)) return note({ refused: false });
      const caller = /^(\S+) is initiating an? /.exec(said)?.[1];
      if (caller !== undefined) return note({ remote: caller });
      const wanted = /^looking for .*peer configs matching .*\.\.\.(\S+?)\[(.*)\]$/.exec(said);
      if (wanted !== null) return note({ remote: wanted[1] ?? "", identity: wanted[2] ?? "" });
      const offered = /^received proposals: (.*)/.exec(said)?.[1];
      if (offered !== undefined) return note({ offered });

      for (const [pattern, fault, explain] of patterns) {
        const match = pattern.exec(said);
        if (match === null) continue;
        const isAftermath = fault === "peer_unreachable" || match[0] === "unable to install";
        if (isAftermath && attempt.refused) return null;
        if (fault !== "peer_unreachable") note({ refused: true });
        const [, local, peer] = /^error installing route with policy (\S+) === (\S+)/.exec(said) ?? [];
        return {
          tunnel: tunnelOf(text(line, "ikesa-name")),
          remote: attempt.remote || (/\.\.\.([\d.]+)/.exec(said)?.[1] ?? ""),
          identity: attempt.identity,
          reason: { fault, detail: explain(match, attempt) },
          pair: local === undefined || peer === undefined ? null : { local, peer },
        };
      }
      return null;
    },
  };
}
