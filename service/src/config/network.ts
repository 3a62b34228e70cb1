/** Settings of networks: pools of addresses, NAT, WireGuard, name service for servers, and limits. */
import { isIP, isIPv4 } from "node:net";
import { ConfigError, checkBlock, parseList, type Settings } from "./value.ts";

/** When the addresses of networks are translated (NAT), in the words of `BRUME_NAT`. */
const natModes = ["never", "outside-private", "always"] as const;

/** Settings of all networks of the host. */
export interface NetworkConfig {
  /** IPv4 blocks from which public networks and their edges are allocated. */
  readonly publicPools: readonly string[];
  /** IPv6 block of /56 or larger, from which each public network and the shared network gets a /64; null: no IPv6. */
  readonly publicPool6: string | null;
  /** IPv4 block of each location's shared network. */
  readonly sharedPools: readonly string[];
  /** When addresses of networks are translated (NAT). */
  readonly nat: (typeof natModes)[number];
  /** IPv4 address at which the host is reached from outside; null: its own. */
  readonly publicAddress: string | null;
  /** UDP port of the first edge with WireGuard; each further edge uses the next port. */
  readonly wireguardPort: number;
  /** Name servers to which edges forward queries of servers; empty: edges do not serve DNS. */
  readonly forwarders: readonly string[];
  /** All blocks by setting, to detect conflicts with addresses and routes of the host. */
  readonly pools: readonly {
    readonly setting: string;
    readonly blocks: readonly string[];
    readonly isChosen: boolean;
  }[];
  /** Addresses and blocks of the host, or link-local, that servers may reach. */
  readonly opened: readonly string[];
  /** Most connections of a network and of a server, and most packets per second that a server sends. */
  readonly limits: { readonly network: number; readonly server: number; readonly packets: number };
}

/** Returns the first and last address of an IPv4 block, as numbers. */
function ends(block: string): readonly [first: number, last: number] {
  const [address = "", bits = "32"] = block.split("/");
  const first = address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
  return [first, first + 2 ** (32 - Number(bits)) - 1];
}

/** Returns 10.63.0.0/16, and for further locations the next /16 blocks outside of the public pools. */
function defaultShared(count: number, publicPools: readonly string[]): string[] {
  const blocks = Array.from({ length: 256 }, (_, index) => `10.${(index + 63) % 256}.0.0/16`);
  const [first = "", ...others] = blocks;
  const isPublic = (block: string) => {
    const [start, end] = ends(block);
    return publicPools.map(ends).some(([from, to]) => start <= to && from <= end);
  };
  const free = others.filter((block) => !isPublic(block));
  return [first, ...free, ...others.filter(isPublic)].slice(0, count);
}

/** Returns the block `item` if it is of the family and its prefix has at most `longest` bits. */
function readPool(name: string, item: string, family: 4 | 6, longest: number): string {
  const [address = "", bits = "", ...rest] = item.split("/");
  const length = /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  if (isIP(address) !== family || rest.length > 0 || !(length >= 8 && length <= longest))
    throw new ConfigError(name, `IPv${family} blocks of /8 to /${longest}, with commas`, item);
  return item;
}

/** Reads the settings of networks for this number of locations. Throws `ConfigError` for the first invalid one. */
export function readNetwork({ read, readInteger, isSet }: Settings, locations: number): NetworkConfig {
  const publicPools = parseList(read("BRUME_PUBLIC_POOL")).map((item) => readPool("BRUME_PUBLIC_POOL", item, 4, 28));
  const sharedChoice = read("BRUME_SHARED_POOL");
  const sharedPools =
    sharedChoice === undefined
      ? defaultShared(locations, publicPools)
      : parseList(sharedChoice).map((item) => readPool("BRUME_SHARED_POOL", item, 4, 29));
  if (sharedPools.length < locations)
    throw new ConfigError(
      "BRUME_SHARED_POOL",
      `one block for each of the ${locations} locations, with commas`,
      sharedPools.join(","),
    );
  const choice6 = read("BRUME_PUBLIC_POOL6");
  const publicPool6 = choice6 === undefined ? null : readPool("BRUME_PUBLIC_POOL6", choice6, 6, 56);

  const natText = read("BRUME_NAT");
  const nat = natModes.find((mode) => mode === natText);
  if (nat === undefined) throw new ConfigError("BRUME_NAT", `one of ${natModes.join(", ")}`, natText);
  const publicAddress = read("BRUME_PUBLIC_ADDRESS") ?? null;
  if (publicAddress !== null && !isIPv4(publicAddress))
    throw new ConfigError("BRUME_PUBLIC_ADDRESS", "an IPv4 address such as 203.0.113.9", publicAddress);

  return {
    publicPools,
    publicPool6,
    sharedPools,
    pools: [
      { setting: "BRUME_PUBLIC_POOL", blocks: publicPools, isChosen: isSet("BRUME_PUBLIC_POOL") },
      { setting: "BRUME_SHARED_POOL", blocks: sharedPools, isChosen: sharedChoice !== undefined },
      { setting: "BRUME_PUBLIC_POOL6", blocks: publicPool6 === null ? [] : [publicPool6], isChosen: true },
    ],
    nat,
    publicAddress,
    wireguardPort: readInteger("BRUME_WIREGUARD_PORT"),
    forwarders: parseList(read("BRUME_GUEST_DNS") ?? "").map((item) => {
      if (isIP(item)) return item;
      throw new ConfigError("BRUME_GUEST_DNS", "addresses of name servers with commas", item);
    }),
    limits: {
      network: readInteger("BRUME_NETWORK_CONNECTIONS"),
      server: readInteger("BRUME_SERVER_CONNECTIONS"),
      packets: readInteger("BRUME_SERVER_PACKETS"),
    },
    opened: parseList(read("BRUME_GUEST_REACH") ?? "").map((item) => checkBlock("BRUME_GUEST_REACH", item)),
  };
}
