/** The driver interface for a certificate authority that speaks ACME (RFC 8555). */

/** How the authority verifies a name (RFC 8555 section 8): a TXT record, or a file that a plain HTTP server sends. */
export type Method = "dns-01" | "http-01";

/** What the authority expects to find for one name. */
export interface Challenge {
  readonly method: Method;
  /** The name, without `*.` of a wildcard. */
  readonly name: string;
  /** Part of the path at `/.well-known/acme-challenge/`, for `http-01`. */
  readonly token: string;
  /** Text of the TXT record at `_acme-challenge.NAME`, or of the file. */
  readonly value: string;
}

/** Certificate chain and private key as PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** An order of one certificate. */
export interface Order {
  /** URL of the authority's directory. */
  readonly directory: string;
  /** PEM of the private key that identifies the account. The account is created if it does not exist. */
  readonly accountKey: string;
  /** Mail address; null: none. */
  readonly contact: string | null;
  /** The first is also the common name if it is short enough. */
  readonly names: readonly string[];
  readonly method: Method;
}

/** Orders certificates. */
export interface Authority {
  /**
   * Orders a certificate with a new key. Calls `present` once with all challenges, and requests their verification when it has resolved. The
   * caller removes what it presented. Rejects with the reason of the authority, and at the signal.
   */
  order(
    order: Order,
    present: (challenges: readonly Challenge[]) => Promise<void>,
    signal: AbortSignal,
  ): Promise<KeyPair>;
  /** Creates a key and a certificate that it signs itself, valid for `days` days. */
  selfSign(names: readonly string[], days: number): Promise<KeyPair>;
  /** Creates the private key of an account, as PEM. */
  createAccountKey(): Promise<string>;
}
