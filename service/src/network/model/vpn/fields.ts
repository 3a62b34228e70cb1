/**
 * Parsers for single fields of a tunnel: blocks, endpoints, identities and keys. Each returns canonical text or the problem. The texts
 * are copied into configurations of IKE daemons and of peers' routers, so characters with a meaning there are rejected.
 */

import { isIPv4 } from "node:net";
import { tunnelLimits } from "@brume/api/vpn.ts";
import { formatAddresses, parseAddress, parseAddresses, type Range } from "../../../base/address.ts";
import { type FieldProblem, fieldProblem } from "../../../base/error.ts";
import { quote as quoteText } from "../../../base/quote.ts";

/** Canonical text, or why the field is invalid. */
export type FieldValue = string | FieldProblem;

/** Returns the text in quotes, with all but visible ASCII escaped, at most 40 characters of it. */
export const quote = (text: string): string => quoteText(text, { longest: 40, escape: /[^ -~…]/gu });

const invalid = (must: string, text: string): FieldProblem =>
  fieldProblem("format_invalid", `${must}, not ${quote(text)}`);

/** Reads an IPv4 block and clears its host bits; a single address is a /32. Null: invalid. */
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

/** Blocks without hosts (RFC 6890): this network, loopback, link local, multicast and reserved. Wider blocks may contain them. */
const nowhere = ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3"].map(parseAddresses);
const isNowhere = (range: Range): boolean =>
  nowhere.some(({ first, last }) => range.first >= first && range.last <= last);

/** Reads 1 to 16 IPv4 blocks joined by commas, each inside the block `within`; duplicates are removed. */
export function readBlocks(text: string, within = "0.0.0.0/0"): FieldValue {
  const parts = text.split(",").map((part) => part.trim());
  const limits = parseAddresses(within);
  const blocks = new Set<string>();
  for (const part of parts) {
    if (part === "") continue;
    const block = readBlock(part);
    if (block === null) return invalid("must be IPv4 blocks such as 10.0.0.0/24, joined by commas", part);
    if (block.range.first < limits.first || block.range.last > limits.last)
      return fieldProblem("out_of_range", `must be inside ${within}, but ${block.text} is not`);
    if (isNowhere(block.range))
      return fieldProblem("out_of_range", `must be blocks that hosts can use, but ${block.text} is reserved`);
    blocks.add(block.text);
  }
  if (blocks.size === 0) return invalid("must be IPv4 blocks such as 10.0.0.0/24, joined by commas", text);
  if (blocks.size > tunnelLimits.blocks)
    return fieldProblem("too_long", `must have at most ${tunnelLimits.blocks} blocks, not ${blocks.size}`);
  return [...blocks].join(",");
}

/** Returns the blocks of a canonical text. */
export const splitBlocks = (blocks: string): readonly string[] => blocks.split(",");

const label = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?";
const hostName = new RegExp(`^${label}(?:\\.${label})*$`);

/** Labels of letters, digits, - and _. The last one must not be a number: that would be a mistyped address. */
const isHostName = (text: string): boolean => text.length <= 253 && hostName.test(text) && !/(?:^|\.)\d+$/.test(text);

const isHost = (text: string): boolean => (isIPv4(text) ? !isNowhere(parseAddresses(text)) : isHostName(text));

/** Reads the peer of an IPsec tunnel: an IPv4 address, a host name, or `any`. */
export function readPeer(text: string): FieldValue {
  if (text.toLowerCase() === "any") return "any";
  return isHost(text) ? text : invalid("must be the IPv4 address or the host name of the peer, or any", text);
}

/** Reads the peer of a WireGuard tunnel: `host:port`. */
export function readHostPort(text: string): FieldValue {
  const [, host = "", port = ""] = /^(.*):(\d{1,5})$/.exec(text) ?? [];
  if (isHost(host) && Number(port) >= 1 && Number(port) <= 65_535) return `${host}:${Number(port)}`;
  return invalid("must be an IPv4 address or host name and a port, such as vpn.example.com:51820", text);
}

/** Reads an IKE identity (RFC 7296 section 3.5): IPv4 address, host name, or `user@host`. */
export function readIdentity(text: string): FieldValue {
  const [, user, host = ""] = /^(?:([^@]*)@)?([^@]*)$/.exec(text) ?? [];
  // An IKE daemon reads 0.0.0.0 as any identity; `any` is probably a mistake for the same.
  const isGood =
    user !== undefined
      ? /^[A-Za-z0-9._+-]{1,64}$/.test(user) && isHostName(host)
      : isIPv4(host)
        ? host !== "0.0.0.0"
        : isHostName(host) && host.toLowerCase() !== "any";
  return isGood ? text : invalid("must be an IPv4 address, a host name or user@host", text);
}

/** Reads base64 of 32 bytes in canonical form (RFC 4648 section 3.5). The error does not repeat it: it may be a secret. */
export function readKey(text: string): FieldValue {
  const isKey = /^[A-Za-z0-9+/]{43}=$/.test(text) && Buffer.from(text, "base64").toString("base64") === text;
  return isKey ? text : fieldProblem("format_invalid", "must be the base64 of 32 bytes");
}

const keyLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const keyLength = 32;

/**
 * Creates a shared key for an IPsec tunnel without one: 32 letters and digits with equal probability (190 bits), which every router
 * accepts without quotes.
 */
export function createSharedKey(random: (bytes: number) => Uint8Array): string {
  // Bytes beyond the last complete multiple of the alphabet would make its first letters more probable.
  const fair = 256 - (256 % keyLetters.length);
  let key = "";
  while (key.length < keyLength)
    for (const byte of random(keyLength - key.length)) if (byte < fair) key += keyLetters[byte % keyLetters.length];
  return key;
}
