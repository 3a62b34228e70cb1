/**
 * Matches the record pattern of a restricted token against owners. The owner is the stored one, relative to the domain, `@` for the top;
 * for an SRV without `_service._proto`.
 */
import { unicodeName } from "./name.ts";

/**
 * Returns whether the pattern matches the complete owner, in any letter case. `*` matches any characters, including dots; `?` matches one.
 * A pattern with non-ASCII characters is compared with the Unicode form of the owner.
 * Backtracks only to the last `*`, so the time is at most pattern × owner steps.
 */
export function ownerMatches(pattern: string, owner: string): boolean {
  const p = pattern.normalize("NFC").toLowerCase();
  const o = (isAscii(p) ? owner : unicodeName(owner)).toLowerCase();
  let i = 0;
  let j = 0;
  let star = -1;
  let resume = 0;
  while (j < o.length) {
    if (p[i] === "*") {
      star = i++;
      resume = j;
    } else if (i < p.length && (p[i] === "?" || p[i] === o[j])) {
      i++;
      j++;
    } else if (star >= 0) {
      i = star + 1;
      j = ++resume;
    } else return false;
  }
  while (p[i] === "*") i++;
  return i === p.length;
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) return false;
  return true;
}
