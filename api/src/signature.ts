/**
 * The signature of webhooks: `Brume-Signature: t=SECONDS,v1=HEX`. HEX is the HMAC-SHA256 of `t`, a full stop and the unparsed body; the
 * key is the secret of the webhook. Needs WebCrypto: Node, browsers, Deno, workers.
 */

/** Input of the check of a signature. */
export interface SignatureCheck {
  /** The unparsed body of the request. */
  readonly body: string | Uint8Array;
  /** Value of the header `Brume-Signature`. */
  readonly signature: string | null | undefined;
  readonly secret: string;
  /** Seconds that `t` may differ from `now`, against replayed requests. Default 300. */
  readonly tolerance?: number;
  /** Milliseconds since 1970. Default: the current time. */
  readonly now?: number;
}

const hmac = { name: "HMAC", hash: "SHA-256" } as const;

/** Returns true if the request is signed with the secret and recent. Never throws, for any body and signature. */
export async function verifySignature(check: SignatureCheck): Promise<boolean> {
  const { body, signature, secret, tolerance = 300, now = Date.now() } = check;
  const [, seconds = "", hex = ""] = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/.exec(signature ?? "") ?? [];
  if (seconds === "" || Math.abs(now / 1000 - Number(seconds)) > tolerance) return false;
  const encoder = new TextEncoder();
  const head = encoder.encode(`${seconds}.`);
  const bytes = typeof body === "string" ? encoder.encode(body) : body;
  const signed = new Uint8Array(head.length + bytes.length);
  signed.set(head);
  signed.set(bytes, head.length);
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), hmac, false, ["verify"]);
  const mac = Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  return crypto.subtle.verify(hmac, key, mac, signed);
}
