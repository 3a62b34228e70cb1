/**
 * WireGuard keys: X25519 (RFC 7748), written as base64 of 32 bytes.
 */
import { createPrivateKey, createPublicKey } from "node:crypto";

/** Returns the public key of a private key (RFC 7748), as base64. Throws unless the text is base64 of 32 bytes. */
export function publicKeyOf(privateKey: string): string {
  const raw = Buffer.from(privateKey, "base64");
  if (raw.length !== 32) throw new Error("a WireGuard private key is not base64 of 32 bytes");
  // The header of a raw key in PKCS #8 (RFC 8410 section 7).
  const der = Buffer.concat([Buffer.from("302e020100300506032b656e04220420", "hex"), raw]);
  const key = createPublicKey(createPrivateKey({ key: der, format: "der", type: "pkcs8" }));
  return key.export({ type: "spki", format: "der" }).subarray(-32).toString("base64");
}

/** Creates a private key from 32 random bytes, as base64. */
export function createPrivate(random: (bytes: number) => Uint8Array): string {
  const raw = Buffer.from(random(32));
  // Clamped as in RFC 7748 section 5, so that every program shows the same text for the key.
  raw[0] = (raw[0] ?? 0) & 248;
  raw[31] = ((raw[31] ?? 0) & 127) | 64;
  return raw.toString("base64");
}
