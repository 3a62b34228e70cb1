/**
 * Describes failures of the host for people who must not see its paths, programs, command lines and rule texts: clients, and the control
 * plane, which may be under control of an attacker. The complete text stays in the log of the host.
 */

/** Programs below the drivers. The short names are also words, so they count only at the beginning of a text. */
const programs =
  /(?:^|[\s"'`([/])(?:dnsmasq|charon|charon-systemd|swanctl|strongSwan|VICI|wireguard-go|[Qq](?:EMU|emu)(?:-[\w-]+)?|x-query-jit|e2fsck|debugfs|nft|nftables|conntrack|nsenter|unshare|setpriv|prlimit|sysctl|busybox|perl|ldd|ip netns|mkfs\S*)(?=$|[\s:,.;"'`)\]])/;
const shortPrograms = /^(?:ip|tc|wg|cp|cat|sh|mount|umount|timeout)(?=$|[\s:,])/;
/** An absolute path; a block such as 10.0.0.0/24, and a URL, are none. */
const path = /(?:^|[\s"'`(=:,[])\/[^\s/"'`),:]/;
/** Names of namespaces and devices on the host. */
const hostNames = /\bbrume[-_][a-z0-9]{3}\b/;
/** Parts of rules, and options of a command line. */
const rules =
  /[{}]|\b(?:table|chain|element|counter) (?:inet|bridge|ip6?|netdev)\b|\b(?:iifname|oifname|saddr|daddr)\b/;
const options = /(?:^|\s)--?[a-z][\w-]*(?=$|[\s=])/;
/** Codes of the operating system, and output of several lines. */
const raw = /\bE[A-Z]{3,}\b[:,]|\n./;

const revealing = [programs, shortPrograms, path, hostNames, rules, options, raw];

/** Returns whether the text names a path, program, command line or rule of the host. */
const isRevealing = (text: string): boolean => revealing.some((pattern) => pattern.test(text));

/** What failed, by the first pattern that the text fits. */
const subjects: readonly (readonly [RegExp, string])[] = [
  [/dnsmasq/, "the DHCP server of the network"],
  [/charon|swanctl|VICI|strongSwan/, "the IPsec engine"],
  [/wireguard|\bwg\b/i, "the WireGuard engine"],
  [/\bnft\b|nftables/, "the firewall of the network"],
  [/\bconntrack\b/, "the connection tracking"],
  [/\btc\b/, "the bandwidth limit"],
  [/qemu-img|e2fsck|debugfs|qcow2/, "the work on the disk"],
  [/qemu/i, "the process of the server"],
  [/\bsysctl\b/, "a setting of the kernel"],
  [/^ip\b|\bip (?:netns|-)|netns|namespace/, "the setup of the network"],
];

/** Causes, by the first pattern that the text fits. */
const causes: readonly (readonly [RegExp, string])[] = [
  [/no space left|ENOSPC|EDQUOT|quota exceeded|file too large|EFBIG/i, "the disk of the host is full"],
  [/cannot allocate memory|ENOMEM|out of memory/i, "the host has not enough memory"],
  [/address (?:already )?in use|EADDRINUSE|failed to (?:bind|create listening)/i, "another program uses its port"],
  [/failed to get .*lock/i, "another program uses the disk"],
  [/too many open files|EMFILE|ENFILE/i, "the host has too many open files"],
  [/input\/output error|\bEIO\b|i\/o error/i, "the host cannot read or write its disk"],
  [
    /operation not permitted|permission denied|EACCES|EPERM|read-only file system|EROFS/i,
    "the host does not permit it",
  ],
  [
    /did not (?:start|open|respond|end)|took longer|timed? ?out|ETIMEDOUT|within \d+ m?s/i,
    "it did not respond in time",
  ],
  [/aborted/i, "it was cancelled"],
  [/file exists|EEXIST|already exists/i, "what it creates exists already"],
  [/not installed|is not in \/|spawn .*ENOENT|not found/i, "a program is not installed on the host"],
  [/no such|cannot find|ENOENT|ENODEV|does not exist|is missing/i, "something that it needs is missing on the host"],
  [/damaged|corrupt|not a qcow2|invalid (?:image|qcow2)/i, "the disk is damaged"],
  [/not supported|unknown|invalid argument|EINVAL|syntax error|unrecognized/i, "the host does not support it"],
  [/SIG[A-Z]+|ended|closed|ECONNRE|EPIPE|no output/, "it ended unexpectedly"],
];

const find = (table: readonly (readonly [RegExp, string])[], text: string): string | undefined =>
  table.find(([pattern]) => pattern.test(text))?.[1];

/** Returns the cause that an error text of the host names, in plain words; null: it names none that is known. */
export function causeIn(text: string): string | null {
  // The command comes first, the output that names the cause last.
  const output = text.slice(text.lastIndexOf(": ") + 1);
  return find(causes, output) ?? find(causes, text) ?? null;
}

/** Characters of the id of a request in texts: enough to find it in a log. */
const idLength = 8;

/** Returns the reference of a request for `plainCause`. */
export const requestReference = (request: string): string => `request ${request.slice(0, idLength)}`;

const withoutReferences = (text: string): string => text.replaceAll(/ \(request [\w-]{1,8}\)/g, "");

/** True if two stored errors differ at most in the references of requests. Of work that is retried forever, each try has another one. */
export const isSameError = (one: string | null, other: string | null): boolean =>
  one === other || (one !== null && other !== null && withoutReferences(one) === withoutReferences(other));

/**
 * Returns a sentence with subject and cause for a text that reveals something of the host; null if the text can stay as it is. `reference`
 * finds the text in the log of the host.
 */
export function plainCause(text: string, reference: string): string | null {
  if (!isRevealing(text)) return null;
  const subject = find(subjects, text) ?? "the host";
  const cause = causeIn(text) ?? "only the log of the host has the cause";
  return `${subject} failed: ${cause} (${reference})`;
}
