/** WireGuard's keys: X25519 (RFC 7748), base64 of 32 bytes, as everybody writes them. */
import { createPrivateKey, createPublicKey } from "node:crypto";

/** Base64 of the public half (RFC 7748). Throws unless the text is base64 of 32 bytes. */
export function publicKeyOf(privateKey: string): string {
  const raw = Buffer.from(privateKey, "base64");
  if (raw.length !== 32) throw new Error("a private key has 32 bytes");
  // What stands before the raw key in PKCS #8 (RFC 8410 section 7).
  const der = Buffer.concat([Buffer.from("302e020100300506032b656e04220420", "hex"), raw]);
  const key = createPublicKey(createPrivateKey({ key: der, format: "der", type: "pkcs8" }));
  return key.export({ type: "spki", format: "der" }).subarray(-32).toString("base64");
}

/** A private key out of 32 random bytes, base64. */
export function createPrivate(random: (bytes: number) => Uint8Array): string {
  const raw = Buffer.from(random(32));
  // Clamped as RFC 7748 section 5 has it, so that every program shows the same text for it.
  raw[0] = (raw[0] ?? 0) & 248;
  raw[31] = ((raw[31] ?? 0) & 127) | 64;
  return raw.toString("base64");
}
