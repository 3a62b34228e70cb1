/**
 * Reads the actual state of all networks with one `ip -batch` run: the host's links, where a removed namespace may have left an uplink, and
 * the namespaces of this installation. Reading a namespace costs some milliseconds of CPU time. With more than `VISITS` networks each run
 * reads only that many and reports the others as last seen; ports of servers are counted in every run. The times of rule hits are kept
 * here, because nftables does not record them.
 */
import type { Exec } from "../../exec.ts";
import type {
  Count,
  NetworkSpec,
  NetworkStatus,
  PortStatus,
  RouterStatus,
  RuleCount,
  TunnelStatus,
} from "../interface.ts";
import { BRIDGE, portOf, text36, UPLINK, uplinkOf, uplinkPrefix } from "../model/name.ts";
import { activeOf, countersOf, kinds } from "../nft/swap.ts";
import type { Capabilities } from "./detect.ts";
import { type Link, type NamespaceState, readLinks, readMark, readSnapshot, snapshotLines } from "./snapshot.ts";
import type { TunnelEngine } from "./tunnels.ts";

/** A network and the name of its namespace. */
interface Place {
  readonly network: number;
  readonly space: string;
}

/** Options of `createObserver`. */
export interface ObserverOptions {
  readonly exec: Exec;
  readonly tag: string;
  readonly hostNamespace: string | null;
  readonly capabilities: Capabilities;
  readonly tunnels: readonly TunnelEngine[];
  readonly now: () => number;
  /** Returns the namespaces of this installation. */
  readonly networks: () => readonly Place[];
  /** Resolves to a function that returns whether the host guard is complete for a network. */
  readonly isGuarded: () => Promise<(network: number) => boolean>;
  /** Returns whether dnsmasq runs where it is needed. */
  readonly dhcpRuns: (spec: NetworkSpec) => boolean;
  /** UDP ports of the host at which a program listens although they should lead to the network. */
  readonly occupiedPorts: (network: number) => readonly number[];
}

/** Reports the state of networks. */
export interface Observer {
  /** Records what was applied, to find missing parts later. `firewall`: the digest of the table's text. */
  know(spec: NetworkSpec, firewall: string): void;
  /** Removes all records of a deleted network. */
  forget(network: number): void;
  /** See `Router.observe`. */
  observe(network?: number): Promise<RouterStatus>;
  /** See `Router.observePort`. */
  observePort(network: number, port: number): Promise<PortStatus | null>;
}

const nothing: Count = { packets: 0, bytes: 0 };
/** Namespaces read in one run; more are read in turn. */
const VISITS = 8;

/** Counters of one rule set, with the time when each last grew. */
interface Hits {
  readonly digest: string;
  readonly counts: readonly RuleCount[];
}

/** Returns the counters in the order of the rules. Rules that no packet can reach have none; `rules`: the number of rules, if it is known. */
function ruleCounts(found: NamespaceState, rules: number): Count[] {
  const counts = new Array<Count | undefined>(rules);
  for (const [name, count] of countersOf(found, "edge") ?? []) {
    const [, number] = /^r(\d{1,6})$/.exec(name) ?? [];
    if (number !== undefined) counts[Number(number) - 1] = count;
  }
  return Array.from(counts, (count) => count ?? nothing);
}

function portStatus(spec: NetworkSpec | undefined, found: NamespaceState): PortStatus[] {
  const known = new Map(spec?.ports.map(({ id }) => [portOf(id), id]));
  const bridged = [...found.links.values()].filter((link) => link.master === BRIDGE);
  const names = new Set([...known.keys(), ...bridged.map(({ name }) => name)]);
  return [...names].map((name) =>
    statusOfLink(known.get(name) ?? Number.parseInt(name.slice(1), 36), found.links.get(name)),
  );
}

const statusOfLink = (id: number, link: Link | undefined): PortStatus => ({
  id,
  attached: link?.master === BRIDGE,
  carrier: link?.carrier === true,
  // Packets that the namespace receives at a port were sent by the server.
  sent: link?.received ?? nothing,
  received: link?.sent ?? nothing,
});

export function createObserver(options: ObserverOptions): Observer {
  const { exec, hostNamespace, tunnels, tag } = options;
  const applied = new Map<number, { readonly spec: NetworkSpec; readonly firewall: string }>();
  const hits = new Map<number, Hits>();
  /** The state of each network when it was last read since it was applied. */
  const seen = new Map<number, NamespaceState>();
  /** Id of the network that was read last. */
  let turn = 0;

  function rules(network: number, found: NamespaceState): readonly RuleCount[] {
    const digest = activeOf(found, "edge")?.digest ?? "";
    const before = hits.get(network);
    const firewall = applied.get(network)?.spec.firewall;
    const counts = ruleCounts(found, firewall?.enabled === true ? firewall.rules.length : 0).map(
      (count, index): RuleCount => {
        const old = before?.digest === digest ? before.counts[index] : undefined;
        const grown = count.packets > (old?.packets ?? 0);
        // Counts from before the first run of this process have no known time.
        return { ...count, lastHit: grown && before !== undefined ? options.now() : (old?.lastHit ?? null) };
      },
    );
    hits.set(network, { digest, counts });
    return counts;
  }

  function missing(
    network: number,
    found: NamespaceState,
    hostLinks: ReadonlyMap<string, Link>,
    guarded: boolean,
  ): string[] {
    const known = applied.get(network);
    const edge = known === undefined ? found.links.has(UPLINK) : known.spec.edgeAddress !== null;
    const joined = found.links.get(UPLINK)?.up === true && hostLinks.get(uplinkOf(tag, network))?.up === true;
    const tables = kinds.filter((table) => activeOf(found, table) === null);
    const other = known !== undefined && !tables.includes("edge") && activeOf(found, "edge")?.digest !== known.firewall;
    const served = known === undefined || !options.capabilities.dhcp || options.dhcpRuns(known.spec);
    return [
      ...(readMark(found).generation === 0 ? ["mark"] : []),
      ...(found.links.get(BRIDGE)?.up === true ? [] : ["bridge"]),
      ...(edge && !joined ? ["uplink"] : []),
      ...(edge && !guarded ? ["host guard"] : []),
      ...tables.map((table) => (table === "edge" ? "firewall" : table === "flows" ? "limits" : table)),
      ...(other ? ["firewall"] : []),
      ...(served ? [] : ["dhcp"]),
    ];
  }

  /** Runs the host's `ip` command, then the lines for namespaces. */
  async function run(onHost: string, visits: readonly string[]): Promise<readonly NamespaceState[]> {
    const argv = [
      "ip",
      ...(hostNamespace === null ? [] : ["-n", hostNamespace]),
      "-j",
      "-s",
      "-d",
      "-force",
      "-batch",
      "-",
    ];
    const stdin = [onHost, ...visits].map((line) => `${line}\n`).join("");
    const found = readSnapshot(await exec.run(argv, { stdin, codes: [0, 1], timeout: 60_000 }));
    // The rules are not compared, and would be kept for each network.
    return found.map((one) => ({ ...one, rules: "" }));
  }

  /** Reads the namespaces that are due. Returns the host's links, and each network as it is or was last seen. */
  async function visit(places: readonly Place[], only: number | undefined) {
    const isAll = only !== undefined || places.length <= VISITS;
    const later = places.filter(({ network }) => network > turn);
    const next = new Set(isAll ? places : [...later, ...places].slice(0, VISITS));
    turn = isAll ? turn : ([...next].at(-1)?.network ?? 0);
    const desired = new Map(applied);
    const networks = new Map<number, NamespaceState>();
    const visits = places.flatMap((place) => {
      const [links = "", ...rest] = snapshotLines(place.space, false);
      const known = seen.get(place.network);
      if (known === undefined || next.has(place)) return [links, ...rest];
      networks.set(place.network, known);
      return portStatus(applied.get(place.network)?.spec, known).length > 0 ? [links] : [];
    });
    const found = await run(only === undefined ? "addr show" : `addr show dev ${uplinkOf(tag, only)}`, visits);
    const hostLinks = new Map<string, Link>();
    for (const one of found) {
      const { network } = readMark(one);
      if (network === null) for (const [name, link] of one.links) hostLinks.set(name, link);
      else {
        const known = networks.get(network);
        const now = known === undefined ? one : { ...known, links: one.links };
        networks.set(network, now);
        // A network that was applied meanwhile may have been read in an incomplete state.
        if (applied.get(network) === desired.get(network)) seen.set(network, now);
      }
    }
    return { hostLinks, networks };
  }

  /** Returns the networks that have an uplink on the host but no namespace. */
  function strays(hostLinks: ReadonlyMap<string, Link>): number[] {
    const prefix = uplinkPrefix(tag);
    const ends = [...hostLinks.keys()]
      .filter((name) => name.startsWith(prefix))
      .map((name) => name.slice(prefix.length));
    return ends
      .map((end) => Number.parseInt(end, 36))
      .filter((id, index) => Number.isSafeInteger(id) && text36(id) === ends[index]);
  }

  const absent = (id: number): NetworkStatus => ({
    id,
    generation: 0,
    complete: false,
    missing: ["namespace"],
    rules: [],
    rest: nothing,
    spoofed: nothing,
    overLimit: nothing,
    ports: [],
    tunnels: [],
    occupiedPorts: [],
    sent: nothing,
    received: nothing,
  });

  return {
    know(spec, firewall) {
      const before = applied.get(spec.id);
      // The rules were loaded just now, so their counters start at zero.
      if (before !== undefined && before.firewall !== firewall) hits.set(spec.id, { digest: firewall, counts: [] });
      applied.set(spec.id, { spec, firewall });
      seen.delete(spec.id);
    },
    forget(network) {
      applied.delete(network);
      seen.delete(network);
      hits.delete(network);
    },
    async observePort(network, port) {
      const space = options.networks().find((place) => place.network === network)?.space;
      const isKnown = applied.get(network)?.spec.ports.some(({ id }) => id === port) === true;
      if (space === undefined) return isKnown ? statusOfLink(port, undefined) : null;
      const argv = ["ip", "-n", space, "-j", "-s", "-d", "link", "show", "dev", portOf(port)];
      // It fails if the device does not exist.
      const link = readLinks(await exec.run(argv, { codes: [0, 1] })).get(portOf(port));
      return isKnown || link?.master === BRIDGE ? statusOfLink(port, link) : null;
    },
    async observe(only) {
      const networks = options
        .networks()
        .filter(({ network }) => only === undefined || network === only)
        .sort((one, other) => one.network - other.network);
      // Without a namespace there are no tunnels, and an engine would report all networks.
      const queried = only === undefined || networks.length > 0 ? tunnels : [];
      const [{ hostLinks: links, networks: found }, isGuarded, ...engines] = await Promise.all([
        visit(networks, only),
        options.isGuarded(),
        ...queried.map((engine) => engine.observe(only === undefined ? undefined : networks[0]?.space)),
      ]);
      const spaceOf = new Map(networks.map(({ network, space }) => [network, space]));
      const status = (id: number): NetworkStatus => {
        const one = found.get(id);
        if (one === undefined) return absent(id);
        const gone = missing(id, one, links, isGuarded(id));
        const uplink = one.links.get(UPLINK);
        const states: readonly TunnelStatus[] = engines.flatMap((engine) => engine.get(spaceOf.get(id) ?? "") ?? []);
        return {
          id,
          generation: readMark(one).generation,
          complete: gone.length === 0,
          missing: gone,
          rules: rules(id, one),
          rest: countersOf(one, "edge")?.get("rest") ?? nothing,
          spoofed: countersOf(one, "lock")?.get("spoofed") ?? nothing,
          overLimit: countersOf(one, "flows")?.get("crowded") ?? nothing,
          ports: portStatus(applied.get(id)?.spec, one),
          tunnels: states.toSorted((a, b) => a.id - b.id),
          occupiedPorts: options.occupiedPorts(id),
          sent: uplink?.sent ?? nothing,
          received: uplink?.received ?? nothing,
        };
      };
      const others = [...applied.keys(), ...strays(links)].filter((id) => only === undefined || id === only);
      const ids = new Set([...networks.map(({ network }) => network), ...others]);
      return { ready: true, detail: "", networks: [...ids].sort((a, b) => a - b).map(status) };
    },
  };
}
