/** Algorithms of tunnels by their usual names. Pure. */

/** IANA names of algorithms, as the engine reports them, and the usual ones. */
const usual: readonly (readonly [RegExp, string])[] = [
  [/^AES_CBC_(\d+)$/, "AES-$1"],
  [/^AES_GCM_\d+_(\d+)$/, "AES-$1-GCM"],
  [/^3DES(?:_CBC)?(?:_\d+)?$/, "3DES"],
  [/^HMAC_SHA2_(\d+)(?:_\d+)?$/, "SHA-$1"],
  [/^HMAC_SHA1(?:_\d+)?$/, "SHA-1"],
  [/^(MODP|ECP)_(\d+)$/, "$1-$2"],
  [/^CURVE_25519$/, "Curve25519"],
];

/** Returns the algorithms of a proposal by their usual names: `AES-256 · SHA-256 · MODP-2048`. Others stay as they are. */
export const algorithmsOf = (proposal: string): string =>
  proposal
    .split("/")
    .map((name) => usual.reduce((text, [form, usualName]) => text.replace(form, usualName), name))
    .join(" · ");
