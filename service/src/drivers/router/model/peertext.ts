/** What all texts for far ends share: the placeholders, the lives of keys, and what the far end must know of ours. */

/** Whatever stands for the secrets. Never a secret itself. */
export const placeholder = { sharedKey: "<SharedKey>", privateKey: "<private key>" } as const;

/** What the far end must know of ours beside the tunnel's own fields. */
export interface NearEnd {
  /** Where the far end meets it: the edge's own address, or the one that it is translated to on its way there. */
  readonly address: string;
  /** Base64 and UDP port; null for IPsec. */
  readonly wireguard: { readonly publicKey: string; readonly listenPort: number } | null;
}

/** What takes the places of the secrets. */
export interface Secrets {
  readonly sharedKey: string | null;
  /** The far end's own, of WireGuard. */
  readonly privateKey: string | null;
}

/** Each program takes a quoted text in its own way; those of IPsec for Unix take base64, which needs no quotes. */
const quoted: Readonly<Record<string, (key: string) => string>> = {
  mikrotik: (key) => `"${key.replace(/[\\"$]/g, "\\$&")}"`,
  fortigate: (key) => `"${key.replace(/[\\"]/g, "\\$&")}"`,
};
const encoded = (key: string): string => `0s${Buffer.from(key).toString("base64")}`;
/** A text that begins so would be taken for an encoded one. */
const isPlain = (key: string): boolean => /^[\w+/=.,:-]+$/.test(key) && !/^0[sxt]/i.test(key);

/** The text with the secrets in it, for the far end alone. */
export function fillSecrets(text: string, dialect: string, { sharedKey, privateKey }: Secrets): string {
  const key = sharedKey ?? "";
  const inQuotes = isPlain(key) ? `"${key}"` : (quoted[dialect] ?? encoded)(key);
  return text
    .replaceAll(`"${placeholder.sharedKey}"`, () => inQuotes)
    .replaceAll(placeholder.sharedKey, () => key)
    .replaceAll(placeholder.privateKey, () => privateKey ?? placeholder.privateKey);
}

/** Seconds until a key is dead. */
export const life = { ike: 28_800, esp: 3600 } as const;

export const lines = (...parts: readonly (string | readonly string[])[]): string => `${parts.flat().join("\n")}\n`;
