/**
 * Secrets at rest: AES-256-GCM (NIST SP 800-38D) under a key that is not in the database, and random tokens.
 * A sealed value is 12 bytes nonce, 16 bytes tag, ciphertext.
 */
import { createCipheriv, createDecipheriv, createSecretKey, hash, randomBytes } from "node:crypto";

export interface Sealer {
  seal(plain: string): Uint8Array;
  /** Throws when the value was not sealed with this key. */
  open(sealed: Uint8Array): string;
}

const nonceBytes = 12;
const tagBytes = 16;

/** `bytes` is the key, 32 of them. */
export function createSealer(bytes: Uint8Array): Sealer {
  // Given as bytes it would be looked at anew for each value, which takes five times as long as opening one.
  const key = createSecretKey(bytes);
  return {
    seal(plain) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv("aes-256-gcm", key, nonce);
      const body = Buffer.concat([cipher.update(plain, "utf8"), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), body]);
    },
    open(sealed) {
      const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, nonceBytes));
      decipher.setAuthTag(sealed.subarray(nonceBytes, nonceBytes + tagBytes));
      return decipher.update(sealed.subarray(nonceBytes + tagBytes), undefined, "utf8") + decipher.final("utf8");
    },
  };
}

/** A token's value: 64 lower-case hexadecimal characters. */
export function createTokenValue(): string {
  return randomBytes(32).toString("hex");
}

/** Tokens are kept only as this: SHA-256, hexadecimal. */
export function hashToken(value: string): string {
  return hash("sha256", value);
}
