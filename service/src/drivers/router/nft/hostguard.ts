/**
 * What guests may not reach on the host itself: all of its addresses, those that it gets later too. One table in the host's own
 * namespace for all networks of the installation, asked before any translation of the host's own, so that a port that the host
 * forwards elsewhere is closed as well. Replies to connections that the host began pass, and so do the DNS questions that edges ask
 * for their servers. Edges themselves may call a port of the host that leads to another edge, as tunnels between two networks do.
 * The table is there as long as any network with an uplink is.
 */
import type { Exec } from "../../exec.ts";
import type { NetworkSpec } from "../interface.ts";
import { countVerdicts } from "../linux/snapshot.ts";
import { closedExcept, setLines } from "../model/closedaddresses.ts";
import { hostTable, uplinkOf, uplinkPrefix } from "../model/name.ts";
import { digestOf, tableText } from "./firewall.ts";

/** `opened`: addresses and blocks of the host, or closed otherwise, that guests may reach. */
export function hostText(tag: string, opened: readonly string[]): string {
  const closed = closedExcept(opened);
  const sets = ([4, 6] as const).map((family) => ({
    family,
    open: setLines("open", opened, family),
    closed: setLines("closed", closed, family),
  }));
  const ip = { 4: "ip", 6: "ip6" } as const;
  return tableText("inet", hostTable(tag), [
    // Uplink, edge and name server.
    "set asks4 { type ifname . ipv4_addr . ipv4_addr; }",
    "set asks6 { type ifname . ipv6_addr . ipv6_addr; }",
    // Uplink and edge.
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
    // Between the two ends of the uplink: nothing that was forwarded has this hop limit.
    "  icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } ip6 hoplimit 255 accept",
    "  ct direction reply ct state established,related accept",
    ...sets.flatMap(({ family, open }) => [
      `  iifname . ${ip[family]} saddr . ${ip[family]} daddr @asks${family} meta l4proto { tcp, udp } th dport 53 accept`,
      ...open.map(() => `  ${ip[family]} daddr @open${family} accept`),
    ]),
    "}",
  ]);
}

/** Elements of the sets that say what the network's edge may. */
function asking(spec: NetworkSpec, uplink: string): string[] {
  const sources = { 4: spec.edgeAddress, 6: spec.v6?.gateway ?? null };
  const asks = spec.dnsForwarders.flatMap((server) => {
    const family = server.includes(":") ? 6 : 4;
    const source = sources[family];
    return source === null ? [] : [`asks${family} { "${uplink}" . ${source} . ${server} }`];
  });
  return [`edges { "${uplink}" . ${spec.edgeAddress} }`, ...asks];
}

/** Those of the uplink that the listing of the table has. */
const asked = (listing: string, uplink: string): string[] =>
  [...listing.matchAll(/"(\w+)" \. ([0-9a-f.:]+)( \. [0-9a-f.:]+)?/g)]
    .filter(([, name]) => name === uplink)
    .map(([element, , source = "", server]) => {
      const set = server === undefined ? "edges" : source.includes(":") ? "asks6" : "asks4";
      return `${set} { ${element} }`;
    });

export interface HostGuard {
  /** From then on guests of the network reach nothing of the host. Resolves to whether the table was not as it should be. */
  ensure(spec: NetworkSpec): Promise<boolean>;
  /** The network's uplink is gone. `last`: there is no other network. */
  release(network: number, last: () => boolean): Promise<void>;
  isComplete(): Promise<boolean>;
}

export interface HostGuardOptions {
  readonly exec: Exec;
  readonly tag: string;
  /** Enters the host's namespace, [] where that is ours. */
  readonly enter: readonly string[];
  readonly opened: readonly string[];
}

export function createHostGuard({ exec, tag, enter, opened }: HostGuardOptions): HostGuard {
  const table = hostTable(tag);
  const text = hostText(tag, opened);
  const users = new Set<number>();
  let queue: Promise<unknown> = Promise.resolve();
  const inTurn = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const turn = queue.then(work);
    queue = turn.catch(() => {});
    return turn;
  };
  const list = () => exec.run([...enter, "nft", "-s", "list", "table", "inet", table], { codes: [0, 1] });
  const load = (stdin: string) => exec.run([...enter, "nft", "-f", "-"], { stdin });
  const isAsWanted = (listing: string) =>
    listing.includes(` d_${digestOf(text)} `) &&
    countVerdicts(listing) === countVerdicts(text) &&
    !listing.includes("dormant");

  return {
    ensure(spec) {
      users.add(spec.id);
      return inTurn(async () => {
        const uplink = uplinkOf(tag, spec.id);
        const listing = await list();
        const isRight = isAsWanted(listing);
        const [wanted, present] = [asking(spec, uplink), isRight ? asked(listing, uplink) : []];
        const changes = [
          ...present.filter((one) => !wanted.includes(one)).map((one) => `delete element inet ${table} ${one}\n`),
          ...wanted.filter((one) => !present.includes(one)).map((one) => `add element inet ${table} ${one}\n`),
        ].join("");
        if (!isRight || changes !== "") await load((isRight ? "" : text) + changes);
        return !isRight;
      });
    },
    release(network, last) {
      users.delete(network);
      return inTurn(async () => {
        const isLast = users.size === 0 && last();
        const gone = isLast ? [] : asked(await list(), uplinkOf(tag, network));
        if (isLast) await load(`add table inet ${table}\ndelete table inet ${table}\n`);
        else if (gone.length > 0) await load(gone.map((one) => `delete element inet ${table} ${one}\n`).join(""));
      });
    },
    isComplete: async () => isAsWanted(await list()),
  };
}
