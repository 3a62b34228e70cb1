/**
 * Records and zone files for fuzzing: records that are valid alone, at few names so that they conflict, and zone files with valid, nearly
 * valid and invalid lines.
 */
import type { RecordType } from "@brume/api/dns.ts";
import type { Random } from "../support/random.ts";

const names = ["@", "a", "b.a", "c.b.a", "cut", "x.cut", "y.x.cut", "*", "*.a", "*.cut", "www"] as const;
const targets = ["www", "a", "ns.cut", "elsewhere.example.", "@", "www.forge1.test."] as const;

/** Fields of a record that is valid if no other record conflicts with it. */
export function makeRecord({ pick, below, chance }: Random, type: RecordType): Record<string, unknown> {
  const owner = pick(names);
  const TTL = chance(50) ? {} : { TTL: 1 + below(10_000) };
  switch (type) {
    case "A":
      return { Name: owner, IP: `192.0.2.${below(6)}`, ...TTL };
    case "AAAA":
      return { Name: owner, IP: `2001:db8::${below(6)}`, ...TTL };
    case "CNAME":
      return { MnemonicName: owner, Name: pick(targets), ...TTL };
    case "MX":
      return { Name: owner, HostName: owner, ExtHostName: pick(targets), Priority: below(3), ...TTL };
    case "NS":
      return { HostName: owner.startsWith("*") ? "cut" : owner, Name: pick(targets), ...TTL };
    case "SRV":
      return { Name: owner.replace("*", "w"), Service: "sip", Proto: "tcp", Port: 5060, Target: pick(targets), ...TTL };
    default:
      return { Name: owner, Text: pick(["x", "y", '"a" "b"', "é".repeat(200)]), ...TTL };
  }
}

const owners = [
  "@",
  "www",
  "a",
  "b.a",
  "*.w",
  "cut",
  "x.cut",
  "",
  "a\\.b",
  "a\\000b",
  "_sip._tcp",
  "a..b",
  "-",
  "l".repeat(64),
  "forge0.test.",
  "other.test.",
  "*",
  "*.*",
];
const ttls = ["", "300", "1h30m", "1w", "-1", "99999999999", "0", "1x"];
const classes = ["", "IN", "in", "CH", "ANY", "CLASS1"];
const data = [
  "A 192.0.2.1",
  "A 192.0.2",
  "A ::1",
  "AAAA 2001:db8::1",
  "AAAA x",
  "A",
  "A 1.2.3.4 5.6.7.8",
  "TYPE1 \\# 4 C0000201",
  "TYPE65535 \\# 0",
  "CNAME www",
  "CNAME .",
  "CNAME",
  "MX 10 mail",
  "MX 0 .",
  "MX 70000 mail",
  "MX mail",
  "NS ns.cut",
  "NS @",
  "NS 192.0.2.1",
  "SRV 0 0 5060 host",
  "SRV 0 0 99999 host",
  "SRV 1 2 3",
  'TXT "a" "b"',
  'TXT "open',
  "TXT \\",
  'TXT ""',
  `TXT "${"x".repeat(300)}"`,
  'TXT "\\255\\0"',
  "SOA ns host 1 2 3 4 5",
  "SOA ns host (1 2 3",
  'CAA 0 issue "x"',
  "PTR x",
  "LOC 1",
  "DNSKEY 1 2 3",
  "UNKNOWN x",
  "\\# 3 00",
];
const specials = [
  "$TTL 1h",
  "$TTL",
  "$TTL x",
  "$ORIGIN sub",
  "$ORIGIN .",
  "$ORIGIN",
  "$ORIGIN other.test.",
  "$INCLUDE /etc/passwd",
  "$INCLUDE",
  "$FOO 1",
  "$GENERATE 1-3 g$ A 10.0.0.$",
  "$GENERATE 0-99999999 g$ A 10.0.0.1",
  "$GENERATE 5-1 g$ A 1.2.3.4",
  "$GENERATE 1-9/0 g$ A 1.2.3.4",
  "$GENERATE 1-2 ${0,999999999,d} A 1.2.3.4",
  "$GENERATE 1-3 g${-5,3,x} TXT $",
  "(",
  ")",
  "((",
  "())",
  ";",
  "; comment",
  '"',
  "\\",
  "\0",
  "\u00a0",
  "\t\t",
  "é A 192.0.2.1",
  "\ud800",
  "@ (",
  "  A ( 192.0.2.9 )",
  "x".repeat(5000),
  "( ".repeat(2000),
];

export function makeZoneFile(random: Random): string {
  const { pick, chance, below } = random;
  const lines = Array.from({ length: below(chance(5) ? 300 : 12) }, () => {
    if (chance(25)) return pick(specials);
    // Valid lines are more frequent than invalid ones: only a file without syntax errors reaches the rules.
    const isGood = chance(60);
    if (isGood)
      return `h${below(400)} ${pick(["", "300"])} IN ${pick(["A 192.0.2.1", "TXT t", "MX 10 mail", "AAAA ::1"])}`;
    return `${pick(owners)} ${pick(ttls)} ${pick(classes)} ${pick(data)}`;
  });
  const kept = chance(50) ? lines.filter((line) => /^h\d+ /.test(line)) : lines;
  return kept.join(pick(["\n", "\r\n", "\n\n", "\n", "\r"]));
}
