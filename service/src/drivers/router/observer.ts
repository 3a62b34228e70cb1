/**
 * All networks at a look: one `ip -batch` visits the namespaces of this installation, whoever made them, and another look at the
 * machine finds what a network left there without its namespace. Times of hits are remembered here, since nftables does not say.
 */
import type { Exec } from "../exec.ts";
import type { Capabilities } from "./detect.ts";
import { BRIDGE, portOf, text36, UPLINK, uplinkOf, uplinkPrefix } from "./name.ts";
import type { Count, Image, NetworkStatus, PortStatus, RouterStatus, RuleCount, TunnelStatus } from "./port.ts";
import { type Found, type Link, lookLines, readLinks, readMark, readSnapshot } from "./snapshot.ts";
import { activeOf, countersOf } from "./swap.ts";
import type { TunnelEngine } from "./tunnels.ts";

export interface ObserverOptions {
  readonly exec: Exec;
  readonly tag: string;
  readonly machine: string | null;
  readonly capabilities: Capabilities;
  readonly tunnels: readonly TunnelEngine[];
  readonly now: () => number;
  /** Namespaces of this installation. */
  readonly networks: () => readonly { readonly network: number; readonly space: string }[];
  readonly dhcpRuns: (image: Image) => boolean;
}

export interface Observer {
  /** What was applied, so that it is known what is missing. `firewall`: the digest of its text. */
  know(image: Image, firewall: string): void;
  forget(network: number): void;
  observe(network?: number): Promise<RouterStatus>;
}

const nothing: Count = { packets: 0, bytes: 0 };
/** Namespaces that one process visits, so that several cores are used. */
const VISITS = 64;

/** Counts of one set of rules, and when each last grew. */
interface Hits {
  readonly digest: string;
  readonly counts: readonly RuleCount[];
}

function ruleCounts(found: Found): Count[] {
  const counters = countersOf(found, "edge");
  const counts: Count[] = [];
  for (let number = 1; counters?.has(`r${number}`); number++) counts.push(counters.get(`r${number}`) ?? nothing);
  return counts;
}

function portStatus(image: Image | undefined, found: Found): PortStatus[] {
  const known = new Map(image?.ports.map(({ id }) => [portOf(id), id]));
  const bridged = [...found.links.values()].filter((link) => link.master === BRIDGE);
  const names = new Set([...known.keys(), ...bridged.map(({ name }) => name)]);
  return [...names].map((name) => {
    const link = found.links.get(name);
    return {
      id: known.get(name) ?? Number.parseInt(name.slice(1), 36),
      attached: link?.master === BRIDGE,
      carrier: link?.carrier === true,
      // What the namespace takes in at a port, its server has sent.
      sent: link?.received ?? nothing,
      received: link?.sent ?? nothing,
    };
  });
}

export function createObserver(options: ObserverOptions): Observer {
  const { exec, machine, tunnels, tag } = options;
  const applied = new Map<number, { readonly image: Image; readonly firewall: string }>();
  const hits = new Map<number, Hits>();

  function rules(network: number, found: Found): readonly RuleCount[] {
    const digest = activeOf(found, "edge")?.digest ?? "";
    const before = hits.get(network);
    const counts = ruleCounts(found).map((count, index): RuleCount => {
      const old = before?.digest === digest ? before.counts[index] : undefined;
      const grown = count.packets > (old?.packets ?? 0);
      // What was counted before the first look of this process, nobody knows when.
      return { ...count, lastHit: grown && before !== undefined ? options.now() : (old?.lastHit ?? null) };
    });
    hits.set(network, { digest, counts });
    return counts;
  }

  function missing(network: number, found: Found, machineLinks: ReadonlyMap<string, Link>): string[] {
    const known = applied.get(network);
    const edge = known === undefined ? found.links.has(UPLINK) : known.image.edgeAddress !== null;
    const joined = found.links.get(UPLINK)?.up === true && machineLinks.get(uplinkOf(tag, network))?.up === true;
    const tables = (["edge", "guard", "lock"] as const).filter((table) => activeOf(found, table) === null);
    const other = known !== undefined && !tables.includes("edge") && activeOf(found, "edge")?.digest !== known.firewall;
    const served = known === undefined || !options.capabilities.dhcp || options.dhcpRuns(known.image);
    return [
      ...(readMark(found).generation === 0 ? ["mark"] : []),
      ...(found.links.get(BRIDGE)?.up === true ? [] : ["bridge"]),
      ...(edge && !joined ? ["uplink"] : []),
      ...tables.map((table) => (table === "edge" ? "firewall" : table)),
      ...(other ? ["firewall"] : []),
      ...(served ? [] : ["dhcp"]),
    ];
  }

  async function visit(spaces: readonly string[]): Promise<ReadonlyMap<number, Found>> {
    const parts: string[][] = [];
    for (let at = 0; at < spaces.length; at += VISITS) parts.push(spaces.slice(at, at + VISITS));
    const looks = parts.map(async (part) => {
      const stdin = part.flatMap((space) => lookLines(space, false)).map((line) => `${line}\n`);
      return exec.run(["ip", "-force", "-batch", "-"], { stdin: stdin.join(""), codes: [0, 1], timeout: 60_000 });
    });
    const found = (await Promise.all(looks)).flatMap(readSnapshot);
    return new Map(
      found.flatMap((one) => {
        const { network } = readMark(one);
        return network === null ? [] : [[network, one] as const];
      }),
    );
  }

  /** What a network left on the machine whose namespace is gone. */
  function strays(machineLinks: ReadonlyMap<string, Link>): number[] {
    const prefix = uplinkPrefix(tag);
    const ends = [...machineLinks.keys()]
      .filter((name) => name.startsWith(prefix))
      .map((name) => name.slice(prefix.length));
    return ends
      .map((end) => Number.parseInt(end, 36))
      .filter((id, index) => Number.isSafeInteger(id) && text36(id) === ends[index]);
  }

  const absent = (id: number): NetworkStatus => ({
    id,
    generation: 0,
    whole: false,
    missing: ["namespace"],
    rules: [],
    rest: nothing,
    spoofed: nothing,
    ports: [],
    tunnels: [],
    sent: nothing,
    received: nothing,
  });

  return {
    know: (image, firewall) => void applied.set(image.id, { image, firewall }),
    forget(network) {
      applied.delete(network);
      hits.delete(network);
    },
    async observe(only) {
      const networks = options.networks().filter(({ network }) => only === undefined || network === only);
      const [found, links, ...engines] = await Promise.all([
        visit(networks.map(({ space }) => space)),
        exec.run(["ip", ...(machine === null ? [] : ["-n", machine]), "-j", "-s", "-d", "addr"]).then(readLinks),
        ...tunnels.map((engine) => engine.observe(only === undefined ? undefined : networks[0]?.space)),
      ]);
      const spaceOf = new Map(networks.map(({ network, space }) => [network, space]));
      const status = (id: number): NetworkStatus => {
        const one = found.get(id);
        if (one === undefined) return absent(id);
        const gone = missing(id, one, links);
        const uplink = one.links.get(UPLINK);
        const states: readonly TunnelStatus[] = engines.flatMap((engine) => engine.get(spaceOf.get(id) ?? "") ?? []);
        return {
          id,
          generation: readMark(one).generation,
          whole: gone.length === 0,
          missing: gone,
          rules: rules(id, one),
          rest: countersOf(one, "edge")?.get("rest") ?? nothing,
          spoofed: countersOf(one, "lock")?.get("spoofed") ?? nothing,
          ports: portStatus(applied.get(id)?.image, one),
          tunnels: states.toSorted((a, b) => a.id - b.id),
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
