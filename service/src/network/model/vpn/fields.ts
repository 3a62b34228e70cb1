/**
 * Single fields of a tunnel: blocks, ends, identities and keys, each read into one canonical text or refused. These texts reach the
 * configuration of an IKE daemon and of routers we will never see, so only letters that mean nothing there get through.
 */
import { isIPv4 } from "node:net";
import { tunnelLimits } from "@brume/api/vpn.ts";
import { formatAddresses, parseAddress, parseAddresses, type Range } from "../../../base/address.ts";
import { type FieldProblem, fieldProblem } from "../../../base/fieldproblem.ts";
import { quote as quoteText } from "../../../base/quote.ts";

export type Taken = string | FieldProblem;

/** Nothing but visible ASCII. */
export const quote = (text: string): string => quoteText(text, { longest: 40, escape: /[^ -~…]/gu });

const invalid = (must: string, text: string): FieldProblem =>
  fieldProblem("format_invalid", `${must}, not ${quote(text)}`);

/** An IPv4 block, host bits cleared; an address alone is a block of one. Null: it is neither. */
function readBlock(text: string): { readonly text: string; readonly range: Range } | null {
  const [, address = "", length = "32"] = /^([\d.]+)(?:\/(\d{1,2}))?$/.exec(text) ?? [];
  if (!isIPv4(address) || Number(length) > 32) return null;
  const size = 1n << BigInt(32 - Number(length));
  const { value } = parseAddress(address);
  const first = value - (value % size);
  return {
    text: `${formatAddresses(4, { first, last: first })}/${Number(length)}`,
    range: { first, last: first + size - 1n },
  };
}

/** Where no host can be: this network, this machine, this link, many at once (RFC 6890). Wider blocks may have them inside. */
const nowhere = ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3"].map(parseAddresses);
const isNowhere = (range: Range): boolean =>
  nowhere.some(({ first, last }) => range.first >= first && range.last <= last);

/** One to 16 IPv4 blocks joined by commas, each inside the block `within`; repeated ones count once. */
export function readBlocks(text: string, within = "0.0.0.0/0"): Taken {
  const parts = text.split(",").map((part) => part.trim());
  const whole = parseAddresses(within);
  const blocks = new Set<string>();
  for (const part of parts) {
    if (part === "") continue;
    const block = readBlock(part);
    if (block === null) return invalid("must be IPv4 blocks such as 10.0.0.0/24, joined by commas", part);
    if (block.range.first < whole.first || block.range.last > whole.last)
      return fieldProblem("out_of_range", `must be inside ${within}, and ${block.text} is not`);
    if (isNowhere(block.range))
      return fieldProblem("out_of_range", `must be blocks of hosts, and ${block.text} is not`);
    blocks.add(block.text);
  }
  if (blocks.size === 0) return invalid("must be IPv4 blocks such as 10.0.0.0/24, joined by commas", text);
  if (blocks.size > tunnelLimits.blocks)
    return fieldProblem("too_long", `must have at most ${tunnelLimits.blocks} blocks, not ${blocks.size}`);
  return [...blocks].join(",");
}

export const splitBlocks = (blocks: string): readonly string[] => blocks.split(",");

const label = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?";
const hostName = new RegExp(`^${label}(?:\\.${label})*$`);

/** Labels of letters, digits, - and _, the last of which is no number: that would be a mistyped address. */
const isHostName = (text: string): boolean => text.length <= 253 && hostName.test(text) && !/(?:^|\.)\d+$/.test(text);

const isHost = (text: string): boolean => (isIPv4(text) ? !isNowhere(parseAddresses(text)) : isHostName(text));

/** The peer of an IPsec tunnel: an address, a host name, or `any`. */
export function readPeer(text: string): Taken {
  if (text.toLowerCase() === "any") return "any";
  return isHost(text) ? text : invalid("must be the IPv4 address or the host name of the peer, or any", text);
}

/** The peer of a WireGuard tunnel: `host:port`. */
export function readHostPort(text: string): Taken {
  const [, host = "", port = ""] = /^(.*):(\d{1,5})$/.exec(text) ?? [];
  if (isHost(host) && Number(port) >= 1 && Number(port) <= 65_535) return `${host}:${Number(port)}`;
  return invalid("must be an IPv4 address or host name and a port, such as vpn.example.com:51820", text);
}

/** An IKE identity (RFC 7296 section 3.5): IPv4 address, host name, or `user@host`. */
export function readIdentity(text: string): Taken {
  const [, user, host = ""] = /^(?:([^@]*)@)?([^@]*)$/.exec(text) ?? [];
  // 0.0.0.0 is everybody to an IKE daemon, and `any` nobody that has it in mind.
  const isGood =
    user !== undefined
      ? /^[A-Za-z0-9._+-]{1,64}$/.test(user) && isHostName(host)
      : isIPv4(host)
        ? host !== "0.0.0.0"
        : isHostName(host) && host.toLowerCase() !== "any";
  return isGood ? text : invalid("must be an IPv4 address, a host name or user@host", text);
}

/** Base64 of 32 bytes, in its only spelling (RFC 4648 section 3.5). Never repeated in a fault: it may be a secret. */
export function readKey(text: string): Taken {
  const isKey = /^[A-Za-z0-9+/]{43}=$/.test(text) && Buffer.from(text, "base64").toString("base64") === text;
  return isKey ? text : fieldProblem("format_invalid", "must be the base64 of 32 bytes");
}
