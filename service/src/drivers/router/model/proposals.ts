/**
 * Maps the encryption settings of the API to IKE and ESP proposals in strongSwan's syntax. Exactly one proposal is offered and accepted, so
 * that the tunnel uses what its owner chose. Group numbers are IANA's (IKEv2 transform type 4).
 */
import type { Digest, Encryption, IpsecTunnel } from "../interface.ts";

/** The encryption settings of a tunnel. */
export type Suite = Pick<IpsecTunnel, "encryption" | "digest" | "dhGroup" | "perfectForwardSecrecy">;

const groups: Readonly<Record<number, string>> = {
  2: "modp1024",
  5: "modp1536",
  14: "modp2048",
  15: "modp3072",
  16: "modp4096",
  19: "ecp256",
  20: "ecp384",
  31: "curve25519",
};

/** Returns strongSwan's name of a Diffie-Hellman group. Throws a RangeError for an unsupported group. */
export function groupOf(dhGroup: number): string {
  const group = groups[dhGroup];
  if (group === undefined) throw new RangeError(`Diffie-Hellman group ${dhGroup} is not offered`);
  return group;
}

const ike: Readonly<Record<Encryption, (digest: Digest) => string>> = {
  aes128: (digest) => `aes128-${digest}`,
  aes256: (digest) => `aes256-${digest}`,
  "3des": (digest) => `3des-${digest}`,
  // A combined mode needs no integrity algorithm, so the digest only derives keys.
  aes128gcm: (digest) => `aes128gcm16-prf${digest}`,
};

export const ikeProposal = ({ encryption, digest, dhGroup }: Suite): string =>
  `${ike[encryption](digest)}-${groupOf(dhGroup)}`;

/** Returns the ESP proposal; it contains a group only with perfect forward secrecy. */
export function espProposal({ encryption, digest, dhGroup, perfectForwardSecrecy }: Suite): string {
  const cipher = encryption === "aes128gcm" ? "aes128gcm16" : ike[encryption](digest);
  return perfectForwardSecrecy ? `${cipher}-${groupOf(dhGroup)}` : cipher;
}
