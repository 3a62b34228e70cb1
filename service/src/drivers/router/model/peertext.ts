/**
 * Shared parts of the configurations for far ends: placeholders for secrets, key lifetimes, and the data about our end.
 */

/** Placeholders for the secrets in rendered texts. */
export const placeholder = { sharedKey: "<SharedKey>", privateKey: "<private key>" } as const;

/** Data about our end that is not part of the tunnel. */
export interface NearEnd {
  /** Address at which the far end reaches us: the edge's own, or the address to which it is translated. */
  readonly address: string;
  /** Public key (base64) and UDP port; null for IPsec. */
  readonly wireguard: { readonly publicKey: string; readonly listenPort: number } | null;
}

/** The values for the placeholders. */
export interface Secrets {
  readonly sharedKey: string | null;
  /** WireGuard private key of the far end. */
  readonly privateKey: string | null;
}

/** Quoting rules by dialect; IPsec programs for Unix accept base64, which needs no quotes. */
const quoted: Readonly<Record<string, (key: string) => string>> = {
  mikrotik: (key) => `"${key.replace(/[\\"$]/g, "\\$&")}"`,
  fortigate: (key) => `"${key.replace(/[\\"]/g, "\\$&")}"`,
};
const encoded = (key: string): string => `0s${Buffer.from(key).toString("base64")}`;
/** Whether the key needs no quoting. A text that begins with `0s`, `0x` or `0t` would be decoded. */
const isPlain = (key: string): boolean => /^[\w+/=.,:-]+$/.test(key) && !/^0[sxt]/i.test(key);

/** Returns the text with the secrets filled in, for the far end only. */
export function fillSecrets(text: string, dialect: string, { sharedKey, privateKey }: Secrets): string {
  const key = sharedKey ?? "";
  const inQuotes = isPlain(key) ? `"${key}"` : (quoted[dialect] ?? encoded)(key);
  const values: Readonly<Record<string, string>> = {
    [`"${placeholder.sharedKey}"`]: inQuotes,
    [placeholder.sharedKey]: key,
    [placeholder.privateKey]: privateKey ?? placeholder.privateKey,
  };
  // In one pass: a key may contain a placeholder.
  return text.replaceAll(/"<SharedKey>"|<SharedKey>|<private key>/g, (found) => values[found] ?? found);
}

/** Lifetimes of keys in seconds. */
export const life = { ike: 28_800, esp: 3600 } as const;

/** Joins lines, each with a line end. */
export const lines = (...parts: readonly (string | readonly string[])[]): string => `${parts.flat().join("\n")}\n`;
