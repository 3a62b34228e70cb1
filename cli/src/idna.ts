/** Names of domains in their two forms, so that an object is found by either. The service decides which names are valid. */
import { domainToASCII, domainToUnicode } from "node:url";

const withoutDot = (name: string): string => name.replace(/\.$/, "").toLowerCase();

/** Converts label by label: node:url reads a name as the host of a URL, which has no slash and may be an address. */
const byLabel = (name: string, pattern: RegExp, convert: (label: string) => string): string =>
  withoutDot(name)
    .split(".")
    .map((label) => (pattern.test(label) ? convert(label) || label : label))
    .join(".");

/** Returns a name in ASCII, in lower case and without the final dot. Labels that are not valid stay. */
export const asciiName = (name: string): string => byLabel(name, /[^\0-\x7F]/, domainToASCII);

/** Returns a name in Unicode, in lower case and without the final dot. Labels that are not valid stay. */
export const unicodeName = (name: string): string => byLabel(name, /^xn--|[^\0-\x7F]/, domainToUnicode);
