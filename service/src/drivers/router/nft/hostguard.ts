/**
 * Renders and loads the table that protects the host from guests: they reach none of its addresses, including addresses that it gets later.
 * One table in the host's namespace serves all networks of the installation. It runs before the host's own translation, so a port that the
 * host forwards elsewhere is closed too. Replies to connections from the host and DNS queries of edges are allowed. Edges may also reach a
 * port of the host that leads to another edge, for tunnels between two networks. The table exists while any network with an uplink exists.
 */
import { createSerialQueue } from "../../../base/serialqueue.ts";
import type { Exec } from "../../exec.ts";
import type { NetworkSpec } from "../interface.ts";
import { countVerdicts } from "../linux/snapshot.ts";
import { closedExcept, setLines } from "../model/closedaddresses.ts";
import { hostTable, uplinkOf, uplinkPrefix } from "../model/name.ts";
import { digestOf, tableText } from "./firewall.ts";

/** Renders the table. `opened`: addresses and blocks that guests may reach although they are the host's or closed. */
function hostText(tag: string, opened: readonly string[]): string {
  const closed = closedExcept(opened);
  const sets = ([4, 6] as const).map((family) => ({
    family,
    open: setLines("open", opened, family),
    closed: setLines("closed", closed, family),
  }));
  const ip = { 4: "ip", 6: "ip6" } as const;
  return tableText("inet", hostTable(tag), [
    // Elements: uplink, edge, name server.
    "set asks4 { type ifname . ipv4_addr . ipv4_addr; }",
    "set asks6 { type ifname . ipv6_addr . ipv6_addr; }",
    // Elements: uplink, edge.
    "set edges { type ifname . ipv4_addr; }",
    ...sets.flatMap(({ open, closed }) => [...open, ...closed]),
    "chain prerouting {",
    "  type filter hook prerouting priority mangle; policy accept;",
    `  iifname "${uplinkPrefix(tag)}*" goto guest`,
    "}",
    "chain input {",
    "  type filter hook input priority filter - 10; policy accept;",
    `  iifname "${uplinkPrefix(tag)}*" goto own`,
    "}",
    "chain forward {",
    "  type filter hook forward priority filter - 10; policy accept;",
    `  iifname . ip saddr @edges oifname != "${uplinkPrefix(tag)}*" ct status dnat ct direction original drop`,
    "}",
    "chain guest {",
    "  jump allowed",
    ...sets.flatMap(({ family, closed }) => closed.map(() => `  ${ip[family]} daddr @closed${family} drop`)),
    "  iifname . ip saddr @edges meta l4proto udp accept",
    "  fib daddr type { local, broadcast, anycast, multicast } drop",
    "}",
    "chain own {",
    "  jump allowed",
    "  drop",
    "}",
    "chain allowed {",
    // Traffic between the two ends of the uplink: a forwarded packet cannot have this hop limit.
    "  icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } ip6 hoplimit 255 accept",
    "  ct direction reply ct state established,related accept",
    ...sets.flatMap(({ family, open }) => [
      `  iifname . ${ip[family]} saddr . ${ip[family]} daddr @asks${family} meta l4proto { tcp, udp } th dport 53 accept`,
      ...open.map(() => `  ${ip[family]} daddr @open${family} accept`),
    ]),
    "}",
  ]);
}

/** Returns the set elements that grant the network's edge its permissions. */
function desiredElements(spec: NetworkSpec, uplink: string): string[] {
  const sources = { 4: spec.edgeAddress, 6: spec.v6?.gateway ?? null };
  const asks = spec.dnsForwarders.flatMap((server) => {
    const family = server.includes(":") ? 6 : 4;
    const source = sources[family];
    return source === null ? [] : [`asks${family} { "${uplink}" . ${source} . ${server} }`];
  });
  return [`edges { "${uplink}" . ${spec.edgeAddress} }`, ...asks];
}

/** Returns the elements of the uplink in a listing of the table. */
const presentElements = (listing: string, uplink: string): string[] =>
  [...listing.matchAll(/"(\w+)" \. ([0-9a-f.:]+)( \. [0-9a-f.:]+)?/g)]
    .filter(([, name]) => name === uplink)
    .map(([element, , source = "", server]) => {
      const set = server === undefined ? "edges" : source.includes(":") ? "asks6" : "asks4";
      return `${set} { ${element} }`;
    });

/** Manages the table. */
export interface HostGuard {
  /**
   * Loads the table and the elements of the network. Resolves to whether the table was missing, or another program had changed it; a table
   * from another text of ours is replaced too.
   */
  ensure(spec: NetworkSpec): Promise<boolean>;
  /** Removes the elements of a network after its uplink; if `last` returns true, the table. `last`: whether no other network exists. */
  release(network: number, last: () => boolean): Promise<void>;
  /**
   * Resolves to a function that returns whether the table is loaded as rendered, with the elements of the network. After another program has
   * changed it, as by a flush of all rules of the host, each network may lack elements and other rules until its next `ensure`.
   */
  isComplete(): Promise<(network: number) => boolean>;
}

/** Options of `createHostGuard`. */
export interface HostGuardOptions {
  readonly exec: Exec;
  readonly tag: string;
  /** Command prefix that enters the host's namespace; [] if the process is in it. */
  readonly enter: readonly string[];
  readonly opened: readonly string[];
}

/** Creates the manager; it changes nothing yet. */
export function createHostGuard({ exec, tag, enter, opened }: HostGuardOptions): HostGuard {
  const table = hostTable(tag);
  const text = hostText(tag, opened);
  const users = new Set<number>();
  /** Networks that were not ensured since another program has changed the table. */
  const suspects = new Set<number>();
  const { run: inTurn } = createSerialQueue();
  const list = () => exec.run([...enter, "nft", "-s", "list", "table", "inet", table], { codes: [0, 1] });
  const load = (stdin: string) => exec.run([...enter, "nft", "-f", "-"], { stdin });
  const isFromText = (listing: string) => listing.includes(` d_${digestOf(text)} `);
  const isAsWanted = (listing: string) =>
    isFromText(listing) && countVerdicts(listing) === countVerdicts(text) && !listing.includes("dormant");

  return {
    ensure(spec) {
      users.add(spec.id);
      return inTurn(async () => {
        const uplink = uplinkOf(tag, spec.id);
        const listing = await list();
        const isRight = isAsWanted(listing);
        const [wanted, present] = [desiredElements(spec, uplink), isRight ? presentElements(listing, uplink) : []];
        const changes = [
          ...present.filter((one) => !wanted.includes(one)).map((one) => `delete element inet ${table} ${one}\n`),
          ...wanted.filter((one) => !present.includes(one)).map((one) => `add element inet ${table} ${one}\n`),
        ].join("");
        const isAltered = !isRight && (listing === "" || isFromText(listing));
        if (isAltered) for (const user of users) suspects.add(user);
        if (!isRight || changes !== "") await load((isRight ? "" : text) + changes);
        suspects.delete(spec.id);
        return isAltered;
      });
    },
    release(network, last) {
      users.delete(network);
      suspects.delete(network);
      return inTurn(async () => {
        const isLast = users.size === 0 && last();
        const gone = isLast ? [] : presentElements(await list(), uplinkOf(tag, network));
        if (isLast) await load(`add table inet ${table}\ndelete table inet ${table}\n`);
        else if (gone.length > 0) await load(gone.map((one) => `delete element inet ${table} ${one}\n`).join(""));
      });
    },
    async isComplete() {
      const isRight = isAsWanted(await list());
      return (network) => isRight && !suspects.has(network);
    },
  };
}
