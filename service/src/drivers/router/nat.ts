/**
 * Translation on the machine for networks of private ranges: what leaves them for anywhere but another of our networks goes out
 * under the machine's address. One small table per network, so that making and removing one never touches another.
 */
import { machineTable, text36, uplinkPrefix } from "./name.ts";
import { tableText } from "./nft.ts";
import type { Image } from "./port.ts";

export const natTable = (tag: string, network: number): string => `${machineTable(tag)}_${text36(network)}`;

/** Null: none is needed. */
export function natText(image: Image, tag: string): string | null {
  if (!image.nat || image.edgeAddress === null) return null;
  return tableText("inet", natTable(tag, image.id), [
    "chain postrouting {",
    "  type nat hook postrouting priority srcnat; policy accept;",
    `  ip saddr { ${image.v4.cidr}, ${image.edgeAddress} } oifname != { "lo", "${uplinkPrefix(tag)}*" } masquerade`,
    "}",
  ]);
}

/** Adding before deleting makes it right whether or not the table is there. */
export const natRemoval = (tag: string, network: number): string =>
  `add table inet ${natTable(tag, network)}\ndelete table inet ${natTable(tag, network)}\n`;
