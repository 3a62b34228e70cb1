/**
 * The signature of webhooks: `Brume-Signature: t=SECONDS,v1=HEX`, where HEX is HMAC-SHA256 under the webhook's secret of `t`, a full stop
 * and the body as it came. Runs wherever there is WebCrypto: Node, browsers, Deno, workers.
 */

export interface SignatureCheck {
  /** The body as it came, before anything parsed it. */
  readonly body: string | Uint8Array;
  /** The header `Brume-Signature`. */
  readonly signature: string | null | undefined;
  readonly secret: string;
  /** Seconds that `t` may differ from now; 300 by default. What is older may be a repetition by somebody who listened. */
  readonly tolerance?: number;
  /** Milliseconds since 1970; the present by default. */
  readonly now?: number;
}

const hmac = { name: "HMAC", hash: "SHA-256" } as const;

/** Whether the request comes from whoever has the secret, and is recent. Never throws for what came from outside. */
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
