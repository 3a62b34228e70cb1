/**
 * Names below which strangers register domains (publicsuffix.org): no project may have one of them, for it would have all of those. Both
 * sections count, `co.uk` of ICANN and `github.io` of a company. A name whose top level the list does not know is private
 * (`internal`, `lan`), and so is `home.arpa` (RFC 8375).
 */
import { parse } from "tldts";

const options = {
  allowPrivateDomains: true,
  extractHostname: false,
  validateHostname: false,
  detectIp: false,
} as const;

/** `ascii`: a name as domains have it, in lower case. */
export function isPublicSuffix(ascii: string): boolean {
  if (ascii === "home.arpa") return false;
  const { publicSuffix, isIcann, isPrivate } = parse(ascii, options);
  return publicSuffix === ascii && (isIcann === true || isPrivate === true);
}
