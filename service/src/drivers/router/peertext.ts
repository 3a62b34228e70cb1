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

/** Seconds until a key is dead. */
export const life = { ike: 28_800, esp: 3600 } as const;

export const lines = (...parts: readonly (string | readonly string[])[]): string => `${parts.flat().join("\n")}\n`;
