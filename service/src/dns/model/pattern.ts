/**
 * Which owners a restricted token may see and change. The owner is the one the record was made with, relative to the domain,
 * `@` for the top: for an SRV the name below which the service stands, not `_service._proto` before it.
 */
import { unicodeName } from "./name.ts";

/**
 * Whether `*` (any run of characters, dots too) and `?` (one character) in `pattern` make it the whole `owner`, in any letter case.
 * A pattern with other than ASCII characters is held against the owner's Unicode form.
 * Never goes back further than to the last `*`: at most pattern × owner steps, both short.
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
