/**
 * Encrypts secrets in the database with AES-256-GCM (NIST SP 800-38D) and a key that is not in the database; creates random tokens.
 * A sealed value is 12 bytes nonce, 16 bytes tag, ciphertext.
 */
import { createCipheriv, createDecipheriv, createSecretKey, hash, randomBytes } from "node:crypto";

/** Encrypts the secrets that the database stores. */
export interface Sealer {
  /** Encrypts a text. */
  seal(plain: string): Uint8Array;
  /** Decrypts a sealed value. Throws if it was not sealed with this key. */
  open(sealed: Uint8Array): string;
}

const nonceBytes = 12;
const tagBytes = 16;

/** Creates a sealer with a key of 32 bytes. */
export function createSealer(bytes: Uint8Array): Sealer {
  // As bytes, the key would be imported again for each value, which takes five times as long as the decryption.
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

/** Returns a new random token: 64 lower-case hexadecimal characters. */
export function createTokenValue(): string {
  return randomBytes(32).toString("hex");
}

/** Returns the SHA-256 of a token, hexadecimal: the database stores only this. */
export function hashToken(value: string): string {
  return hash("sha256", value);
}
